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
