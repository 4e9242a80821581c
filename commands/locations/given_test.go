package locations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/locations"
	"lieudit/schemas/plan"
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

// fakeGeocoder is a placer that knows what it holds.
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
	"1 rue": {Lat: 44.5, Lon: 3.5, IDBan: "ban-1", Score: 0.9},
	"2 rue": {Lat: 44.6, Lon: 3.6, IDBan: "ban-2", Score: 0.8},
	"ban-2": {Lat: 44.6, Lon: 3.6, IDBan: "ban-2", Score: 1},
}

// contentWithPosition is a content with the customer's own position, addressed one with an address alone.
func contentWithPosition(name string) locations.Content {
	lat, lon := 44.0, 3.0
	return locations.Content{Name: name, Lat: &lat, Lon: &lon}
}

func contentWithAddress(name, line string) locations.Content {
	return locations.Content{Name: name, Address: &locations.SiteAddress{Line1: line}}
}

// contentAsShown is a content with the position as the site shows it.
func contentAsShown(name, line string) locations.Content {
	c, _, _ := storedContent(contentWithAddress(name, line)).ShownContent()
	return c
}

// storedContent is a content as it is placed in Mende.
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

// siteRow is what an event tells of a site; a content of nil is left out.
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

// sitesChanged is an earlier change of "r".
func sitesChanged(rows ...event.SiteRow) event.Event {
	return event.SitesChanged{SiteWriteSummary: event.SiteWriteSummary{Referential: "r", Action: "upsert"}, Rows: rows}
}

// createdSites are n created sites s00, s01…
func createdSites(n int) event.Event {
	var rows []event.SiteRow
	for i := range n {
		rows = append(rows, createdRow(fmt.Sprintf("s%02d", i), contentWithPosition("S")))
	}
	return sitesChanged(rows...)
}

// batchOf is rows in pairs of external id and content.
func batchOf(b Batch, pairs ...any) Batch {
	for i := 0; i < len(pairs); i += 2 {
		b.Rows = append(b.Rows, Row{pairs[i].(string), pairs[i+1].(locations.Content)})
	}
	return b
}

// addSites are n rows s00, s01…
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
