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
	"lieudit/schemas/locations"
	"lieudit/schemas/refusal"
)

type content = locations.Content

// geocoderFunc finds nothing, and is called for each lookup.
type geocoderFunc func()

func (p geocoderFunc) Geocode(context.Context, content) (locations.Position, bool, error) {
	p()
	return locations.Position{}, false, nil
}

func TestRequestWithAKeyIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	l := s.newInstance(s.store)
	mustOpen(t, l, "magasins")
	mustOpen(t, l, "depots")
	b := Batch{Rows: []Row{rowAt("x", "X", 44), rowWithAddress("y", "Y", "1 rue", "Mende"), rowWithAddress("z", "Z", "1 rue", "Atlantis")}, IsSync: true, IdempotencyKey: "k", RequestDigest: []byte("1")}
	first := mustWrite(t, l, "magasins", b)
	mustPut(t, l, rowAt("w", "W", 44)) // this write must not change the answer
	asked := s.ban.calls
	for _, again := range []*Locations{l, s.newInstance(s.store)} {
		if diff := cmp.Diff(first, mustWrite(t, again, "magasins", b)); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	}
	if s.ban.calls != asked {
		t.Errorf("sites were placed %d times again", s.ban.calls-asked)
	}
	other := b
	other.RequestDigest = []byte("2")
	upsert := b
	upsert.IsSync = false
	for _, b := range []Batch{other, upsert} {
		if _, _, err := l.WriteBatch(t.Context(), "a", shopMeta, "magasins", b); !errors.Is(err, refusal.IdempotencyMismatch) {
			t.Errorf("got %v, want ErrOtherRequest", err)
		}
	}
	if o := mustWrite(t, l, "depots", other); o.Created != 3 {
		t.Errorf("got %+v, want a key of another referential to be another", o)
	}
	dry := other
	dry.DryRun = true
	if o := mustWrite(t, l, "magasins", dry); o.Deactivated != 1 || o.IdempotencyKeyHash != "" {
		t.Errorf("got %+v, want a dry run that does not look at the key", o)
	}
}

func TestAnswerToAnUnchangedWriteIsKept(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	l := s.newInstance(s.store)
	mustOpen(t, l, "magasins")
	b := Batch{Rows: []Row{rowAt("x", "X", 44)}, IsSync: true}
	mustWrite(t, l, "magasins", b)
	b.IdempotencyKey, b.RequestDigest = "k", []byte("1")
	first := mustWrite(t, l, "magasins", b)
	mustPut(t, l, rowAt("x", "Y", 44))
	if diff := cmp.Diff(first, mustWrite(t, l, "magasins", b)); diff != "" || first.Unchanged != 1 {
		t.Errorf("got %+v at first, then\n%s", first, diff)
	}
	if got := s.events(t, "locations-a"); len(got) != 4 || got[2] != (event.UnchangedWriteRecorded{}).EventType() {
		t.Errorf("got %v, want the request kept once", got)
	}
}

func TestRefusalIsNotKeptForItsKey(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	l := s.newInstance(s.store)
	mustOpen(t, l, "magasins")
	mustWrite(t, l, "magasins", Batch{Rows: manyRows(3)})
	b := Batch{Rows: manyRows(1), IsSync: true, IdempotencyKey: "k", RequestDigest: []byte("1")}
	for range 2 {
		if _, _, err := l.WriteBatch(t.Context(), "a", shopMeta, "magasins", b); !errors.Is(err, refusal.SuspiciousReduction) {
			t.Errorf("got %v, want a suspicious reduction", err)
		}
	}
	b.Confirmed, b.RequestDigest = true, []byte("2")
	if o := mustWrite(t, l, "magasins", b); o.Deactivated != 2 {
		t.Errorf("got %+v", o)
	}
}

func TestKeyIsForgottenAfterADay(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	l := s.newInstance(s.store)
	mustOpen(t, l, "magasins")
	b := Batch{Rows: []Row{rowAt("x", "X", 44)}, IdempotencyKey: "k", RequestDigest: []byte("1")}
	mustWrite(t, l, "magasins", b)
	mustPut(t, l, rowAt("x", "Y", 44))
	s.clock.Store(int64(24*time.Hour - time.Minute))
	if o := mustWrite(t, l, "magasins", b); o.Created != 1 {
		t.Errorf("got %+v within the day, want the first answer", o.SiteWriteSummary)
	}
	s.clock.Store(int64(24*time.Hour + time.Minute))
	if o := mustWrite(t, l, "magasins", b); o.Updated != 1 {
		t.Errorf("got %+v after a day, want it done again", o.SiteWriteSummary)
	}
}

func TestStateHoldsTheKeysOfOneDay(t *testing.T) {
	t.Parallel()
	s := given()
	applyWrite := func(hour int, key string) {
		w := event.SiteWriteSummary{Referential: "r", IdempotencyKeyHash: key}
		Evolve(s, commands.Record{Event: event.UnchangedWriteRecorded{SiteWriteSummary: w}, At: now.Add(time.Duration(hour) * time.Hour), Revision: eventstore.Revision(hour)})
	}
	for hour := range 100 {
		applyWrite(hour, string(rune('a'+hour%30)))
		if n := len(s.idempotency.requests); n != min(hour+1, 24) || len(s.idempotency.oldestFirst) != n {
			t.Fatalf("hour %d: got %d keys in %d places", hour, n, len(s.idempotency.oldestFirst))
		}
	}
	applyWrite(200, "")
	if len(s.idempotency.requests) != 0 {
		t.Errorf("got %v, want none after days without a key", s.idempotency.requests)
	}
}

func TestErasedAccountFoldsAndReadsAsEmpty(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	l := s.newInstance(s.store)
	mustOpen(t, l, "magasins")
	b := Batch{Rows: append(manyRows(1_000), rowWithAddress("x", "X", "1 rue", "Mende")), IdempotencyKey: "k", RequestDigest: []byte("1")}
	mustWrite(t, l, "magasins", b)
	if err := s.vault.DestroyKey(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	l = s.newInstance(s.store)
	got, _, err := l.DeactivateSite(t.Context(), "a", shopMeta, "magasins", "id-00500")
	if err != nil || got.Active || got.Version != 2 || got.Name != "" || got.Lat != nil {
		t.Errorf("got %+v, %v, want a site without its content", got, err)
	}
	if o := mustWrite(t, l, "magasins", b); o.Created != 1_001 || len(o.GeocodedSites) != 1 {
		t.Errorf("got %+v and %v, want the first answer", o.SiteWriteSummary, o.GeocodedSites)
	}
	if _, _, _, err := l.PutSite(t.Context(), "a", shopMeta, "magasins", rowAt("n", "N", 44)); !errors.Is(err, eventstore.ErrDestroyed) {
		t.Errorf("got %v, want nothing written that could not be sealed", err)
	}
	if f, err := l.CountLocations(t.Context(), "a"); err != nil || f.Sites != 1_000 {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestBatchWithAnExternalIDTwiceIsRefused(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	l := s.newInstance(s.store)
	mustOpen(t, l, "magasins")
	_, _, err := l.WriteBatch(t.Context(), "a", shopMeta, "magasins", Batch{Rows: []Row{rowAt("x", "X", 44), rowAt("y", "Y", 44), rowAt("x", "Z", 44)}})
	if !errors.Is(err, ErrDuplicateExternalID) {
		t.Errorf("got %v, want ErrTwice", err)
	}
}

func TestTimesOfASiteAreThoseOfTheLog(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.clock.Store(int64(time.Hour))
	l := s.newInstance(s.store)
	mustOpen(t, l, "magasins")
	created, _, _, err := l.PutSite(t.Context(), "a", shopMeta, "magasins", rowAt("x", "X", 44))
	if err != nil {
		t.Fatal(err)
	}
	gone, _, err := l.DeactivateSite(t.Context(), "a", shopMeta, "magasins", "x")
	if err != nil {
		t.Fatal(err)
	}
	back, _, err := l.ReactivateSite(t.Context(), "a", shopMeta, "magasins", "x")
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
