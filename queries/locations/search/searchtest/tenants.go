package searchtest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"lieudit/queries/locations/search"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

var tenants = []rule{
	{"an account sees its own sites alone", isolation},
	{"an account that is not known has no sites", unknownAccounts},
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// isolation gives accounts whose ids look alike the same sites, and asks each.
func isolation(t *testing.T, s Fixture) {
	accounts := []string{"a", "b", "a-b", "ab"}
	for i, account := range accounts {
		for j := range i + 2 {
			s.WriteSites(t, NewSiteRow(account, "shops", fmt.Sprint("x", j), locations.StoredSite{
				Content:  locations.Content{Name: "Magasin", Phone: account, Tags: []string{"drive"}, Address: &locations.SiteAddress{City: "Mende"}},
				Position: positionAt(44.5, 3.5),
			}))
		}
	}
	s.WriteSites(t, deactivatedRow(NewSiteRow("b", "shops", "x0", locations.StoredSite{Content: locations.Content{Name: "Magasin", Phone: "b"}})))
	center := &search.Point{Lat: 44.5, Lon: 3.5}
	for i, account := range accounts {
		for _, q := range []search.Query{
			{}, {Text: "magasin mende"}, {Text: "magazin"}, {Center: center, Radius: 10}, {Center: center, Sort: search.ByDistance}, {Tags: []string{"drive"}},
			{Referential: "shops"}, {Text: "x1", MatchExternalIDs: true}, {Status: search.All}, {Box: &search.Box{West: 3, South: 44, East: 4, North: 45}},
		} {
			q.Account, q.Limit = account, 1
			hits := collectPages(t, s, q, func(int) {})
			want := i + 2
			switch {
			case q.MatchExternalIDs:
				want = 1
			case account == "b" && q.Status != search.All:
				want--
			}
			if len(hits) != want {
				t.Errorf("%+v: got %d sites, want %d", q, len(hits), want)
			}
			wantOwnSites(t, account, hits)
		}
	}
}

func wantOwnSites(t *testing.T, account string, hits []search.Hit) {
	t.Helper()
	for _, h := range hits {
		if h.Site.Phone != account {
			t.Errorf("%s was shown a site of %s", account, h.Site.Phone)
		}
	}
}

func unknownAccounts(t *testing.T, s Fixture) {
	s.WriteSites(t, []table.Site{namedRow("x", "Magasin"), deactivatedRow(namedRow("y", "Magasin"))}...)
	for _, account := range []string{"unknown", "A", "a/", "a/shops", "a%", "*", "a' or '1'='1", `a" OR account = "a`} {
		for _, status := range []search.Status{search.Active, search.All} {
			for _, text := range []string{"", "magasin"} {
				wantSites(t, s, search.Query{Account: account, Status: status, Text: text})
			}
		}
	}
}
