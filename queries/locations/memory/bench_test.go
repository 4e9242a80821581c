package memory_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/locations/memory"
	"lieudit/queries/locations/search"
	"lieudit/schemas/geo"
	"lieudit/schemas/table"
)

// BenchmarkSearch searches one account of 11,000 sites among many that are in memory too, and these now and then: a
// million sites where LIEUDIT_TEST_LONG is set, otherwise a tenth.
func BenchmarkSearch(b *testing.B) {
	part := 10
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		part = 1
	}
	for _, crowd := range []struct{ accounts, sites int }{{100 / part, 10_000}, {10_000 / part, 100}} {
		b.Run(fmt.Sprintf("%dx%d", crowd.accounts, crowd.sites), func(b *testing.B) { benchmarkAccounts(b, crowd.accounts, crowd.sites) })
	}
}

func benchmarkAccounts(b *testing.B, accounts, sites int) {
	s := openFixture(b, b.TempDir(), memory.DefaultMaxSites*2)
	rows := chainOfShops(b, "big", 11_000)
	s.writeRows(b, rows...)
	for i := range accounts {
		s.writeRows(b, chainOfShops(b, accountID(i), sites)...)
	}
	before := heapBytes()
	began := time.Now()
	s.searchPage(b, search.Query{Account: "big"})
	b.Logf("cold load of 11,000 sites: %v", time.Since(began))
	began = time.Now()
	for i := range accounts {
		s.searchPage(b, search.Query{Account: accountID(i)})
	}
	all := accounts*sites + len(rows)
	b.Logf("%d sites loaded in %v, %d bytes a site", all, time.Since(began), (heapBytes()-before)/uint64(all))
	for _, kind := range queryKinds {
		b.Run(kind.name, func(b *testing.B) { s.measureSearch(b, kind, rows, accounts) })
	}
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("refresh after %d", n), func(b *testing.B) { s.measureRefresh(b, rows, n) })
	}
	runtime.KeepAlive(s)
}

func accountID(i int) string { return fmt.Sprintf("account-%d", i) }

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (s *fixture) searchPage(t testing.TB, q search.Query) search.Result {
	t.Helper()
	q.Limit = max(q.Limit, 20)
	r, err := s.engine.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// queryKind is a kind of query, made of a site.
type queryKind struct {
	name  string
	query func(*rand.Rand, table.Site) search.Query
}

var queryKinds = []queryKind{
	{"words", func(_ *rand.Rand, r table.Site) search.Query { return search.Query{Text: nameOf(r)} }},
	{"typos", func(rng *rand.Rand, r table.Site) search.Query {
		return search.Query{Text: swapLetters(rng, nameOf(r))}
	}},
	{"beginning", func(rng *rand.Rand, r table.Site) search.Query {
		name := []rune(nameOf(r))
		return search.Query{Text: string(name[:1+rng.IntN(len(name))])}
	}},
	{"beginnings", func(rng *rand.Rand, r table.Site) search.Query {
		var text []string
		for _, w := range strings.Fields(nameOf(r)) {
			letters := []rune(w)
			text = append(text, string(letters[:min(len(letters), 3+rng.IntN(3))]))
		}
		return search.Query{Text: strings.Join(text, " ")}
	}},
	{"one letter", func(rng *rand.Rand, r table.Site) search.Query { return search.Query{Text: nameOf(r)[:1]} }},
	{"everywhere", func(*rand.Rand, table.Site) search.Query { return search.Query{Text: "r"} }},
	{"text and radius", func(_ *rand.Rand, r table.Site) search.Query {
		return search.Query{Text: firstWord(r), Center: positionOf(r), Radius: 20_000}
	}},
	{"radius", func(_ *rand.Rand, r table.Site) search.Query {
		return search.Query{Center: positionOf(r), Radius: 20_000}
	}},
	{"by distance", func(_ *rand.Rand, r table.Site) search.Query { return search.Query{Center: positionOf(r)} }},
	{"box", func(_ *rand.Rand, r table.Site) search.Query {
		p := positionOf(r)
		return search.Query{Box: &search.Box{West: p.Lon - .5, South: p.Lat - .5, East: p.Lon + .5, North: p.Lat + .5}}
	}},
	{"tags", func(*rand.Rand, table.Site) search.Query { return search.Query{Tags: []string{"Drive", "acces pmr"}} }},
	{"open", func(_ *rand.Rand, r table.Site) search.Query {
		return search.Query{Center: positionOf(r), Radius: 20_000, OpenAt: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)}
	}},
	{"closed", func(*rand.Rand, table.Site) search.Query {
		return search.Query{OpenAt: time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)}
	}},
	{"list", func(*rand.Rand, table.Site) search.Query { return search.Query{} }},
	{"list of 100", func(*rand.Rand, table.Site) search.Query { return search.Query{Limit: 100} }},
	{"deep list", func(_ *rand.Rand, r table.Site) search.Query {
		q := search.Query{}
		q.After = q.FormatCursor(search.SortKey{Name: search.FoldName(nameOf(r)), ExternalID: r.ExternalID, Referential: r.Referential})
		return q
	}},
	{"deep relevance", func(_ *rand.Rand, r table.Site) search.Query {
		q := search.Query{Text: "r"}
		q.After = q.FormatCursor(search.SortKey{Rank: 257, Name: search.FoldName(nameOf(r)), ExternalID: r.ExternalID, Referential: r.Referential})
		return q
	}},
}

func nameOf(r table.Site) string {
	_, name, _ := strings.Cut(r.Content, `"nom":"`)
	name, _, _ = strings.Cut(name, `"`)
	return name
}

func firstWord(r table.Site) string { return strings.Fields(nameOf(r))[0] }

func positionOf(r table.Site) *geo.Point {
	var p geo.Point
	_, at, _ := strings.Cut(r.Content, `"position":{`)
	fmt.Sscanf(at, `"lat":%g,"lon":%g`, &p.Lat, &p.Lon)
	return &p
}

// swapLetters swaps two letters of a text.
func swapLetters(rng *rand.Rand, s string) string {
	letters := []rune(s)
	i := 1 + rng.IntN(len(letters)-2)
	letters[i], letters[i+1] = letters[i+1], letters[i]
	return string(letters)
}

// measureSearch searches again and again, every tenth time in another account.
func (s *fixture) measureSearch(b *testing.B, kind queryKind, rows []table.Site, accounts int) {
	rng := rand.New(rand.NewPCG(1, 2))
	queries := make([]search.Query, 1000)
	for i := range queries {
		queries[i] = kind.query(rng, rows[rng.IntN(len(rows))])
		queries[i].Account = "big"
		if i%10 == 9 {
			queries[i].Account = accountID(rng.IntN(accounts))
		}
	}
	var elapsed, cpuTimes []time.Duration
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		began, before := time.Now(), addresstest.CPUTime(b)
		s.searchPage(b, queries[i%len(queries)])
		if i%10 != 9 {
			elapsed, cpuTimes = append(elapsed, time.Since(began)), append(cpuTimes, addresstest.CPUTime(b)-before)
		}
	}
	slices.Sort(elapsed)
	slices.Sort(cpuTimes)
	b.ReportMetric(float64(elapsed[len(elapsed)/2].Microseconds()), "µs-p50")
	b.ReportMetric(float64(elapsed[len(elapsed)*99/100].Microseconds()), "µs-p99")
	b.ReportMetric(float64(cpuTimes[len(cpuTimes)*99/100].Microseconds()), "cpu-µs-p99")
}

// measureRefresh measures the search after n sites have changed.
func (s *fixture) measureRefresh(b *testing.B, rows []table.Site, n int) {
	rng := rand.New(rand.NewPCG(3, 4))
	var elapsed time.Duration
	times := 0
	for b.Loop() {
		fresh := slices.Clone(rows[rng.IntN(len(rows)-n):][:n])
		for i := range fresh {
			fresh[i].Version++
		}
		s.writeRows(b, fresh...)
		began := time.Now()
		s.searchPage(b, search.Query{Account: "big"})
		elapsed += time.Since(began)
		times++
	}
	b.ReportMetric(float64(elapsed.Microseconds())/float64(times), "µs-search-after")
}

// BenchmarkLoad loads accounts of 11,000 sites that are not in memory.
func BenchmarkLoad(b *testing.B) {
	s := openFixture(b, b.TempDir(), 1)
	for i := range 2 {
		s.writeRows(b, chainOfShops(b, accountID(i), 11_000)...)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.searchPage(b, search.Query{Account: accountID(i % 2)})
	}
}
