package locations

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/site"
)

type content = site.Content

// placing is a placer that finds nothing, and says that it was asked.
type placing func()

func (p placing) Place(context.Context, content) (site.Position, bool, error) {
	p()
	return site.Position{}, false, nil
}

func TestRequestWithAKeyIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	l := s.desk(s.store)
	opened(t, l, "magasins")
	opened(t, l, "depots")
	b := Batch{Rows: []Row{at("x", "X", 44), in("y", "Y", "1 rue", "Mende"), in("z", "Z", "1 rue", "Atlantis")}, Whole: true, Key: "k", Request: []byte("1")}
	first := written(t, l, "magasins", b)
	put(t, l, at("w", "W", 44)) // the answer stays as it was
	asked := s.ban.asked
	for _, again := range []*Locations{l, s.desk(s.store)} {
		if diff := cmp.Diff(first, written(t, again, "magasins", b)); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	}
	if s.ban.asked != asked {
		t.Errorf("sites were placed %d times again", s.ban.asked-asked)
	}
	other := b
	other.Request = []byte("2")
	upsert := b
	upsert.Whole = false
	for _, b := range []Batch{other, upsert} {
		if _, _, err := l.Write(t.Context(), "a", shop, "magasins", b); !errors.Is(err, ErrOtherRequest) {
			t.Errorf("got %v, want ErrOtherRequest", err)
		}
	}
	if o := written(t, l, "depots", other); o.Created != 3 {
		t.Errorf("got %+v, want a key of another referential to be another", o)
	}
	dry := other
	dry.DryRun = true
	if o := written(t, l, "magasins", dry); o.Deactivated != 1 || o.Key != "" {
		t.Errorf("got %+v, want a dry run that does not look at the key", o)
	}
}

func TestRequestThatChangedNothingIsKept(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	l := s.desk(s.store)
	opened(t, l, "magasins")
	b := Batch{Rows: []Row{at("x", "X", 44)}, Whole: true}
	written(t, l, "magasins", b)
	b.Key, b.Request = "k", []byte("1")
	first := written(t, l, "magasins", b)
	put(t, l, at("x", "Y", 44))
	if diff := cmp.Diff(first, written(t, l, "magasins", b)); diff != "" || first.Unchanged != 1 {
		t.Errorf("got %+v at first, then\n%s", first, diff)
	}
	if got := s.events(t, "locations-a"); len(got) != 4 || got[2] != (event.RequestKept{}).EventType() {
		t.Errorf("got %v, want the request kept once", got)
	}
}

func TestRefusalIsNotKept(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	l := s.desk(s.store)
	opened(t, l, "magasins")
	written(t, l, "magasins", Batch{Rows: many(3)})
	b := Batch{Rows: many(1), Whole: true, Key: "k", Request: []byte("1")}
	for range 2 {
		var reduced *ReductionError
		if _, _, err := l.Write(t.Context(), "a", shop, "magasins", b); !errors.As(err, &reduced) {
			t.Errorf("got %v, want a suspicious reduction", err)
		}
	}
	b.Confirmed, b.Request = true, []byte("2")
	if o := written(t, l, "magasins", b); o.Deactivated != 2 {
		t.Errorf("got %+v", o)
	}
}

func TestKeyIsForgottenAfterADay(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	l := s.desk(s.store)
	opened(t, l, "magasins")
	b := Batch{Rows: []Row{at("x", "X", 44)}, Key: "k", Request: []byte("1")}
	written(t, l, "magasins", b)
	put(t, l, at("x", "Y", 44))
	s.clock.Store(int64(24*time.Hour - time.Minute))
	if o := written(t, l, "magasins", b); o.Created != 1 {
		t.Errorf("got %+v within the day, want the first answer", o.SitesWritten)
	}
	s.clock.Store(int64(24*time.Hour + time.Minute))
	if o := written(t, l, "magasins", b); o.Updated != 1 {
		t.Errorf("got %+v after a day, want it done again", o.SitesWritten)
	}
}

func TestStateHoldsTheKeysOfOneDay(t *testing.T) {
	t.Parallel()
	s := given()
	fact := func(hour int, key string) {
		w := event.SitesWritten{Referential: "r", Key: key}
		Evolve(s, commands.Fact{Event: event.RequestKept{SitesWritten: w}, At: now.Add(time.Duration(hour) * time.Hour), Revision: eventstore.Revision(hour)})
	}
	for hour := range 100 {
		fact(hour, string(rune('a'+hour%30)))
		if n := len(s.answers.kept); n != min(hour+1, 24) || len(s.answers.order) != n {
			t.Fatalf("hour %d: got %d keys in %d places", hour, n, len(s.answers.order))
		}
	}
	fact(200, "")
	if len(s.answers.kept) != 0 {
		t.Errorf("got %v, want none after days without a key", s.answers.kept)
	}
}

func TestErasedAccountFoldsAndReadsAsEmpty(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	l := s.desk(s.store)
	opened(t, l, "magasins")
	b := Batch{Rows: append(many(1_000), in("x", "X", "1 rue", "Mende")), Key: "k", Request: []byte("1")}
	written(t, l, "magasins", b)
	if err := s.vault.Destroy(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	l = s.desk(s.store)
	got, _, err := l.Deactivate(t.Context(), "a", shop, "magasins", "id-00500")
	if err != nil || got.Active || got.Version != 2 || got.Name != "" || got.Lat != nil {
		t.Errorf("got %+v, %v, want a site without its content", got, err)
	}
	if o := written(t, l, "magasins", b); o.Created != 1_001 || len(o.Placements) != 1 {
		t.Errorf("got %+v and %v, want the first answer", o.SitesWritten, o.Placements)
	}
	if _, _, _, err := l.Put(t.Context(), "a", shop, "magasins", at("n", "N", 44)); !errors.Is(err, eventstore.ErrDestroyed) {
		t.Errorf("got %v, want nothing written that could not be sealed", err)
	}
	if f, err := l.Figures(t.Context(), "a"); err != nil || f.Sites != 1_000 {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestNoExternalIDComesTwice(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	l := s.desk(s.store)
	opened(t, l, "magasins")
	_, _, err := l.Write(t.Context(), "a", shop, "magasins", Batch{Rows: []Row{at("x", "X", 44), at("y", "Y", 44), at("x", "Z", 44)}})
	if !errors.Is(err, ErrTwice) {
		t.Errorf("got %v, want ErrTwice", err)
	}
}

func TestShownTimesAreTheLogs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.clock.Store(int64(time.Hour))
	l := s.desk(s.store)
	opened(t, l, "magasins")
	created, _, _, err := l.Put(t.Context(), "a", shop, "magasins", at("x", "X", 44))
	if err != nil {
		t.Fatal(err)
	}
	gone, _, err := l.Deactivate(t.Context(), "a", shop, "magasins", "x")
	if err != nil {
		t.Fatal(err)
	}
	back, _, err := l.Reactivate(t.Context(), "a", shop, "magasins", "x")
	if err != nil {
		t.Fatal(err)
	}
	var logged []time.Time
	for r, err := range s.store.ReadStream(t.Context(), "locations-a", 1, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		logged = append(logged, r.Time)
	}
	type times struct{ Created, Modified, Deactivated time.Time }
	got := []times{{created.Created, created.Modified, created.Deactivated}, {gone.Created, gone.Modified, gone.Deactivated}, {back.Created, back.Modified, back.Deactivated}}
	want := []times{{logged[0], logged[0], time.Time{}}, {logged[0], logged[1], logged[1]}, {logged[0], logged[2], time.Time{}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
