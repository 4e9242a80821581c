package locations

import (
	"context"
	"encoding/json"
	"errors"
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

func (v *fakeVault) ForgetKeys() {}

// fakePlans has every account on one plan.
type fakePlans struct{ atomic.Pointer[plan.Plan] }

func (p *fakePlans) PlanOf(context.Context, string) (plan.Plan, error) { return *p.Load(), nil }

// fakeBan geocodes the addresses of the communes that it knows.
type fakeBan struct {
	mu    sync.Mutex
	known map[string]bool
	calls int
}

func (b *fakeBan) addCommune(city string) {
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
	return locations.Position{Lat: 44 + n/100, Lon: 3, Source: locations.SourceBAN, IDBan: "ban-" + c.Address.Line1, Score: 0.75, Precision: locations.PrecisionHouseNumber}, true
}

// fixture is a log with what the commands on it need.
type fixture struct {
	store eventstore.Store
	vault *fakeVault
	plans *fakePlans
	ban   *fakeBan
	clock atomic.Int64 // nanoseconds by which the commands' clock is ahead
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

// newInstance returns the commands of a new instance.
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

// rowAt returns a row with the customer's own position.
func rowAt(id, name string, lat float64) Row {
	lon := 3.5
	return Row{ExternalID: id, Content: locations.Content{Name: name, Lat: &lat, Lon: &lon}}
}

// rowWithAddress returns a row with an address and no position.
func rowWithAddress(id, name, line, city string) Row {
	return Row{ExternalID: id, Content: locations.Content{Name: name, Address: &locations.SiteAddress{Line1: line, City: city}}}
}

// manyRows returns rows with ids from id-00000 on, of about 350 bytes each.
func manyRows(n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		lat, lon := 44+float64(i)/1e5, 3+float64(i)/1e5
		rows[i] = Row{ExternalID: fmt.Sprintf("id-%05d", i), Content: locations.Content{
			Name:    fmt.Sprintf("Boulangerie du marché %d", i),
			Address: &locations.SiteAddress{Line1: fmt.Sprintf("%d rue de la République", i), PostalCode: "48000", City: "Mende"},
			Lat:     &lat, Lon: &lon, Phone: "+33 4 66 00 00 00", Website: "https://boulangerie.example/mende",
			Hours: []byte(`{"hebdo":[{"jours":["lu","ma"],"de":"08:00","a":"12:30"},{"jours":["lu"],"de":"14:00","a":"19:00"}]}`),
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

// events returns the types of a stream's events.
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

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// tinyPlan is a plan whose ceiling is 11 sites.
var tinyPlan = plan.Plan{Name: "TINY", SiteCapacity: 10, MaxReferentials: 2}

// given folds a history of an account with the referential "r".
func given(events ...event.Event) *State {
	var s State
	for i, e := range append([]event.Event{event.ReferentialOpened{Code: "r", Name: "R"}}, events...) {
		Evolve(&s, commands.Record{Event: e, At: now.Add(-time.Hour), Revision: eventstore.Revision(i)})
	}
	return &s
}

// fakeGeocoder finds the addresses that it has.
type fakeGeocoder map[string]locations.Position

func (g fakeGeocoder) Geocode(_ context.Context, c locations.Content) (locations.Position, bool, error) {
	if c.Address == nil {
		found, ok := g[c.IDBan]
		return found, ok, nil
	}
	found, ok := g[c.Address.Line1]
	return found, ok, nil
}

var mendeGeocoder = fakeGeocoder{
	"1 rue": {Lat: 44.5, Lon: 3.5, IDBan: "ban-1", Score: 0.9, Precision: locations.PrecisionStreet},
	"2 rue": {Lat: 44.6, Lon: 3.6, IDBan: "ban-2", Score: 0.8, Precision: locations.PrecisionHouseNumber},
	"ban-2": {Lat: 44.6, Lon: 3.6, IDBan: "ban-2", Score: 1, Precision: locations.PrecisionHouseNumber},
}

// contentWithPosition returns a content with the customer's own position.
func contentWithPosition(name string) locations.Content {
	lat, lon := 44.0, 3.0
	return locations.Content{Name: name, Lat: &lat, Lon: &lon}
}

func contentWithAddress(name, line string) locations.Content {
	return locations.Content{Name: name, Address: &locations.SiteAddress{Line1: line}}
}

// contentAsShown returns a content with the geocoded position that the site shows.
func contentAsShown(name, line string) locations.Content {
	c := storedContent(contentWithAddress(name, line)).ShownContent()
	return c
}

// storedContent returns a content as the log keeps it, geocoded in Mende.
func storedContent(c locations.Content) locations.StoredSite { return mendeGeocoder.storedContent(c) }

func (p fakeGeocoder) storedContent(c locations.Content) locations.StoredSite {
	s := locations.StoredSite{Content: c, Position: c.OwnPosition()}
	if s.Position == nil {
		if p, ok, _ := p.Geocode(context.Background(), c); ok {
			p.Source = locations.SourceBAN
			s.Position = &p
		}
	}
	return s
}

// siteRow returns the row of an event; a nil content is left out.
func siteRow(id, op string, version int64, c *locations.Content) event.SiteRow {
	if c != nil {
		return mendeGeocoder.siteRow(id, op, version, *c)
	}
	return event.SiteRow{ExternalID: id, SiteID: siteID("a", "r", id), Operation: op, Version: version}
}

func (p fakeGeocoder) siteRow(id, op string, version int64, c locations.Content) event.SiteRow {
	s := p.storedContent(c)
	text, _ := json.Marshal(s)
	d := locations.DigestOf(s)
	return event.SiteRow{ExternalID: id, SiteID: siteID("a", "r", id), Operation: op, Version: version,
		Content: event.Personal(text), Digest: d[:],
		Unlocated: s.Position == nil, Geocoded: s.Position != nil && s.Position.Source == locations.SourceBAN}
}

func createdRow(id string, c locations.Content) event.SiteRow {
	return siteRow(id, event.SiteCreated, 1, &c)
}

func deactivatedRow(id string, version int64) event.SiteRow {
	return siteRow(id, event.SiteDeactivated, version, nil)
}

// sitesChanged returns the event of an earlier change of "r".
func sitesChanged(rows ...event.SiteRow) event.Event {
	return event.SitesChanged{SiteWriteSummary: event.SiteWriteSummary{Referential: "r", Action: "upsert"}, Rows: rows}
}

// createdSites returns the event that created n sites s00, s01…
func createdSites(n int) event.Event {
	var rows []event.SiteRow
	for i := range n {
		rows = append(rows, createdRow(fmt.Sprintf("s%02d", i), contentWithPosition("S")))
	}
	return sitesChanged(rows...)
}

// batchOf makes a batch of pairs of external id and content.
func batchOf(b Batch, pairs ...any) Batch {
	for i := 0; i < len(pairs); i += 2 {
		b.Rows = append(b.Rows, Row{pairs[i].(string), pairs[i+1].(locations.Content)})
	}
	return b
}

// addSites adds n rows s00, s01…
func addSites(b Batch, n int) Batch {
	for i := range n {
		b.Rows = append(b.Rows, Row{fmt.Sprintf("s%02d", i), contentWithPosition("S")})
	}
	return b
}

func sameError(got, want error) bool {
	return errors.Is(got, want) || got != nil && want != nil && got.Error() == want.Error()
}

func newPairs(n int) (all []any) {
	for i := range n {
		all = append(all, fmt.Sprintf("n%02d", i), contentWithPosition("N"))
	}
	return all
}

func withAddress(c locations.Content, line string) locations.Content {
	c.Address = &locations.SiteAddress{Line1: line}
	return c
}

func unlocatedRow(r event.SiteRow) event.SiteRow {
	r.Unlocated = true
	return r
}

func withMovedPosition(c locations.Content) locations.Content {
	lat := *c.Lat + 1e-6
	c.Lat = &lat
	return c
}

func ptr(c locations.Content) *locations.Content { return &c }
