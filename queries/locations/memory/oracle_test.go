package memory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/synthetic"
	"lieudit/queries/locations/memory"
	"lieudit/queries/locations/search"
	"lieudit/queries/locations/search/searchtest"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

// oracleSite is a site as the contract looks at it, computed in the simplest way: without an index, site by site. The
// engine's answers are compared with what it says.
type oracleSite struct {
	row     table.Site
	content locations.Content
	fields  [3][]string // the words of name, of tags, town and postcode, of the rest of the address
}

func newOracleSite(row table.Site) oracleSite {
	var stored locations.StoredSite
	if err := json.Unmarshal([]byte(row.Content), &stored); err != nil {
		panic(err)
	}
	k := oracleSite{row: row}
	k.content = stored.ShownContent()
	addWords := func(field int, texts ...string) {
		for _, text := range texts {
			search.VisitTerms(text, func(word string) { k.fields[field] = append(k.fields[field], word) })
		}
	}
	addWords(0, k.content.Name)
	addWords(1, k.content.Tags...)
	if a := k.content.Address; a != nil {
		addWords(1, a.City, a.PostalCode)
		addWords(2, a.Line1, a.Line2, a.InseeCode, a.Country)
	}
	return k
}

// rank adds up typos, prefixes and fields over the words, each at its best.
func (k *oracleSite) rank(q search.Query) (uint64, bool) {
	text := q.TrimmedText()
	if q.MatchExternalIDs && strings.EqualFold(text, k.row.ExternalID) {
		return 0, true
	}
	words := search.QueryWords(text)
	total, ok := uint64(1), len(words) > 0
	for _, w := range words {
		best := k.wordRank(w)
		if best == math.MaxUint64 {
			ok = false
			break
		}
		total += best
	}
	if id := k.row.ExternalID; q.MatchExternalIDs && len(text) <= len(id) && strings.EqualFold(text, id[:len(text)]) && (!ok || total > 1+256+2) {
		return 1 + 256 + 2, true
	}
	return total, ok
}

func (k *oracleSite) wordRank(w search.Word) uint64 {
	best := uint64(math.MaxUint64)
	for field, words := range k.fields {
		for _, word := range words {
			isBeginning := w.MayBePrefix && strings.HasPrefix(word, w.Text)
			n, ok := search.CountTypos(w.Text, word, w.AllowsPrefixTypos)
			if isBeginning {
				n, ok = 0, true
			}
			if !ok {
				continue
			}
			cost := uint64(n)<<16 + uint64(field)
			if whole, exact := search.CountTypos(w.Text, word, false); !exact || whole != n {
				cost += 1 << 8
			}
			best = min(best, cost)
		}
	}
	if w.Expansions == nil {
		return best
	}
	furthest := uint64(0)
	for _, term := range w.Expansions {
		field := slices.IndexFunc(k.fields[:], func(words []string) bool { return slices.Contains(words, term) })
		if field < 0 {
			return best
		}
		furthest = max(furthest, uint64(field))
	}
	return min(best, 1<<8+furthest)
}

func (k *oracleSite) position() (geo.Point, bool) {
	if k.content.Lat == nil {
		return geo.Point{}, false
	}
	return geo.Point{Lat: *k.content.Lat, Lon: *k.content.Lon}, true
}

// sortKey is the site's sort key in the answer, if the query finds it.
func (k *oracleSite) sortKey(q search.Query) (p search.SortKey, ok bool) {
	if k.row.Account != q.Account || q.Status == search.Active && !k.row.Active || q.Status == search.Inactive && k.row.Active ||
		q.Referential != "" && q.Referential != k.row.Referential {
		return p, false
	}
	for _, tag := range q.Tags {
		if !slices.ContainsFunc(k.content.Tags, func(t string) bool { return search.FoldTag(t) == search.FoldTag(tag) }) {
			return p, false
		}
	}
	if !q.OpenAt.IsZero() && !locations.NewOpening(k.content.Hours, locations.DefaultZone).IsOpen(locations.NewMoment(q.OpenAt)) {
		return p, false
	}
	position, hasPosition := k.position()
	if (q.Box != nil || q.Radius > 0) && !hasPosition || q.Box != nil && !q.Box.Contains(position) || q.Radius > 0 && geo.Distance(*q.Center, position) > q.Radius {
		return p, false
	}
	p = search.SortKey{Name: search.FoldName(k.content.Name), ExternalID: k.row.ExternalID, Referential: k.row.Referential}
	if q.TrimmedText() != "" {
		if p.Rank, ok = k.rank(q); !ok {
			return p, false
		}
	}
	if q.EffectiveSort() != search.ByRelevance {
		p.Rank = 0
	}
	if q.Center != nil && q.EffectiveSort() != search.ByName {
		p.Distance = math.Inf(1)
		if hasPosition {
			p.Distance = geo.Distance(*q.Center, position)
		}
	}
	return p, true
}

// expectedIDs are the ids of all that a query finds, in the order of the contract.
func expectedIDs(all map[string]oracleSite, q search.Query) []string {
	sortKeys := []search.SortKey{}
	for _, k := range all {
		if p, ok := k.sortKey(q); ok {
			sortKeys = append(sortKeys, p)
		}
	}
	slices.SortFunc(sortKeys, search.SortKey.Compare)
	found := make([]string, len(sortKeys))
	for i, p := range sortKeys {
		found[i] = p.Referential + "/" + p.ExternalID
	}
	return found
}

// generator makes sites and queries out of few words, so that queries find sites.
type generator struct{ *rand.Rand }

func (w generator) pick(of ...string) string { return of[w.IntN(len(of))] }

func (w generator) randomText(n int) string {
	var words []string
	for range w.IntN(n + 1) {
		words = append(words, w.pick("boulangerie", "Boulanger", "lilas", "lilac", "Été", "cœur", "St", "saint", "12", "2", "bd", "boulevard", "ZI", "zone", "industrielle",
			"a", "ab", "abc", "abcd", "boulang", "lil", "مخبز", "★", "48000", "Mende", "mendes", "MAG-1"))
	}
	return strings.Join(words, " ")
}

func (w generator) randomPosition() *locations.Position {
	if w.IntN(8) == 0 {
		return nil
	}
	return &locations.Position{Lat: 44 + float64(w.IntN(20))/20, Lon: 3 + float64(w.IntN(20))/20}
}

func (w generator) randomSite() table.Site {
	c := locations.Content{Name: w.randomText(3)}
	if w.IntN(4) > 0 {
		c.Address = &locations.SiteAddress{Line1: w.randomText(2), PostalCode: w.randomText(1), City: w.randomText(1)}
	}
	if w.IntN(3) > 0 {
		c.Hours = json.RawMessage(w.pick(`{"hebdo":[{"jours":["lu"],"de":"09:00","a":"12:30"}]}`, `{"hebdo":[{"jours":["lu"],"de":"14:00","a":"19:00"}]}`,
			`{"hebdo":[{"jours":["lu","ma"],"de":"09:00","a":"19:00"}],"exceptions":[{"du":"2026-11-23","de":"15:00","a":"16:00"}]}`, `{"texte":"9h"}`))
	}
	for range w.IntN(3) {
		c.Tags = append(c.Tags, w.pick("Drive", "wi-fi", "★", "accès PMR", "lilas"))
	}
	r := searchtest.NewSiteRow(w.pick("a", "b"), w.pick("shops", "depots"), w.pick("MAG-", "mag-", "x")+fmt.Sprint(w.IntN(150)), locations.StoredSite{Content: c, Position: w.randomPosition()})
	r.Active = w.IntN(5) > 0
	return r
}

func (w generator) randomQuery() search.Query {
	q := search.Query{Account: w.pick("a", "b"), MatchExternalIDs: w.IntN(2) == 0, Referential: w.pick("", "", "", "shops"),
		Status: search.Status(w.pick("actif", "actif", "inactif", "tous")), Limit: 1 + w.IntN(20)}
	if w.IntN(4) > 0 {
		q.Text = w.randomText(3)
		if letters := []rune(q.Text); len(letters) > 2 && w.IntN(2) == 0 {
			i := w.IntN(len(letters) - 1)
			letters[i] = letters[i+1]
			q.Text = string(letters[:len(letters)-w.IntN(2)])
		}
	}
	if p := w.randomPosition(); p != nil && w.IntN(2) == 0 {
		q.Center = &geo.Point{Lat: p.Lat, Lon: p.Lon}
		q.Radius = float64(w.IntN(3)) * 20_000
		q.Sort = search.Sort(w.pick("", "pertinence", "distance", "nom"))
	}
	if p := w.randomPosition(); p != nil && w.IntN(4) == 0 {
		q.Box = &search.Box{West: p.Lon, South: p.Lat, East: p.Lon + .3, North: p.Lat + .3}
	}
	if w.IntN(4) == 0 {
		q.OpenAt = time.Date(2026, 11, 23, 8+w.IntN(10), 0, 0, 0, time.UTC)
	}
	if w.IntN(4) == 0 {
		q.Tags = []string{w.pick("drive", "WIFI", "wi fi", "★", "acces pmr")}
	}
	return q
}

// TestAnswersEqualThoseOfASearchWithoutIndex changes sites again and again, and compares whole answers page by page.
func TestAnswersEqualThoseOfASearchWithoutIndex(t *testing.T) {
	t.Parallel()
	s, w, all := openFixture(t, t.TempDir(), memory.DefaultMaxSites), generator{rand.New(rand.NewPCG(3, 5))}, map[string]oracleSite{}
	for round := range 70 {
		rows := map[string]table.Site{}
		for range []int{200, 1 + w.IntN(12)}[min(round, 1)] {
			r := w.randomSite()
			rows[r.ID] = r
			all[r.ID] = newOracleSite(r)
		}
		s.writeRows(t, values(rows)...)
		for range 20 {
			q := w.randomQuery()
			want, got := expectedIDs(all, q), []string{}
			for {
				r, err := s.engine.Search(t.Context(), q)
				if err != nil {
					t.Fatalf("%+v: %v", q, err)
				}
				for _, h := range r.Hits {
					got = append(got, h.Site.Referential+"/"+h.Site.ExternalID)
				}
				if q.After = r.Next; q.After == "" {
					break
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("round %d: %+v: %s", round, q, diff)
			}
		}
	}
}

func values[V any](m map[string]V) (all []V) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

// frenchAddresses are invented addresses all over the country.
var frenchAddresses = sync.OnceValues(func() ([]ban.Row, error) {
	communes, err := commune.Load()
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	if err := synthetic.Write(context.Background(), &file, communes, synthetic.Options{Addresses: 150_000, Seed: 1}); err != nil {
		return nil, err
	}
	var rows []ban.Row
	var report ban.Report
	for row, err := range ban.Read(&file, "france.csv", &report) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
})

var (
	trades      = []string{"Boulangerie", "Pharmacie", "Garage", "Opticien", "Librairie", "Boucherie", "Fleuriste", "Pressing", "Supermarché", "Station-service", "Salon de coiffure", "Banque"}
	nameEndings = []string{"Dupont", "Martin", "de l'Église", "du Marché", "Saint-Michel", "des Halles", "Lefèvre", "& Fils", "du Centre", "Le Gall", "Au Bon Coin", "de la Gare", "Bœuf", "Château", "Müller"}
	shopTags    = []string{"drive", "accès PMR", "wi-fi", "parking", "ouvert le dimanche", "click & collect", "livraison", "24/7", "retrait 1 h", "bio"}
)

const openingHours = `{"hebdo":[{"jours":["lu","ma"],"de":"09:00","a":"12:30"},{"jours":["lu","ma"],"de":"14:00","a":"19:00"},{"jours":["me","je"],"de":"09:00","a":"19:00"},{"jours":["ve"],"de":"09:00","a":"19:30"},{"jours":["sa"],"de":"09:00","a":"18:00"}]}`

// chainOfShops are n sites of a customer with shops all over the country.
func chainOfShops(t testing.TB, account string, n int) []table.Site {
	t.Helper()
	addresses, err := frenchAddresses()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(uint64(len(account)), uint64(n)))
	rows := make([]table.Site, n)
	for i := range rows {
		rows[i] = searchtest.NewSiteRow(account, fmt.Sprint("reseau-", i%3), fmt.Sprintf("MAG-%05d", i), randomShop(rng, addresses[rng.IntN(len(addresses))], i))
	}
	return rows
}

func randomShop(rng *rand.Rand, a ban.Row, i int) locations.StoredSite {
	line := strings.TrimSpace(fmt.Sprint(a.Numero, a.Rep, " ", a.Voie))
	c := locations.Content{
		Name:    fmt.Sprintf("%s %s %s", trades[rng.IntN(len(trades))], nameEndings[rng.IntN(len(nameEndings))], a.Commune),
		Address: &locations.SiteAddress{Line1: line, PostalCode: a.CodePostal, City: a.Commune, InseeCode: a.CodeInsee},
		Hours:   json.RawMessage(openingHours), Phone: fmt.Sprintf("04 66 %02d %02d %02d", i%100, i/100%100, i/10000),
		Email: fmt.Sprintf("magasin%05d@enseigne-exemple.fr", i), Website: fmt.Sprintf("https://www.enseigne-exemple.fr/magasins/%05d", i),
		Properties: json.RawMessage(fmt.Sprintf(`{"secteur":"S%02d","surface":%d}`, i%40, 80+i%900)),
	}
	for _, j := range rng.Perm(len(shopTags))[:rng.IntN(4)] {
		c.Tags = append(c.Tags, shopTags[j])
	}
	return locations.StoredSite{Content: c, Position: &locations.Position{Lat: a.Lat, Lon: a.Lon, Source: locations.SourceBAN, IDBan: a.ID, Score: 0.97}}
}
