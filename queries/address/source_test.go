package address

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/vintage"
	"lieudit/schemas/geo"
)

// sourceFunc is a source that is a function.
type sourceFunc func(context.Context, []CandidateQuery) ([]CandidateResult, error)

func (f sourceFunc) Find(ctx context.Context, asks []CandidateQuery) ([]CandidateResult, error) {
	return f(ctx, asks)
}

// everything names all that there is, whatever is asked.
func everything(v *vintage.Vintage) sourceFunc {
	upTo := func(n int) (all []uint32) {
		for i := range uint32(n) {
			all = append(all, i)
		}
		return all
	}
	return func(_ context.Context, asks []CandidateQuery) (found []CandidateResult, err error) {
		for _, a := range asks {
			f := CandidateResult{Entities: upTo(v.Streets + v.Localities)}
			if a.Communes {
				f.Entities = upTo(v.Communes)
			}
			found = append(found, f)
		}
		return found, nil
	}
}

// onAsMany is an engine on a source that names as many as it may, whatever they are.
func onAsMany(own *Engine) *Engine {
	return NewOn(own.v, own.table, sourceFunc(func(_ context.Context, asks []CandidateQuery) (found []CandidateResult, err error) {
		for k, a := range asks {
			of, f := own.v.Streets, CandidateResult{More: true}
			if a.Communes {
				of = own.v.Communes
			}
			for i := range min(a.Limit, of) {
				f.Entities = append(f.Entities, uint32((i*37+k*911)%of))
			}
			found = append(found, f)
		}
		return found, nil
	}))
}

// lines are questions of every kind the rules speak of.
func lines() []string {
	return []string{
		"12 bis rue des lilas 48000 mende", "12B R. DES LILAS, 48000 MENDE", "Bât. B 3e étage 12 rue des lilas BP 12 48000 Mende FRANCE",
		"Mende 12 rue des lilas", "3ter av gal leclerc 48000 mende", "8 rue du 8 mai 1945 mende", "10 rue jenner paris 13",
		"10 rue Jenner Paris 13e Arrondissement", "2 place du foirail, le monastier", "2 place du foirail, les hermaux, 48230 chanac",
		"7 route de mende chanac", "lieu-dit Le Chapitre 48000 Mende", "12 rue des lilas 48095", "12 rue des lilas 48230 mende",
		"12 rue des lylas 48000 mende", "12 rue des lilas 48000 mende plage", "12 lilas 48000 mende", "13 rue des lilas 48000 mende",
		"12 rue des lilas 48900 mende cedex", "3 rue de l'église 48000", "2 place du foirail 48230 la canourgue", "mende", "48000", "mende 48000",
		"le monastier", "", "🙂🙂", "zzzz qqqq", "4 rue Zzzyx 99999 Qqqqq", "12 rue zzzyx 48000 Mende",
	}
}

func TestASourceThatNamesEverythingAnswersAsTheOwnIndex(t *testing.T) {
	t.Parallel()
	own := engineOf(t, hamlet())
	other := NewOn(own.v, own.table, everything(own.v))
	for _, line := range lines() {
		q := Query{Text: line, Limit: 1}
		want, wantErr := own.Verify(t.Context(), q)
		got, err := other.Verify(t.Context(), q)
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, wantErr) {
			t.Errorf("verify %q: %v, want %v (-own +source)\n%s", line, err, wantErr, diff)
		}
	}
	for _, line := range []string{"12 rue des li", "rue des lilas 482", "mend", "2 place du foir", "av", "10 rue jen", "chapi"} {
		q := Query{Text: line, Limit: 1}
		want, wantErr := own.Complete(t.Context(), q)
		got, err := other.Complete(t.Context(), q)
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, wantErr) {
			t.Errorf("complete %q: %v, want %v (-own +source)\n%s", line, err, wantErr, diff)
		}
	}
}

func TestAnAddressIsNotFoundInAnotherArrondissement(t *testing.T) {
	t.Parallel()
	own := engineOf(t, hamlet())
	for name, e := range map[string]*Engine{"own": own, "everything": NewOn(own.v, own.table, everything(own.v))} {
		for line, want := range map[string]string{"10 rue Jenner Paris 2e Arrondissement": "", "10 rue Jenner Paris 13e Arrondissement": "75113_0010_00010"} {
			got := ""
			if found, err := e.Verify(t.Context(), Query{Text: line, Limit: 1}); err != nil {
				t.Errorf("%s, %s: %v", name, line, err)
			} else if len(found) > 0 {
				got = found[0].ID
			}
			if got != want {
				t.Errorf("%s, %s: got %q, want %q", name, line, got, want)
			}
		}
	}
}

func TestNothingButWhatASourceNamesIsAnswered(t *testing.T) {
	t.Parallel()
	own := engineOf(t, hamlet())
	e := NewOn(own.v, own.table, sourceFunc(func(_ context.Context, asks []CandidateQuery) ([]CandidateResult, error) {
		return make([]CandidateResult, len(asks)), nil
	}))
	if found, err := e.Verify(t.Context(), Query{Text: "12 rue des lilas 48000 mende", Limit: 5}); err != nil || len(found) > 0 {
		t.Errorf("%v, %v, want nothing", found, err)
	}
}

func TestWhatASourceMayHaveLeftOutIsNotExact(t *testing.T) {
	t.Parallel()
	own := engineOf(t, hamlet())
	all := everything(own.v)
	e := NewOn(own.v, own.table, sourceFunc(func(ctx context.Context, asks []CandidateQuery) ([]CandidateResult, error) {
		found, err := all(ctx, asks)
		for i := range found {
			found[i].More = true
		}
		return found, err
	}))
	found, err := e.Verify(t.Context(), Query{Text: "12 rue des lilas 48000 mende", Limit: 5})
	if err != nil || len(found) == 0 || found[0].Verdict != Probable {
		t.Errorf("%+v, %v, want a %s match", found, err, Probable)
	}
}

func TestASourceThatFailsFailsWhatIsSearchedAlone(t *testing.T) {
	t.Parallel()
	own := engineOf(t, hamlet())
	away := errors.New("away")
	for name, source := range map[string]sourceFunc{
		"an error":        func(context.Context, []CandidateQuery) ([]CandidateResult, error) { return nil, away },
		"too few answers": func(context.Context, []CandidateQuery) ([]CandidateResult, error) { return nil, nil },
	} {
		e := NewOn(own.v, own.table, source)
		if _, err := e.Verify(t.Context(), Query{Text: "12 rue des lilas mende", Limit: 5}); err == nil || errors.Is(err, ErrUnparsable) {
			t.Errorf("%s: verify answers %v", name, err)
		}
		if _, err := e.Complete(t.Context(), Query{Text: "12 rue des lilas mende", Limit: 5}); err == nil || errors.Is(err, ErrUnparsable) {
			t.Errorf("%s: complete answers %v", name, err)
		}
		if _, ok := e.View("48095_0010_00012"); !ok {
			t.Errorf("%s: an id is not found", name)
		}
		if len(e.Near(geo.Point{Lon: 3.5012, Lat: 44.5}, 500, 5, Filter{})) == 0 {
			t.Errorf("%s: a position is not found", name)
		}
		if found, err := e.Localities(LocalityQuery{Text: "mende", Limit: 5}); err != nil || len(found) == 0 {
			t.Errorf("%s: a commune is not found: %v", name, err)
		}
	}
}

// asks are the rounds a question takes when nothing is found.
func asks(t *testing.T, e *Engine, q Query) [][]CandidateQuery {
	t.Helper()
	return asksOf(t, e, func(e *Engine) error { _, err := e.Verify(t.Context(), q); return err })
}

// asksOf are the rounds that a call takes when nothing is found.
func asksOf(t *testing.T, e *Engine, call func(*Engine) error) (rounds [][]CandidateQuery) {
	t.Helper()
	other := NewOn(e.v, e.table, sourceFunc(func(_ context.Context, asks []CandidateQuery) ([]CandidateResult, error) {
		rounds = append(rounds, slices.Clone(asks))
		return make([]CandidateResult, len(asks)), nil
	}))
	if err := call(other); err != nil && !errors.Is(err, ErrUnparsable) {
		t.Fatal(err)
	}
	return rounds
}

func TestAsksAreCleanedAndGrowLooser(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	rounds := asks(t, e, Query{Text: "Bât. B 12 bis R. DES LILAS, BP 3, 48000 MENDE CEDEX", Limit: 5})
	var got [][]string
	for _, round := range rounds {
		for _, a := range round {
			got = append(got, append(a.Words, a.Postcodes...))
		}
	}
	want := [][]string{
		{"rue", "lilas", "mende", "48000"},
		{"rue", "lilas", "mende"}, {"lilas"}, // the last in the communes of the name and of the postcode
		{"lilas", "mende", "48000"}, {"lilas", "mende"}, {"rue", "lilas", "mende"}, // the last for communes
		{"rue", "mende"}, {"rue", "lilas"},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(rounds) != 5 {
		t.Errorf("%d rounds (-want +got)\n%s", len(rounds), diff)
	}
}

func TestWordsThatMayBeUnfinishedOrMisspeltAreAskedForAlone(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	mende, _ := e.v.CommuneOf("48095")
	for name, c := range map[string]struct {
		rounds [][]CandidateQuery
		want   []string
	}{
		"unfinished": {asksOf(t, e, func(e *Engine) error {
			_, err := e.Complete(t.Context(), Query{Text: "3 av gen lec mende", Limit: 5})
			return err
		}), []string{"gen", "lec"}},
		"misspelt": {asks(t, e, Query{Text: "12 rue des xilas mende", Limit: 5}), []string{"xilas", "lilas"}},
	} {
		var got []string
		for _, round := range c.rounds {
			for _, a := range round {
				if len(a.Words) == 1 && !slices.Contains(got, a.Words[0]) && slices.Equal(a.Within, []uint32{mende}) {
					got = append(got, a.Words[0])
				}
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestAnUnfinishedWordIsPreferredToAMisspeltOne(t *testing.T) {
	t.Parallel()
	mende := addresstest.NewArea("48000", "48095", "Mende")
	own := engineOf(t, append(hamlet(), addresstest.NewHouse(mende, "0070", "Rue de la Combe", 5, ""), addresstest.NewHouse(mende, "0080", "Rue des Combelles", 5, "")))
	streetNamed := func(name string) uint32 {
		for street := range uint32(own.v.Streets) {
			if string(own.v.Name(own.v.StreetName(street))) == name {
				return street
			}
		}
		t.Fatalf("no %s", name)
		return 0
	}
	combe, combelles := streetNamed("Rue de la Combe"), streetNamed("Rue des Combelles")
	e := NewOn(own.v, own.table, sourceFunc(func(_ context.Context, asks []CandidateQuery) (found []CandidateResult, err error) {
		for _, a := range asks {
			f := CandidateResult{Entities: []uint32{combe}} // only the last word may be unfinished
			if len(a.Words) == 1 {
				f.Entities = []uint32{combelles}
			}
			if a.Communes {
				f.Entities = nil
			}
			found = append(found, f)
		}
		return found, nil
	}))
	if found, err := e.Complete(t.Context(), Query{Text: "5 rue des comb mende", Limit: 5}); err != nil || len(found) == 0 || found[0].ID != "48095_0080_00005" {
		t.Errorf("%+v, %v, want the street whose name begins so", found, err)
	}
}

func TestAnUnfinishedWordIsAlsoAskedForAsTheNumberItBegins(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	var got [][]string
	for _, round := range asksOf(t, e, func(e *Engine) error {
		_, err := e.Complete(t.Context(), Query{Text: "8 rue neu", Limit: 5})
		return err
	})[:1] {
		for _, a := range round {
			got = append(got, a.Words)
		}
	}
	want := [][]string{{"rue", "neu"}, {"neu"}, {"rue", "9"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAsksKeepToTheFilter(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	chanac, _ := e.v.CommuneOf("48039")
	for _, round := range asks(t, e, Query{Text: "rue des lilas", Limit: 5, Filter: Filter{Postcodes: []string{"48230"}}}) {
		for _, a := range round {
			if !slices.Equal(a.Within, []uint32{chanac}) || !slices.Equal(a.Postcodes, []string{"48230"}) {
				t.Errorf("%+v leads elsewhere", a)
			}
		}
	}
	if rounds := asks(t, e, Query{Text: "rue des lilas", Limit: 5, Filter: Filter{CityCodes: []string{"99999"}}}); len(rounds) > 0 {
		t.Errorf("nothing can be meant, and %+v is asked", rounds)
	}
}
