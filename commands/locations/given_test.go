package locations

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/site"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// tiny is a plan whose ceiling is 11 sites.
var tiny = plan.Plan{Name: "TINY", Sites: 10, Referentials: 2}

// given folds a history of an account with the referential "r".
func given(events ...event.Event) *State {
	var s State
	for i, e := range append([]event.Event{event.ReferentialOpened{Code: "r", Name: "R"}}, events...) {
		Evolve(&s, commands.Fact{Event: e, At: now.Add(-time.Hour), Revision: eventstore.Revision(i)})
	}
	return &s
}

// town is a placer that knows what it holds.
type town map[string]site.Position

func (p town) Place(_ context.Context, c site.Content) (site.Position, bool, error) {
	if c.Address == nil {
		found, ok := p[c.IDBan]
		return found, ok, nil
	}
	found, ok := p[c.Address.Line1]
	return found, ok, nil
}

var mende = town{
	"1 rue": {Lat: 44.5, Lon: 3.5, IDBan: "ban-1", Score: 0.9},
	"2 rue": {Lat: 44.6, Lon: 3.6, IDBan: "ban-2", Score: 0.8},
	"ban-2": {Lat: 44.6, Lon: 3.6, IDBan: "ban-2", Score: 1},
}

// said is a content with the customer's own position, addressed one with an address alone.
func said(name string) site.Content {
	lat, lon := 44.0, 3.0
	return site.Content{Name: name, Lat: &lat, Lon: &lon}
}

func addressed(name, line string) site.Content {
	return site.Content{Name: name, Address: &site.Address{Line1: line}}
}

// echoed is a content with the position as the site shows it.
func echoed(name, line string) site.Content {
	c, _, _ := stored(addressed(name, line)).Show()
	return c
}

// stored is a content as it is placed in Mende.
func stored(c site.Content) site.Stored { return mende.stored(c) }

func (p town) stored(c site.Content) site.Stored {
	s := site.Stored{Content: c, Position: c.Own()}
	if s.Position == nil {
		if p, ok, _ := p.Place(context.Background(), c); ok {
			p.Source = site.FromBan
			s.Position = &p
		}
	}
	return s
}

// row is what an event tells of a site; a content of nil is left out.
func row(id, op string, version int64, c *site.Content) event.SiteRow {
	if c != nil {
		return mende.row(id, op, version, *c)
	}
	return event.SiteRow{ExternalID: id, Site: siteID("a", "r", id), Op: op, Version: version}
}

func (p town) row(id, op string, version int64, c site.Content) event.SiteRow {
	s := p.stored(c)
	text, _ := json.Marshal(s)
	d := site.DigestOf(s)
	return event.SiteRow{ExternalID: id, Site: siteID("a", "r", id), Op: op, Version: version,
		Content: event.Personal(text), Digest: d[:],
		Lost: s.Position == nil, Placed: s.Position != nil && s.Position.Source == site.FromBan}
}

func created(id string, c site.Content) event.SiteRow { return row(id, event.SiteCreated, 1, &c) }

func deactivated(id string, version int64) event.SiteRow {
	return row(id, event.SiteDeactivated, version, nil)
}

// had is an earlier change of "r".
func had(rows ...event.SiteRow) event.Event {
	return event.SitesChanged{SitesWritten: event.SitesWritten{Referential: "r", Action: "upsert"}, Rows: rows}
}

// some are n created sites s00, s01…
func some(n int) event.Event {
	var rows []event.SiteRow
	for i := range n {
		rows = append(rows, created(fmt.Sprintf("s%02d", i), said("S")))
	}
	return had(rows...)
}

// batchOf is rows in pairs of external id and content.
func batchOf(b Batch, pairs ...any) Batch {
	for i := 0; i < len(pairs); i += 2 {
		b.Rows = append(b.Rows, Row{pairs[i].(string), pairs[i+1].(site.Content)})
	}
	return b
}

// sites are n rows s00, s01…
func sites(b Batch, n int) Batch {
	for i := range n {
		b.Rows = append(b.Rows, Row{fmt.Sprintf("s%02d", i), said("S")})
	}
	return b
}

func sameError(got, want error) bool {
	return got == nil && want == nil || got != nil && want != nil && got.Error() == want.Error()
}

func pairs(n int) (all []any) {
	for i := range n {
		all = append(all, fmt.Sprintf("n%02d", i), said("N"))
	}
	return all
}

func moved(c site.Content, line string) site.Content {
	c.Address = &site.Address{Line1: line}
	return c
}

func lostRow(r event.SiteRow) event.SiteRow {
	r.Lost = true
	return r
}

func nudged(c site.Content) site.Content {
	lat := *c.Lat + 1e-6
	c.Lat = &lat
	return c
}

func ptr(c site.Content) *site.Content { return &c }
