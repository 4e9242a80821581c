// Package findertest holds engines that search sites to the contract of finder: one suite for all of them. It asks the
// same questions in the same order each time, so that an engine may answer from recorded exchanges. Where two honest
// engines may differ, among what answers a text equally well, it looks at sets and at the first place alone.
package findertest

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"lieudit/queries/places/finder"
	"lieudit/schemas/site"
	"lieudit/schemas/table"
)

// Stage is an engine and a way to write what it searches.
type Stage interface {
	// Put writes rows over those of the same id, at a position of its own choice, and returns when they are searchable.
	Put(t *testing.T, rows ...table.Site)
	Engine() finder.Engine
}

// Run runs the suite. open gives an engine that knows no site yet, for the test it is called with.
func Run(t *testing.T, open func(t *testing.T) Stage) {
	for _, rule := range slices.Concat(texts, filters, orders, pages, tenants, oddities) {
		t.Run(rule.name, func(t *testing.T) { rule.test(t, open(t)) })
	}
}

type rule struct {
	name string
	test func(*testing.T, Stage)
}

// Begun is when sites of the suite were created.
var Begun = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// Row is an active site's row as the read model holds it.
func Row(account, code, externalID string, s site.Stored) table.Site {
	content, _ := json.Marshal(s) // a site.Stored has a JSON form
	id := table.SiteID(account, code, externalID)
	return table.Site{
		ID: id, Account: account, Referential: code, ExternalID: externalID,
		Site: uuid.NewSHA1(uuid.NameSpaceURL, []byte(id)).String(), Active: true, Version: 1, Content: string(content),
		Created: table.At(Begun), Modified: table.At(Begun),
	}
}

// inactive is the row once its site was deactivated.
func inactive(r table.Site) table.Site {
	r.Active, r.Version, r.Modified = false, r.Version+1, table.At(Begun.Add(time.Hour))
	r.Deactivated = r.Modified
	return r
}

// changed is the row with another content.
func changed(r table.Site, s site.Stored) table.Site {
	fresh := Row(r.Account, r.Referential, r.ExternalID, s)
	fresh.Version, fresh.Modified = r.Version+1, table.At(Begun.Add(time.Hour))
	return fresh
}

// named is a site of account a in the referential shops of which only the name is known.
func named(externalID, name string) table.Site {
	return Row("a", "shops", externalID, site.Stored{Content: site.Content{Name: name}})
}

// at is a site of account a that has a name and a position.
func at(externalID string, lat, lon float64) table.Site {
	return Row("a", "shops", externalID, site.Stored{Content: site.Content{Name: externalID}, Position: placed(lat, lon)})
}

func placed(lat, lon float64) *site.Position {
	return &site.Position{Lat: lat, Lon: lon, Source: site.FromClient}
}

// search asks for a page, of 100 where the question does not say.
func search(t *testing.T, s Stage, q finder.Query) finder.Result {
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

// ids are the external ids of hits, in their order.
func ids(hits []finder.Hit) []string {
	found := make([]string, len(hits))
	for i, h := range hits {
		found[i] = h.Site.ExternalID
	}
	return found
}

// finds wants exactly these sites, in any order.
func finds(t *testing.T, s Stage, q finder.Query, want ...string) {
	t.Helper()
	got := ids(search(t, s, q).Hits)
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got, empty); diff != "" {
		t.Errorf("%+v: %s", q, diff)
	}
}

// lists wants exactly these sites in this order.
func lists(t *testing.T, s Stage, q finder.Query, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, ids(search(t, s, q).Hits), empty); diff != "" {
		t.Errorf("%+v: %s", q, diff)
	}
}

// first wants a site in the first place.
func first(t *testing.T, s Stage, q finder.Query, want string) {
	t.Helper()
	if got := ids(search(t, s, q).Hits); len(got) == 0 || got[0] != want {
		t.Errorf("%+v: got %q, want %q first", q, got, want)
	}
}

// empty makes no difference between nil and a slice without elements.
var empty = cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })
