package address

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"lieudit/queries/address/ban"
	"lieudit/schemas/geo"
)

func completed(t *testing.T, e *Engine, q Query) []Suggestion {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 5
	}
	found, err := e.Complete(t.Context(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return found
}

func first(found []Suggestion) string {
	if len(found) == 0 {
		return "nothing"
	}
	return found[0].ID
}

func TestTheLastWordMayBeUnfinished(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for line, id := range map[string]string{
		"12 rue des li":                "48095_0010_00012",
		"rue des lilas":                "48095_0010",
		"rue des lilas cha":            "48039_0010",
		"12 bis rue des lil":           "48095_0010_00012_bis",
		"av du gal lec":                "48095_0020",
		"8 rue du 8 mai 19":            "48095_0030_00008",
		"5 rue des lilas 48":           "48039_0010_00005",
		"5 rue des lilas 4823":         "48039_0010_00005",
		"3 rue de l'église 48000 bals": "48016_0040_00003",
		"men":                          "48095",
		"10 rue jen":                   "75113_0010_00010",
		"le chap":                      "48095_b001",
		"le monas":                     "48039",
	} {
		if got := first(completed(t, e, Query{Text: line})); got != id {
			t.Errorf("%q: %s, want %s", line, got, id)
		}
	}
}

func TestACommuneIsCompletedAfterALink(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	for line, id := range map[string]string{"saint-alban-sur-": "48132", "saint chely d'": "48140", "3 place du pont saint-chély-d": "48140"} {
		if found := completed(t, e, Query{Text: line}); len(found) == 0 || found[0].CityCode != id {
			t.Errorf("%q: %s, want one of %s", line, first(found), id)
		}
	}
}

func TestTooLittleIsNotCompleted(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for line, want := range map[string]error{"": ErrUnparsable, "?!,": ErrUnparsable, "m": ErrShort, "me": ErrShort, "1 é": ErrShort, "🙂é4": ErrShort, "men": nil} {
		if _, err := e.Complete(t.Context(), Query{Text: line, Limit: 5}); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", line, err, want)
		}
	}
}

func TestFiltersKeepAnswersOut(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for name, c := range map[string]struct {
		Query
		want string
	}{
		"another postcode":         {Query{Text: "rue des lilas", Filter: Filter{Postcodes: []string{"48230"}}}, "48039_0010"},
		"another commune":          {Query{Text: "rue des lilas", Filter: Filter{CityCodes: []string{"48039"}}}, "48039_0010"},
		"a city for its parts":     {Query{Text: "rue", Filter: Filter{CityCodes: []string{"75056"}}}, "75113_0010"},
		"a department":             {Query{Text: "rue de la paix", Filter: Filter{Departments: []string{"75"}}}, "75102_0010"},
		"the wrong department":     {Query{Text: "rue de la paix", Filter: Filter{Departments: []string{"48"}}}, "nothing"},
		"a type":                   {Query{Text: "12 rue des lilas mende", Filter: Filter{Types: []Type{StreetType}}}, "48095_0010"},
		"communes alone":           {Query{Text: "mende", Filter: Filter{Types: []Type{Municipality}}}, "48095"},
		"no commune of the code":   {Query{Text: "mende", Filter: Filter{CityCodes: []string{"99999"}}}, "nothing"},
		"two that exclude another": {Query{Text: "rue des lilas", Filter: Filter{CityCodes: []string{"48039"}, Departments: []string{"75"}}}, "nothing"},
	} {
		if got := first(completed(t, e, c.Query)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWhatLiesNearerComesFirst(t *testing.T) {
	t.Parallel()
	rows := hamlet()
	for i := range rows {
		if rows[i].CodeInsee == "48039" {
			rows[i].Lon, rows[i].Lat = 3.34, 44.46
		}
	}
	e := engineOf(t, rows)
	if got := first(completed(t, e, Query{Text: "rue des lilas"})); got != "48095_0010" {
		t.Errorf("without a position: %s, want the larger commune's", got)
	}
	found := completed(t, e, Query{Text: "rue des lilas", Bias: &geo.Point{Lon: 3.34, Lat: 44.46}})
	if first(found) != "48039_0010" || len(found) < 2 || found[1].ID != "48095_0010" {
		t.Errorf("from Chanac: %d, %s first, want both, Chanac's first", len(found), first(found))
	}
	if got := first(completed(t, e, Query{Text: "rue des lilas mende", Bias: &geo.Point{Lon: 3.34, Lat: 44.46}})); got != "48095_0010" {
		t.Errorf("a position is no filter: %s", got)
	}
}

func TestHighlightsAreCharactersOfTheLabel(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for line, want := range map[string][]string{
		"3 rue de l'eglise mende": {"3 Rue de l'Église", "Mende"},
		"12 bis rue des lil":      {"12bis Rue des Lil"},
		"av gal leclerc 48000":    {"Avenue", "Général Leclerc 48000"},
		"mend":                    {"Mend"},
	} {
		s := completed(t, e, Query{Text: line})[0]
		var got []string
		for _, h := range s.Highlights {
			got = append(got, string([]rune(s.Label)[h.Start:h.Start+h.Length]))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q of %q, want %q", line, got, s.Label, want)
		}
	}
}

func TestTheSameRowsGiveTheSameAnswers(t *testing.T) {
	t.Parallel()
	rows := hamlet()
	shuffled := append([]ban.Row{}, rows...)
	rand.New(rand.NewPCG(5, 5)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	one, other := engineOf(t, rows), engineOf(t, shuffled)
	for _, line := range []string{"rue", "rue des lilas", "3 rue de l'eglise 48000", "10 rue paris", "le chapitre", "48000", "12 rue des lylas"} {
		q := Query{Text: line, Limit: 20}
		a, errA := one.Verify(t.Context(), q)
		b, errB := other.Verify(t.Context(), q)
		if !reflect.DeepEqual(a, b) || !errors.Is(errA, errB) {
			t.Errorf("%q: %v and %v", line, a, b)
		}
		if c, d := completed(t, one, q), completed(t, other, q); !reflect.DeepEqual(c, d) {
			t.Errorf("%q: %v and %v", line, c, d)
		}
	}
}
