package address

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/address/vintage"
)

// sourceFunc is a source that is a function.
type sourceFunc func(context.Context, []Ask) ([]Found, error)

func (f sourceFunc) Find(ctx context.Context, asks []Ask) ([]Found, error) { return f(ctx, asks) }

// everything names all that there is, whatever is asked.
func everything(v *vintage.Vintage) sourceFunc {
	upTo := func(n int) (all []uint32) {
		for i := range uint32(n) {
			all = append(all, i)
		}
		return all
	}
	return func(_ context.Context, asks []Ask) (found []Found, err error) {
		for _, a := range asks {
			f := Found{Entities: upTo(v.Streets + v.Localities)}
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
	return NewOn(own.v, own.table, sourceFunc(func(_ context.Context, asks []Ask) (found []Found, err error) {
		for k, a := range asks {
			of, f := own.v.Streets, Found{More: true}
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

func TestNothingButWhatASourceNamesIsAnswered(t *testing.T) {
	t.Parallel()
	own := engineOf(t, hamlet())
	e := NewOn(own.v, own.table, sourceFunc(func(_ context.Context, asks []Ask) ([]Found, error) { return make([]Found, len(asks)), nil }))
	if found, err := e.Verify(t.Context(), Query{Text: "12 rue des lilas 48000 mende", Limit: 5}); err != nil || len(found) > 0 {
		t.Errorf("%v, %v, want nothing", found, err)
	}
}

func TestWhatASourceMayHaveLeftOutIsNotExact(t *testing.T) {
	t.Parallel()
	own := engineOf(t, hamlet())
	all := everything(own.v)
	e := NewOn(own.v, own.table, sourceFunc(func(ctx context.Context, asks []Ask) ([]Found, error) {
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
		"an error":        func(context.Context, []Ask) ([]Found, error) { return nil, away },
		"too few answers": func(context.Context, []Ask) ([]Found, error) { return nil, nil },
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
		if len(e.Near(Position{Lon: 3.5012, Lat: 44.5}, 500, 5, Filter{})) == 0 {
			t.Errorf("%s: a position is not found", name)
		}
		if found, err := e.Localities(LocalityQuery{Text: "mende", Limit: 5}); err != nil || len(found) == 0 {
			t.Errorf("%s: a commune is not found: %v", name, err)
		}
	}
}

// asks are the rounds a question takes when nothing is found.
func asks(t *testing.T, e *Engine, q Query) (rounds [][]Ask) {
	t.Helper()
	other := NewOn(e.v, e.table, sourceFunc(func(_ context.Context, asks []Ask) ([]Found, error) {
		rounds = append(rounds, slices.Clone(asks))
		return make([]Found, len(asks)), nil
	}))
	if _, err := other.Verify(t.Context(), q); err != nil && !errors.Is(err, ErrUnparsable) {
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
		{"rue", "lilas", "mende"}, {"lilas", "mende", "48000"}, {"lilas", "mende"}, {"rue", "lilas", "mende"}, // the last for communes
		{"rue", "mende", "48000"}, {"rue", "mende"}, {"rue", "lilas", "48000"}, {"rue", "lilas"},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(rounds) != 4 {
		t.Errorf("%d rounds (-want +got)\n%s", len(rounds), diff)
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
