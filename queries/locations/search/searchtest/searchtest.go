// Package searchtest holds engines that search sites to the contract of finder: one suite for all of them. It asks the
// same questions in the same order each time, so that an engine may answer from recorded exchanges. Where two honest
// engines may differ, among what answers a text equally well, it looks at sets and at the first place alone.
package searchtest

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"lieudit/queries/locations/search"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

// Fixture is an engine and a way to write what it searches.
type Fixture interface {
	// WriteSites writes rows over those of the same id, at a position of its own choice, and returns when they are searchable.
	WriteSites(t *testing.T, rows ...table.Site)
	Engine() search.Engine
}

// Run runs the suite. open gives an engine that knows no site yet, for the test it is called with.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	for _, rule := range slices.Concat(texts, filters, orders, pages, tenants, edgeCases) {
		t.Run(rule.name, func(t *testing.T) { rule.test(t, open(t)) })
	}
}

type rule struct {
	name string
	test func(*testing.T, Fixture)
}

// SiteCreated is when sites of the suite were created.
var SiteCreated = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// NewSiteRow is an active site's row as the read model holds it.
func NewSiteRow(account, code, externalID string, s locations.StoredSite) table.Site {
	content, _ := json.Marshal(s) // a site.Stored has a JSON form
	id := table.SiteID(account, code, externalID)
	return table.Site{
		ID: id, Account: account, Referential: code, ExternalID: externalID,
		PublicID: uuid.NewSHA1(uuid.NameSpaceURL, []byte(id)).String(), Active: true, Version: 1, Content: string(content),
		Created: table.InstantOf(SiteCreated), Modified: table.InstantOf(SiteCreated),
	}
}

// deactivatedRow is the row once its site was deactivated.
func deactivatedRow(r table.Site) table.Site {
	r.Active, r.Version, r.Modified = false, r.Version+1, table.InstantOf(SiteCreated.Add(time.Hour))
	r.Deactivated = r.Modified
	return r
}

// updatedRow is the row with another content.
func updatedRow(r table.Site, s locations.StoredSite) table.Site {
	fresh := NewSiteRow(r.Account, r.Referential, r.ExternalID, s)
	fresh.Version, fresh.Modified = r.Version+1, table.InstantOf(SiteCreated.Add(time.Hour))
	return fresh
}

// namedRow is a site of account a in the referential shops of which only the name is known.
func namedRow(externalID, name string) table.Site {
	return NewSiteRow("a", "shops", externalID, locations.StoredSite{Content: locations.Content{Name: name}})
}

// placedRow is a site of account a that has a name and a position.
func placedRow(externalID string, lat, lon float64) table.Site {
	return NewSiteRow("a", "shops", externalID, locations.StoredSite{Content: locations.Content{Name: externalID}, Position: positionAt(lat, lon)})
}

func positionAt(lat, lon float64) *locations.Position {
	return &locations.Position{Lat: lat, Lon: lon, Source: locations.SourceClient}
}

// searchPage asks for a page, of 100 where the question does not say.
func searchPage(t *testing.T, s Fixture, q search.Query) search.Result {
	t.Helper()
	if q.Account == "" {
		q.Account = "a"
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	r, err := s.Engine().Search(t.Context(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	if len(r.Hits) > q.Limit {
		t.Fatalf("%+v: got %d hits", q, len(r.Hits))
	}
	return r
}

// hitIDs are the external ids of hits, in their order.
func hitIDs(hits []search.Hit) []string {
	found := make([]string, len(hits))
	for i, h := range hits {
		found[i] = h.Site.ExternalID
	}
	return found
}

// wantSites wants exactly these sites, in any order.
func wantSites(t *testing.T, s Fixture, q search.Query, want ...string) {
	t.Helper()
	got := hitIDs(searchPage(t, s, q).Hits)
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got, nilAsEmpty); diff != "" {
		t.Errorf("%+v: %s", q, diff)
	}
}

// wantOrder wants exactly these sites in this order.
func wantOrder(t *testing.T, s Fixture, q search.Query, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, hitIDs(searchPage(t, s, q).Hits), nilAsEmpty); diff != "" {
		t.Errorf("%+v: %s", q, diff)
	}
}

// wantFirst wants a site in the wantFirst place.
func wantFirst(t *testing.T, s Fixture, q search.Query, want string) {
	t.Helper()
	if got := hitIDs(searchPage(t, s, q).Hits); len(got) == 0 || got[0] != want {
		t.Errorf("%+v: got %q, want %q first", q, got, want)
	}
}

// nilAsEmpty makes no difference between nil and a slice without elements.
var nilAsEmpty = cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })
