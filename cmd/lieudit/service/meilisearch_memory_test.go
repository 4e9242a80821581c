package service_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"lieudit/queries/locations/memory"
	"lieudit/queries/locations/search"
	"lieudit/queries/locations/search/searchtest"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
	"lieudit/schemas/meiliclient/meilitest"
	"lieudit/schemas/table"
)

var (
	trades  = []string{"Boulangerie", "Pharmacie", "Garage", "Librairie", "Épicerie", "Boucherie", "Opticien", "Fleuriste", "Pressing", "Coiffure", "Banque", "Agence", "Brasserie", "Hôtel"}
	named   = []string{"du Marché", "de la Gare", "Saint-Michel", "des Lilas", "du Château", "de l'Église", "Lafayette", "Victor Hugo", "des Arceaux", "du Pont Neuf", "Martin", "Durand", "Bertrand"}
	streets = []string{"rue de la République", "avenue Jean Jaurès", "place du Général de Gaulle", "boulevard Voltaire", "chemin des Écoles", "rue Pasteur", "allée des Tilleuls", "route de Mende"}
	cities  = []string{"Mende", "Marvejols", "Florac", "Langogne", "Montpellier", "Nîmes", "Béziers", "Alès", "Rodez", "Millau", "Clermont-Ferrand", "Le Puy-en-Velay", "Saint-Étienne", "Valence"}
	tagged  = []string{"drive", "parking", "accès PMR", "wi-fi", "retrait", "bio", "24/7"}
)

// chainShop is the n-th shop of a chain.
func chainShop(random *rand.Rand, n int) table.Site {
	pick := func(words []string) string { return words[random.IntN(len(words))] }
	c := locations.Content{
		Name: pick(trades) + " " + pick(named), Tags: []string{pick(tagged), pick(tagged)},
		Address: &locations.SiteAddress{Line1: fmt.Sprint(1+random.IntN(180), " ", pick(streets)), PostalCode: fmt.Sprint(30000 + random.IntN(18)*1000), City: pick(cities)},
	}
	return searchtest.NewSiteRow("a", "shops", fmt.Sprintf("mag-%05d", n), locations.StoredSite{Content: c,
		Position: &locations.Position{Lat: 43.5 + random.Float64()*3, Lon: 2.5 + random.Float64()*3, Source: locations.SourceBAN}})
}

// TestMemoryAndMeilisearchSideBySide measures how long both engines take to answer the same queries about the largest
// account there can be.
func TestMemoryAndMeilisearchSideBySide(t *testing.T) {
	if !meilitest.UsesRealServer() || os.Getenv("LIEUDIT_TEST_LONG") == "" {
		t.Skipf("set LIEUDIT_TEST_LONG=1 and %s to compare the two", meilitest.EnvVariable)
	}
	s := openFixture(t)
	const sites = 11_000
	random := rand.New(rand.NewPCG(1, 2))
	began := time.Now()
	for from := 0; from < sites; from += 2000 {
		var rows []table.Site
		for n := from; n < min(from+2000, sites); n++ {
			rows = append(rows, chainShop(random, n))
		}
		s.WriteSites(nil, rows...)
	}
	t.Logf("%d sites applied in %.1f s", sites, time.Since(began).Seconds())
	engines := map[string]search.Engine{"memory": memory.New(s.registry, func(string) uint64 { return 0 }, time.Now, memory.DefaultMaxSites), "meilisearch": s.engine}
	center := &geo.Point{Lat: 44.5, Lon: 3.5}
	for _, c := range []struct {
		name string
		q    search.Query
	}{
		{"all, by name", search.Query{}},
		{"a letter", search.Query{Text: "b"}},
		{"a beginning", search.Query{Text: "boul"}},
		{"two words", search.Query{Text: "pharmacie mende"}},
		{"two typos", search.Query{Text: "boulengerie montpelier"}},
		{"abbreviated", search.Query{Text: "bd voltaire alès"}},
		{"within 10 km", search.Query{Center: center, Radius: 10_000}},
		{"within 10 km, a word", search.Query{Center: center, Radius: 10_000, Text: "hotel"}},
		{"within 100 km", search.Query{Center: center, Radius: 100_000}},
		{"nearest of all", search.Query{Center: center, Sort: search.ByDistance}},
		{"a box and two tags", search.Query{Box: &search.Box{West: 3, South: 44, East: 4, North: 45}, Tags: []string{"drive", "bio"}}},
		{"external id", search.Query{Text: "mag-01234", MatchExternalIDs: true}},
	} {
		c.q.Account, c.q.Limit = "a", 20
		for _, name := range []string{"memory", "meilisearch"} {
			p50, p99, hits := measureSearch(t, engines[name], c.q)
			t.Logf("%-22s %-12s p50 %8.3f ms  p99 %8.3f ms  %d hits", c.name, name, p50, p99, hits)
		}
	}
	s.measureIndexing(t, random)
}

// measureSearch runs a query 300 times and returns two percentiles of its duration in milliseconds, and the number of hits.
func measureSearch(t *testing.T, e search.Engine, q search.Query) (p50, p99 float64, hits int) {
	t.Helper()
	const times = 300
	took := make([]time.Duration, times)
	for i := range took {
		began := time.Now()
		r, err := e.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		took[i], hits = time.Since(began), len(r.Hits)
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return ms(took[times/2]), ms(took[times*99/100]), hits
}

// measureIndexing measures how long it takes until what was applied to the index can be found.
func (s *fixture) measureIndexing(t *testing.T, random *rand.Rand) {
	t.Helper()
	for _, n := range []int{1, 100, 1000} {
		var took []time.Duration
		for round := range 10 {
			var rows []table.Site
			for i := range n {
				rows = append(rows, chainShop(random, round*n+i))
			}
			s.writeRows(rows...)
			began := time.Now()
			s.applyBatch(rows...)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		t.Logf("%4d sites are searchable after p50 %v, worst %v", n, took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	}
}
