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
	"lieudit/schemas/locations"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// newLossyStore returns a log that loses the replies of some appends, before or after they are made.
func newLossyStore(store eventstore.Store, seed uint64) eventstore.Store {
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
	return &hookedStore{Store: store, before: lose, after: lose}
}

func TestCeilingHoldsOnSeveralInstancesWithLostReplies(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	small, _ := plan.Lookup(plan.Starter)
	s.plans.Store(&small)
	mustOpen(t, s.newInstance(s.store), "magasins")
	var wg sync.WaitGroup
	for instance := range 3 {
		l := s.newInstance(newLossyStore(s.store, uint64(instance)))
		for n := range 40 {
			wg.Go(func() {
				rows := manyRows(10 + n%3)
				for i := range rows {
					rows[i].ExternalID = fmt.Sprintf("%d-%d-%d", instance, n, i)
				}
				_, _, err := l.WriteBatch(t.Context(), "a", shopMeta, "magasins", Batch{Rows: rows})
				if err != nil && !errors.Is(err, refusal.SitesOverCapacity) {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	f, err := s.newInstance(s.store).CountLocations(t.Context(), "a")
	if err != nil || f.Sites > 220 || f.Sites < 209 {
		t.Errorf("got %d sites, %v, want the ceiling's 220 or a few less", f.Sites, err)
	}
}

func TestTwoSyncsAtOnceAreDecidedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	mustOpen(t, s.newInstance(s.store), "magasins")
	var wg sync.WaitGroup
	for instance := range 2 {
		l := s.newInstance(newLossyStore(s.store, uint64(instance)))
		rows := manyRows(1_500)
		for i := range rows {
			rows[i].Content.Name = fmt.Sprint("of ", instance)
		}
		wg.Go(func() { mustWrite(t, l, "magasins", Batch{Rows: rows[:1_000+400*instance], IsSync: true}) })
	}
	wg.Wait()
	l := s.newInstance(s.store)
	last, err := l.readSite(t.Context(), "a", "magasins", "id-00000")
	if err != nil {
		t.Fatal(err)
	}
	want := 1_000
	if last.Name == "of 1" {
		want = 1_400
	}
	active := 0
	err = l.handler.View(t.Context(), "a", func(state *State) {
		for id, x := range state.referentials["magasins"].sites {
			if !x.active {
				continue
			}
			if active++; active%50 != 0 {
				continue
			}
			if got, err := l.readContent(t.Context(), "a", x.contentAt); err != nil || got.Content.Name != last.Name {
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
	s := newFixture(t)
	mustOpen(t, s.newInstance(s.store), "magasins")
	rows := append(manyRows(1_000), rowWithAddress("here", "H", "1 rue", "Mende"), rowWithAddress("lost", "L", "1 rue", "Atlantis"))
	outcomes := make(chan Outcome, 12)
	var wg sync.WaitGroup
	for instance := range 3 {
		l := s.newInstance(newLossyStore(s.store, uint64(instance)))
		for range 4 {
			wg.Go(func() {
				outcomes <- mustWrite(t, l, "magasins", Batch{Rows: rows, IsSync: true, IdempotencyKey: "k", RequestDigest: []byte("r")})
			})
		}
	}
	wg.Wait()
	close(outcomes)
	first := <-outcomes
	if first.Created != 1_002 || len(first.GeocodedSites) != 1 || len(first.UnlocatedSites) != 1 {
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

func TestPatchIsMadeAgainOnASiteThatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	here, there := s.newInstance(s.store), s.newInstance(s.store)
	mustOpen(t, here, "magasins")
	mustPut(t, here, rowAt("x", "A", 44))
	calls := 0
	got, _, err := here.PatchSite(t.Context(), "a", shopMeta, "magasins", "x", func(c content) (content, error) {
		if calls++; calls == 1 {
			next := rowAt("x", "A", 44)
			next.Content.Phone = "0466000000"
			mustPut(t, there, next)
		}
		c.Name = "B"
		return c, nil
	})
	if err != nil || calls != 2 || got.Name != "B" || got.Phone != "0466000000" || got.Version != 3 {
		t.Errorf("got %+v, %v after %d calls", got, err, calls)
	}
	no := errors.New("no")
	if _, _, err := here.PatchSite(t.Context(), "a", shopMeta, "magasins", "x", func(content) (content, error) { return content{}, no }); err != no {
		t.Errorf("got %v, want the patch's own error", err)
	}
}

// failingGeocoder cannot look anything up.
type failingGeocoder struct{ reason error }

func (b failingGeocoder) Geocode(context.Context, content) (locations.Position, bool, error) {
	return locations.Position{}, false, b.reason
}

func TestASiteThatCannotBeLookedUpIsNotStoredWithoutAPosition(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	mustOpen(t, s.newInstance(s.store), "magasins")
	l, reason := s.newInstance(s.store), errors.New("the vintage is damaged")
	l.geocoder = failingGeocoder{reason}
	_, _, err := l.WriteBatch(t.Context(), "a", shopMeta, "magasins", Batch{Rows: []Row{rowWithAddress("x", "X", "1 rue", "Mende")}})
	if !errors.Is(err, reason) {
		t.Errorf("got %v, want %v", err, reason)
	}
	if got := s.events(t, "locations-a"); len(got) != 1 {
		t.Errorf("got %v, want nothing written", got)
	}
}

func TestWriteEndsWithItsContextAndLosesNoSite(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	mustOpen(t, s.newInstance(s.store), "magasins")
	ctx, cancel := context.WithCancel(t.Context())
	l := s.newInstance(s.store)
	l.geocoder = geocoderFunc(func() { cancel() })
	_, _, err := l.WriteBatch(ctx, "a", shopMeta, "magasins", Batch{Rows: []Row{rowWithAddress("x", "X", "1 rue", "Mende"), rowWithAddress("y", "Y", "1 rue", "Mende")}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if got := s.events(t, "locations-a"); len(got) != 1 {
		t.Errorf("got %v, want nothing written", got)
	}
}
