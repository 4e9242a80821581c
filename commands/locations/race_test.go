package locations

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/schemas/plan"
	"lieudit/schemas/site"
)

// flaky is a log that the replies of some appends are lost of, before or after they are made.
func flaky(store eventstore.Store, seed uint64) eventstore.Store {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 2))
	lose := func(string) error {
		mu.Lock()
		defer mu.Unlock()
		if rng.IntN(4) == 0 {
			return eventstore.ErrUnknown
		}
		return nil
	}
	return &tapped{Store: store, before: lose, after: lose}
}

func TestCeilingHoldsOnSeveralInstancesWithLostReplies(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	small, _ := plan.Lookup(plan.Starter)
	s.plans.Store(&small)
	opened(t, s.desk(s.store), "magasins")
	var wg sync.WaitGroup
	for instance := range 3 {
		l := s.desk(flaky(s.store, uint64(instance)))
		for n := range 40 {
			wg.Go(func() {
				rows := many(10 + n%3)
				for i := range rows {
					rows[i].ExternalID = fmt.Sprintf("%d-%d-%d", instance, n, i)
				}
				_, _, err := l.Write(t.Context(), "a", shop, "magasins", Batch{Rows: rows})
				if full := new(SiteCapError); err != nil && !errors.As(err, &full) {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	f, err := s.desk(s.store).Figures(t.Context(), "a")
	if err != nil || f.Sites > 220 || f.Sites < 209 {
		t.Errorf("got %d sites, %v, want the ceiling's 220 or a few less", f.Sites, err)
	}
}

func TestTwoSyncsAtOnceAreOneAfterTheOther(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	opened(t, s.desk(s.store), "magasins")
	var wg sync.WaitGroup
	for instance := range 2 {
		l := s.desk(flaky(s.store, uint64(instance)))
		rows := many(1_500)
		for i := range rows {
			rows[i].Content.Name = fmt.Sprint("of ", instance)
		}
		wg.Go(func() { written(t, l, "magasins", Batch{Rows: rows[:1_000+400*instance], Whole: true}) })
	}
	wg.Wait()
	l := s.desk(s.store)
	last, err := l.show(t.Context(), "a", "magasins", "id-00000")
	if err != nil {
		t.Fatal(err)
	}
	want := 1_000
	if last.Name == "of 1" {
		want = 1_400
	}
	active := 0
	err = l.desk.View(t.Context(), "a", func(state *State) {
		for id, x := range state.groups["magasins"].sites {
			if !x.active {
				continue
			}
			if active++; active%50 != 0 {
				continue
			}
			if got, err := l.stored(t.Context(), "a", x.content); err != nil || got.Content.Name != last.Name {
				t.Errorf("%s: got %q, %v, want %q", id, got.Content.Name, err, last.Name)
			}
		}
	})
	if err != nil || active != want {
		t.Errorf("got %d sites, %v, want the %d of %q", active, err, want, last.Name)
	}
}

func TestOneOfManyWithTheSameKeyWrites(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	opened(t, s.desk(s.store), "magasins")
	rows := append(many(1_000), in("here", "H", "1 rue", "Mende"), in("lost", "L", "1 rue", "Atlantis"))
	outcomes := make(chan Outcome, 12)
	var wg sync.WaitGroup
	for instance := range 3 {
		l := s.desk(flaky(s.store, uint64(instance)))
		for range 4 {
			wg.Go(func() {
				outcomes <- written(t, l, "magasins", Batch{Rows: rows, Whole: true, Key: "k", Request: []byte("r")})
			})
		}
	}
	wg.Wait()
	close(outcomes)
	first := <-outcomes
	if first.Created != 1_002 || len(first.Placements) != 1 || len(first.NotPlaced) != 1 {
		t.Errorf("got %+v", first)
	}
	for o := range outcomes {
		if diff := cmp.Diff(first, o); diff != "" {
			t.Errorf("two answers to one request:\n%s", diff)
		}
	}
	if got := s.events(t, "locations-a"); len(got) != 2 {
		t.Errorf("got %v, want one commit", got)
	}
}

func TestPatchOfASiteThatChangesMeanwhileIsMadeOnWhatItIsThen(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	here, there := s.desk(s.store), s.desk(s.store)
	opened(t, here, "magasins")
	put(t, here, at("x", "A", 44))
	calls := 0
	got, _, err := here.Patch(t.Context(), "a", shop, "magasins", "x", func(c content) (content, error) {
		if calls++; calls == 1 {
			next := at("x", "A", 44)
			next.Content.Phone = "04"
			put(t, there, next)
		}
		c.Name = "B"
		return c, nil
	})
	if err != nil || calls != 2 || got.Name != "B" || got.Phone != "04" || got.Version != 3 {
		t.Errorf("got %+v, %v after %d calls", got, err, calls)
	}
	no := errors.New("no")
	if _, _, err := here.Patch(t.Context(), "a", shop, "magasins", "x", func(content) (content, error) { return content{}, no }); err != no {
		t.Errorf("got %v, want the patch's own error", err)
	}
}

// broken is a placer that cannot look anything up.
type broken struct{ reason error }

func (b broken) Place(context.Context, content) (site.Position, bool, error) {
	return site.Position{}, false, b.reason
}

func TestASiteThatCannotBeLookedUpIsNotStoredWithoutAPosition(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	opened(t, s.desk(s.store), "magasins")
	l, reason := s.desk(s.store), errors.New("the vintage is damaged")
	l.placer = broken{reason}
	_, _, err := l.Write(t.Context(), "a", shop, "magasins", Batch{Rows: []Row{in("x", "X", "1 rue", "Mende")}})
	if !errors.Is(err, reason) {
		t.Errorf("got %v, want %v", err, reason)
	}
	if got := s.events(t, "locations-a"); len(got) != 1 {
		t.Errorf("got %v, want nothing written", got)
	}
}

func TestWriteEndsWithItsContextAndLosesNoSite(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	opened(t, s.desk(s.store), "magasins")
	ctx, cancel := context.WithCancel(t.Context())
	l := s.desk(s.store)
	l.placer = placing(func() { cancel() })
	_, _, err := l.Write(ctx, "a", shop, "magasins", Batch{Rows: []Row{in("x", "X", "1 rue", "Mende"), in("y", "Y", "1 rue", "Mende")}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if got := s.events(t, "locations-a"); len(got) != 1 {
		t.Errorf("got %v, want nothing written", got)
	}
}
