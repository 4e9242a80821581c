package locations

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/event"
	"lieudit/schemas/locations"
	"lieudit/schemas/plan"
)

// fakeVault has one key for all until it is destroyed.
type fakeVault struct{ isDestroyed atomic.Bool }

func (v *fakeVault) Key(context.Context, string, bool) ([]byte, error) {
	if v.isDestroyed.Load() {
		return nil, eventstore.ErrDestroyed
	}
	return make([]byte, 32), nil
}

func (v *fakeVault) DestroyKey(context.Context, string) error {
	v.isDestroyed.Store(true)
	return nil
}

// fakePlans has everybody on one plan.
type fakePlans struct{ atomic.Pointer[plan.Plan] }

func (p *fakePlans) PlanOf(context.Context, string) (plan.Plan, error) { return *p.Load(), nil }

// fakeBan places the addresses of communes it knows.
type fakeBan struct {
	mu    sync.Mutex
	known map[string]bool
	calls int
}

func (b *fakeBan) learn(city string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[city] = true
}

func (b *fakeBan) Geocode(_ context.Context, c locations.Content) (locations.Position, bool, error) {
	b.mu.Lock()
	b.calls++
	b.mu.Unlock()
	p, found := b.find(c)
	return p, found, nil
}

func (b *fakeBan) find(c locations.Content) (locations.Position, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.Address == nil || !b.known[c.Address.City] {
		return locations.Position{}, false
	}
	n := float64(len(c.Address.Line1))
	return locations.Position{Lat: 44 + n/100, Lon: 3, Source: locations.SourceBAN, IDBan: "ban-" + c.Address.Line1, Score: 0.75}, true
}

// fixture is a log with what the commands need.
type fixture struct {
	store eventstore.Store
	vault *fakeVault
	plans *fakePlans
	ban   *fakeBan
	clock atomic.Int64 // what now is ahead of the time, nanoseconds
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	s := &fixture{store: j, vault: &fakeVault{}, plans: &fakePlans{}, ban: &fakeBan{known: map[string]bool{"Mende": true}}}
	business, _ := plan.Lookup(plan.Business)
	s.plans.Store(&business)
	return s
}

// newInstance is one instance's commands.
func (s *fixture) newInstance(store eventstore.Store) *Locations {
	now := func() time.Time { return time.Now().Add(time.Duration(s.clock.Load())) }
	return New(store, eventstore.NewCodec(s.vault), s.plans, s.ban, now)
}

var shopMeta = commands.Metadata{Actor: "key:1"}

func mustOpen(t testing.TB, l *Locations, code string) {
	t.Helper()
	if _, _, err := l.OpenReferential(t.Context(), "a", shopMeta, code, "Les "+code); err != nil {
		t.Fatal(err)
	}
}

// rowAt is a row with the customer's own position.
func rowAt(id, name string, lat float64) Row {
	lon := 3.5
	return Row{ExternalID: id, Content: locations.Content{Name: name, Lat: &lat, Lon: &lon}}
}

// rowWithAddress is a row with an address alone.
func rowWithAddress(id, name, line, city string) Row {
	return Row{ExternalID: id, Content: locations.Content{Name: name, Address: &locations.SiteAddress{Line1: line, City: city}}}
}

// manyRows are rows with ids from id-00000 on, of about 350 bytes each.
func manyRows(n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		lat, lon := 44+float64(i)/1e5, 3+float64(i)/1e5
		rows[i] = Row{ExternalID: fmt.Sprintf("id-%05d", i), Content: locations.Content{
			Name:    fmt.Sprintf("Boulangerie du marché %d", i),
			Address: &locations.SiteAddress{Line1: fmt.Sprintf("%d rue de la République", i), PostalCode: "48000", City: "Mende"},
			Lat:     &lat, Lon: &lon, Phone: "+33 4 66 00 00 00", Website: "https://boulangerie.example/mende",
			Hours: []byte(`{"lundi":[["08:00","12:30"],["14:00","19:00"]],"mardi":[["08:00","12:30"]]}`),
			Tags:  []string{"pain", "ouvert-dimanche"},
		}}
	}
	return rows
}

func mustWrite(t testing.TB, l *Locations, code string, b Batch) Outcome {
	t.Helper()
	o, _, err := l.WriteBatch(t.Context(), "a", shopMeta, code, b)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// events are the types of a stream's events.
func (s *fixture) events(t testing.TB, stream string) []string {
	t.Helper()
	var types []string
	for r, err := range s.store.ReadStream(t.Context(), stream, 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, r.Type)
	}
	return types
}

var (
	changedType   = event.SitesChanged{}.EventType()
	committedType = event.SyncCommitted{}.EventType()
)
