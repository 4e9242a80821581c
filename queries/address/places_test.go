package address

import (
	"fmt"
	"slices"
	"testing"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// A word or number of the name of a street may be the name of a commune elsewhere: Grande Rue, Villa du Breuil, Moulin Rouge.

func TestEveryRealStreetNameAloneIsFound(t *testing.T) {
	t.Parallel()
	o := addresstest.RealRows(t)
	e := engineFor(t, o.Vintage)
	asked := map[string]bool{"Lieu-dit": true} // a name without a word
	for i := range o.Rows {
		name := o.Rows[i].Voie
		if asked[name] {
			continue
		}
		asked[name] = true
		found, err := e.Verify(t.Context(), Query{Text: name, Limit: 5})
		isStreet := func(m Match) bool { return sameTerms(m.Street, name) || m.Type == Municipality }
		if err != nil || !slices.ContainsFunc(found, isStreet) {
			t.Errorf("%q verifies to %v, %v", name, labels(found), err)
		}
		if found, err := e.Complete(t.Context(), Query{Text: name, Limit: 5}); err != nil || len(found) == 0 {
			t.Errorf("%q completes to %v, %v", name, found, err)
		}
	}
	t.Logf("%d names", len(asked))
}

// sameTerms reports whether two names have the same terms, in whatever order.
func sameTerms(x, y string) bool {
	sorted := func(name string) []string {
		var all []string
		for _, t := range text.Terms(name) {
			all = append(all, t.Text)
		}
		slices.Sort(all)
		return all
	}
	return slices.Equal(sorted(x), sorted(y))
}

// labels are the labels of matches.
func labels(found []Match) (all []string) {
	for _, m := range found {
		all = append(all, m.Label)
	}
	return all
}

func TestARealAddressWithoutItsCommuneIsNotOneOfAnother(t *testing.T) {
	t.Parallel()
	o := addresstest.RealRows(t)
	e := engineFor(t, o.Vintage)
	asked, found := 0, 0
	for r := range everyHouse(o.Rows, 37) {
		if r.Numero > 999 {
			continue // it may be a postcode
		}
		for _, line := range []string{
			fmt.Sprintf("%d%s %s", r.Numero, r.Rep, r.Voie),
			fmt.Sprintf("%s, %d%s %s", r.Commune, r.Numero, r.Rep, r.Voie),
		} {
			all, err := e.Verify(t.Context(), Query{Text: line, Limit: 20})
			if err != nil {
				t.Fatal(err)
			}
			asked++
			if len(all) > 0 && text.Fold(all[0].Street) == text.Fold(r.Voie) {
				found++
			} else {
				t.Logf("%q: %v", line, labels(all))
			}
		}
	}
	t.Logf("%d of %d", found, asked)
	if found*1000 < asked*998 {
		t.Errorf("%d of %d lines are answered with their street, want 998 in 1000", found, asked)
	}
}

// everyHouse yields every nth row that has a house number.
func everyHouse(rows []ban.Row, n int) func(yield func(*ban.Row) bool) {
	return func(yield func(*ban.Row) bool) {
		for i := 0; i < len(rows); i += n {
			if r := &rows[i]; r.Kind != ban.Locality && r.Numero > 0 && !yield(r) {
				return
			}
		}
	}
}

func TestAnAddressInAnUnknownCommuneIsNotFoundElsewhere(t *testing.T) {
	t.Parallel()
	o := addresstest.Lozere(t)
	e := engineFor(t, o.Vintage)
	towns := []string{"Genève", "Bruxelles", "Londres", "Madrid", "Barcelone", "Zürich", "Luxembourg", "Turin", "Milano", "Berlin", "New York", "Montréal",
		"Liège", "Namur", "Lausanne", "Fribourg-en-Brisgau", "Sarrebruck", "Girona", "Dakar", "Villequelconque"}
	i := 0
	for r := range everyHouse(o.Rows, 401) {
		q := Query{Number: fmt.Sprint(r.Numero), Street: r.Voie, Commune: towns[i%len(towns)], Limit: 5}
		if found, err := e.Verify(t.Context(), q); err != nil || len(found) > 0 {
			t.Errorf("%+v: %v, %v", q, labels(found), err)
		}
		q.Commune = r.Commune
		if found, err := e.Verify(t.Context(), q); err != nil || len(found) == 0 || found[0].City != r.Commune {
			t.Errorf("%+v: %v, %v", q, labels(found), err)
		}
		i++
	}
}

// firstMatch is the best match of a line.
func firstMatch(t *testing.T, e *Engine, line string) (m Match, ok bool) {
	t.Helper()
	found, err := e.Verify(t.Context(), Query{Text: line, Limit: 5})
	if err != nil && err != ErrUnparsable {
		t.Fatal(err)
	}
	if len(found) == 0 {
		return m, false
	}
	return found[0], true
}

func TestTheFormsInWhichMapsShowAnAddressAreRead(t *testing.T) {
	t.Parallel()
	o := addresstest.Lozere(t)
	e := engineFor(t, o.Vintage)
	asked, right := 0, 0
	for r := range everyHouse(o.Rows, 3) {
		if r.CodeInsee[:2] != "48" {
			continue
		}
		chief := [...]string{"Mende", "Florac Trois Rivières"}[asked%2]
		line := fmt.Sprintf("%d%s, %s, %s, %s, Lozère, Occitanie, France métropolitaine, %s, France", r.Numero, r.Rep, r.Voie, r.Commune, chief, r.CodePostal)
		asked++
		if m, ok := firstMatch(t, e, line); ok && m.ID == r.ID {
			right++
		} else if asked-right < 10 {
			t.Logf("%q: %s (%s), want %s", line, m.Label, m.ID, r.ID)
		}
	}
	t.Logf("%d of %d", right, asked)
	if right*10_000 < asked*9995 {
		t.Errorf("%d of %d lines in the form of a map are answered with their row", right, asked)
	}
}

func TestADepartmentOrRegionWithoutACommuneNarrows(t *testing.T) {
	t.Parallel()
	o := addresstest.RealRows(t)
	e := engineFor(t, o.Vintage)
	asked := 0
	for r := range everyHouse(o.Rows, 211) {
		if r.CodeInsee[:2] != "48" {
			continue
		}
		asked++
		street := fmt.Sprintf("%d%s %s", r.Numero, r.Rep, r.Voie)
		for _, division := range []string{", Lozère", " Lozère", ", Occitanie", ", Lozère, Occitanie, France"} {
			if terms := text.Terms(r.Voie); division[0] == ' ' && text.ClassOf(terms[len(terms)-1].Text) == text.StreetType {
				continue // Grand Rue Lozère may be a name
			}
			m, ok := firstMatch(t, e, street+division)
			if !ok || text.Fold(m.Street) != text.Fold(r.Voie) || m.Department.Code != "48" {
				t.Errorf("%q: %v %s", street+division, ok, m.Label)
			}
		}
		if m, ok := firstMatch(t, e, street+", Finistère"); ok {
			t.Errorf("%q: %s", street+", Finistère", m.Label)
		}
	}
	t.Logf("%d rows", asked)
}
