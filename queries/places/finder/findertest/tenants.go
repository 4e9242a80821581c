package findertest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"lieudit/queries/places/finder"
	"lieudit/schemas/site"
	"lieudit/schemas/table"
)

var tenants = []rule{
	{"an account sees its own sites alone", isolation},
	{"an account that is not known has no sites", stranger},
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// isolation gives accounts whose ids look alike the same sites, and asks each.
func isolation(t *testing.T, s Stage) {
	accounts := []string{"a", "b", "a-b", "ab"}
	for i, account := range accounts {
		for j := range i + 2 {
			s.Put(t, Row(account, "shops", fmt.Sprint("x", j), site.Stored{
				Content:  site.Content{Name: "Magasin", Phone: account, Tags: []string{"drive"}, Address: &site.Address{City: "Mende"}},
				Position: placed(44.5, 3.5),
			}))
		}
	}
	s.Put(t, inactive(Row("b", "shops", "x0", site.Stored{Content: site.Content{Name: "Magasin", Phone: "b"}})))
	center := &finder.Point{Lat: 44.5, Lon: 3.5}
	for i, account := range accounts {
		for _, q := range []finder.Query{
			{}, {Text: "magasin mende"}, {Text: "magazin"}, {Center: center, Radius: 10}, {Center: center, Sort: finder.ByDistance}, {Tags: []string{"drive"}},
			{Referential: "shops"}, {Text: "x1", Private: true}, {Status: finder.All}, {Box: &finder.Box{West: 3, South: 44, East: 4, North: 45}},
		} {
			q.Account, q.Limit = account, 1
			hits := walk(t, s, q, func(int) {})
			want := i + 2
			switch {
			case q.Private:
				want = 1
			case account == "b" && q.Status != finder.All:
				want--
			}
			if len(hits) != want {
				t.Errorf("%+v: got %d sites, want %d", q, len(hits), want)
			}
			own(t, account, hits)
		}
	}
}

func own(t *testing.T, account string, hits []finder.Hit) {
	t.Helper()
	for _, h := range hits {
		if h.Site.Phone != account {
			t.Errorf("%s was shown a site of %s", account, h.Site.Phone)
		}
	}
}

func stranger(t *testing.T, s Stage) {
	s.Put(t, []table.Site{named("x", "Magasin"), inactive(named("y", "Magasin"))}...)
	for _, account := range []string{"unknown", "A", "a/", "a/shops", "a%", "*", "a' or '1'='1", `a" OR account = "a`} {
		for _, status := range []finder.Status{finder.Active, finder.All} {
			for _, text := range []string{"", "magasin"} {
				finds(t, s, finder.Query{Account: account, Status: status, Text: text})
			}
		}
	}
}
