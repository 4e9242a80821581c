// Package searchtest is the contract suite of search.Engine: every engine passes it. Its one constraint: it sends the
// same queries in the same order each time, so that an engine may answer from a recording. For that reason, too, the
// names of the rules never change: recordings are named after them. Where two engines may differ, among sites that
// answer a text equally well, it compares sets and the first place alone.
//
// Queries are of account a, and sites of its referential shops, where a rule does not say otherwise. "Beginning" is a
// prefix of a word or of an external id.
//
// Run opens a Fixture for each rule; a rule writes rows (NewSiteRow) and compares what searchPage finds (wantSites,
// wantOrder, wantFirst). matching.go holds the rules of what is found, paging.go those of its order and pages.
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

// Fixture is an engine and a way to write the sites that it searches. The suite uses it from one goroutine. A Fixture that
// cannot do what it is asked fails the test.
type Fixture interface {
	// WriteSites writes rows over those of the same id, at a position that it chooses, and returns when they can be
	// found.
	WriteSites(t *testing.T, rows ...table.Site)
	// Engine returns the same engine at each call.
	Engine() search.Engine
}

// Run runs the suite. open makes a Fixture without sites for the test that it is given, and ends it with that test. Each
// rule is a subtest of the rule's name, and they run one after the other.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	for _, rule := range slices.Concat(texts, filters, orders, pages, tenants, edgeCases) {
		t.Run(rule.name, func(t *testing.T) { rule.test(t, open(t)) })
	}
}

// rule is one rule of the contract, and the test that an engine keeps it. The test gets a Fixture without sites. The name
// is that of the subtest and of its recording.
type rule struct {
	name string
	test func(*testing.T, Fixture)
}

// siteCreated is when the sites of the suite were created. It is a fixed time, because recordings hold what was written.
var siteCreated = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// NewSiteRow is the row of an active site in its first version, as projections/locations writes it but for the position in
// the log, which the Fixture sets. code is the referential's. The site's public id follows from its key, so that it is the
// same in every run.
func NewSiteRow(account, code, externalID string, s locations.StoredSite) table.Site {
	content, _ := json.Marshal(s) // a StoredSite always has a JSON form
	id := table.SiteID(account, code, externalID)
	return table.Site{
		ID: id, Account: account, Referential: code, ExternalID: externalID,
		PublicID: uuid.NewSHA1(uuid.NameSpaceURL, []byte(id)).String(), Active: true, Version: 1, Content: string(content),
		Created: table.InstantOf(siteCreated), Modified: table.InstantOf(siteCreated),
	}
}

// deactivatedRow is the row after its site was deactivated, an hour after its creation.
func deactivatedRow(r table.Site) table.Site {
	r.Active, r.Version, r.Modified = false, r.Version+1, table.InstantOf(siteCreated.Add(time.Hour))
	r.Deactivated = r.Modified
	return r
}

// updatedRow is the row after its site got another content. The site is active, whatever it was before.
func updatedRow(r table.Site, s locations.StoredSite) table.Site {
	fresh := NewSiteRow(r.Account, r.Referential, r.ExternalID, s)
	fresh.Version, fresh.Modified = r.Version+1, table.InstantOf(siteCreated.Add(time.Hour))
	return fresh
}

// namedRow is a site of account a, in the referential shops, that has a name and nothing else.
func namedRow(externalID, name string) table.Site {
	return NewSiteRow("a", "shops", externalID, locations.StoredSite{Content: locations.Content{Name: name}})
}

// placedRow is a site like namedRow's with a position. Its name is its external id.
func placedRow(externalID string, lat, lon float64) table.Site {
	return NewSiteRow("a", "shops", externalID, locations.StoredSite{Content: locations.Content{Name: externalID}, Position: positionAt(lat, lon)})
}

// positionAt is a position that the client gave, in degrees.
func positionAt(lat, lon float64) *locations.Position {
	return &locations.Position{Lat: lat, Lon: lon, Source: locations.SourceClient}
}

// searchPage reads a page: of account a where the query names none, and of 100 hits where it has no limit. An error, or
// more hits than asked for, ends the test.
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

// hitIDs are the external ids of hits in their order.
func hitIDs(hits []search.Hit) []string {
	found := make([]string, len(hits))
	for i, h := range hits {
		found[i] = h.Site.ExternalID
	}
	return found
}

// wantSites fails unless a query finds exactly these sites, in any order. Sites are named by their external ids here and
// below.
func wantSites(t *testing.T, s Fixture, q search.Query, want ...string) {
	t.Helper()
	got := hitIDs(searchPage(t, s, q).Hits)
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got, nilAsEmpty); diff != "" {
		t.Errorf("%+v: %s", q, diff)
	}
}

// wantOrder fails unless a query finds exactly these sites in this order. It is for orders that are the same in every
// engine.
func wantOrder(t *testing.T, s Fixture, q search.Query, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, hitIDs(searchPage(t, s, q).Hits), nilAsEmpty); diff != "" {
		t.Errorf("%+v: %s", q, diff)
	}
}

// wantFirst fails unless a query finds this site first. It is for relevance, where engines may differ in the places after
// the first.
func wantFirst(t *testing.T, s Fixture, q search.Query, want string) {
	t.Helper()
	if got := hitIDs(searchPage(t, s, q).Hits); len(got) == 0 || got[0] != want {
		t.Errorf("%+v: got %q, want %q first", q, got, want)
	}
}

// nilAsEmpty makes nil equal to an empty slice.
var nilAsEmpty = cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })
