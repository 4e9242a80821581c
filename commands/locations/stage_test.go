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
	"lieudit/schemas/plan"
	"lieudit/schemas/site"
)

// vault has one key for all until it is destroyed.
type vault struct{ gone atomic.Bool }

func (v *vault) Key(context.Context, string, bool) ([]byte, error) {
	if v.gone.Load() {
		return nil, eventstore.ErrDestroyed
	}
	return make([]byte, 32), nil
}

func (v *vault) Destroy(context.Context, string) error {
	v.gone.Store(true)
	return nil
}

// plans has everybody on one plan.
type plans struct{ atomic.Pointer[plan.Plan] }

func (p *plans) PlanOf(context.Context, string) (plan.Plan, error) { return *p.Load(), nil }

// ban places the addresses of communes it knows.
type ban struct {
	mu    sync.Mutex
	known map[string]bool
	asked int
}

func (b *ban) learn(city string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[city] = true
}

func (b *ban) Place(_ context.Context, c site.Content) (site.Position, bool, error) {
	b.mu.Lock()
	b.asked++
	b.mu.Unlock()
	p, found := b.find(c)
	return p, found, nil
}

func (b *ban) find(c site.Content) (site.Position, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.Address == nil || !b.known[c.Address.City] {
		return site.Position{}, false
	}
	n := float64(len(c.Address.Line1))
	return site.Position{Lat: 44 + n/100, Lon: 3, Source: site.FromBan, IDBan: "ban-" + c.Address.Line1, Score: 0.75}, true
}

// stage is a log with what the commands need.
type stage struct {
	store eventstore.Store
	vault *vault
	plans *plans
	ban   *ban
	clock atomic.Int64 // what now is ahead of the time, nanoseconds
}

func newStage(t testing.TB) *stage {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	s := &stage{store: j, vault: &vault{}, plans: &plans{}, ban: &ban{known: map[string]bool{"Mende": true}}}
	business, _ := plan.Lookup(plan.Business)
	s.plans.Store(&business)
	return s
}

// desk is one instance's commands.
func (s *stage) desk(store eventstore.Store) *Locations {
	now := func() time.Time { return time.Now().Add(time.Duration(s.clock.Load())) }
	return New(store, eventstore.NewCodec(s.vault), s.plans, s.ban, now)
}

var shop = commands.Intent{Actor: "key:1"}

func opened(t testing.TB, l *Locations, code string) {
	t.Helper()
	if _, _, err := l.Open(t.Context(), "a", shop, code, "Les "+code); err != nil {
		t.Fatal(err)
	}
}

// at is a row with the customer's own position.
func at(id, name string, lat float64) Row {
	lon := 3.5
	return Row{ExternalID: id, Content: site.Content{Name: name, Lat: &lat, Lon: &lon}}
}

// in is a row with an address alone.
func in(id, name, line, city string) Row {
	return Row{ExternalID: id, Content: site.Content{Name: name, Address: &site.Address{Line1: line, City: city}}}
}

// many are rows with ids from id-00000 on, of about 350 bytes each.
func many(n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		lat, lon := 44+float64(i)/1e5, 3+float64(i)/1e5
		rows[i] = Row{ExternalID: fmt.Sprintf("id-%05d", i), Content: site.Content{
			Name:    fmt.Sprintf("Boulangerie du marché %d", i),
			Address: &site.Address{Line1: fmt.Sprintf("%d rue de la République", i), PostalCode: "48000", City: "Mende"},
			Lat:     &lat, Lon: &lon, Phone: "+33 4 66 00 00 00", Website: "https://boulangerie.example/mende",
			Hours: []byte(`{"lundi":[["08:00","12:30"],["14:00","19:00"]],"mardi":[["08:00","12:30"]]}`),
			Tags:  []string{"pain", "ouvert-dimanche"},
		}}
	}
	return rows
}

func written(t testing.TB, l *Locations, code string, b Batch) Outcome {
	t.Helper()
	o, _, err := l.Write(t.Context(), "a", shop, code, b)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// events are the types of a stream's events.
func (s *stage) events(t testing.TB, stream string) []string {
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
