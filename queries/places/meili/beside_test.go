package meili_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"lieudit/queries/places/finder"
	"lieudit/queries/places/finder/findertest"
	"lieudit/queries/places/local"
	"lieudit/queries/places/meili/meilitest"
	"lieudit/schemas/site"
	"lieudit/schemas/table"
)

var (
	trades  = []string{"Boulangerie", "Pharmacie", "Garage", "Librairie", "Épicerie", "Boucherie", "Opticien", "Fleuriste", "Pressing", "Coiffure", "Banque", "Agence", "Brasserie", "Hôtel"}
	named   = []string{"du Marché", "de la Gare", "Saint-Michel", "des Lilas", "du Château", "de l'Église", "Lafayette", "Victor Hugo", "des Arceaux", "du Pont Neuf", "Martin", "Durand", "Bertrand"}
	streets = []string{"rue de la République", "avenue Jean Jaurès", "place du Général de Gaulle", "boulevard Voltaire", "chemin des Écoles", "rue Pasteur", "allée des Tilleuls", "route de Mende"}
	cities  = []string{"Mende", "Marvejols", "Florac", "Langogne", "Montpellier", "Nîmes", "Béziers", "Alès", "Rodez", "Millau", "Clermont-Ferrand", "Le Puy-en-Velay", "Saint-Étienne", "Valence"}
	tagged  = []string{"drive", "parking", "accès PMR", "wi-fi", "retrait", "bio", "24/7"}
)

// chain is the n-th site of a chain of shops.
func chain(dice *rand.Rand, n int) table.Site {
	of := func(words []string) string { return words[dice.IntN(len(words))] }
	c := site.Content{
		Name: of(trades) + " " + of(named), Tags: []string{of(tagged), of(tagged)},
		Address: &site.Address{Line1: fmt.Sprint(1+dice.IntN(180), " ", of(streets)), PostalCode: fmt.Sprint(30000 + dice.IntN(18)*1000), City: of(cities)},
	}
	return findertest.Row("a", "shops", fmt.Sprintf("mag-%05d", n), site.Stored{Content: c,
		Position: &site.Position{Lat: 43.5 + dice.Float64()*3, Lon: 2.5 + dice.Float64()*3, Source: site.FromBan}})
}

// TestMemoryAndMeilisearchSideBySide tells how long both take to answer the same questions about the largest account there
// can be.
func TestMemoryAndMeilisearchSideBySide(t *testing.T) {
	if !meilitest.Real() || os.Getenv("LIEUDIT_TEST_LONG") == "" {
		t.Skipf("set LIEUDIT_TEST_LONG=1 and %s to compare the two", meilitest.Variable)
	}
	s := open(t)
	const sites = 11_000
	dice := rand.New(rand.NewPCG(1, 2))
	began := time.Now()
	for from := 0; from < sites; from += 2000 {
		var rows []table.Site
		for n := from; n < min(from+2000, sites); n++ {
			rows = append(rows, chain(dice, n))
		}
		s.Put(nil, rows...)
	}
	t.Logf("%d sites told in %.1f s", sites, time.Since(began).Seconds())
	engines := map[string]finder.Engine{"memory": local.New(s.shelf, func(string) uint64 { return 0 }, time.Now, local.Held), "meilisearch": s.index}
	center := &finder.Point{Lat: 44.5, Lon: 3.5}
	for _, c := range []struct {
		name string
		q    finder.Query
	}{
		{"all, by name", finder.Query{}},
		{"a letter", finder.Query{Text: "b"}},
		{"a beginning", finder.Query{Text: "boul"}},
		{"two words", finder.Query{Text: "pharmacie mende"}},
		{"two typos", finder.Query{Text: "boulengerie montpelier"}},
		{"abbreviated", finder.Query{Text: "bd voltaire alès"}},
		{"within 10 km", finder.Query{Center: center, Radius: 10_000}},
		{"within 10 km, a word", finder.Query{Center: center, Radius: 10_000, Text: "hotel"}},
		{"within 100 km", finder.Query{Center: center, Radius: 100_000}},
		{"nearest of all", finder.Query{Center: center, Sort: finder.ByDistance}},
		{"a box and two tags", finder.Query{Box: &finder.Box{West: 3, South: 44, East: 4, North: 45}, Tags: []string{"drive", "bio"}}},
		{"external id", finder.Query{Text: "mag-01234", Private: true}},
	} {
		c.q.Account, c.q.Limit = "a", 20
		for _, name := range []string{"memory", "meilisearch"} {
			p50, p99, hits := timed(t, engines[name], c.q)
			t.Logf("%-22s %-12s p50 %8.3f ms  p99 %8.3f ms  %d hits", c.name, name, p50, p99, hits)
		}
	}
	s.searchable(t, dice)
}

// timed asks again and again.
func timed(t *testing.T, e finder.Engine, q finder.Query) (p50, p99 float64, hits int) {
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

// searchable tells how long it takes until what is told is found.
func (s *stage) searchable(t *testing.T, dice *rand.Rand) {
	t.Helper()
	for _, n := range []int{1, 100, 1000} {
		var took []time.Duration
		for round := range 10 {
			var rows []table.Site
			for i := range n {
				rows = append(rows, chain(dice, round*n+i))
			}
			s.write(rows...)
			began := time.Now()
			s.tell(rows...)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		t.Logf("%4d sites are searchable after p50 %v, worst %v", n, took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	}
}
