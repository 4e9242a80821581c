package searchtest

import (
	"fmt"
	"testing"

	"lieudit/queries/locations/search"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

var filters = []rule{
	{"a radius holds what is within it", radius},
	{"a box holds what is within it, across the antimeridian too", boxes},
	{"a site has all tags that are asked for", tags},
	{"a referential's sites alone", referentials},
	{"sites that are not active are found by who asks for them", statuses},
	{"all parts of a question hold", combinedFilters},
}

func radius(t *testing.T, s Fixture) {
	mende := search.Point{Lat: 44.5180, Lon: 3.5010}
	s.WriteSites(t, placedRow("here", 44.5180, 3.5010), placedRow("near", 44.5270, 3.5010), placedRow("far", 44.6080, 3.5010), namedRow("nowhere", "Nowhere"),
		placedRow("fiji", -17, 179.99), placedRow("tonga", -17, -179.99), placedRow("pole", 90, 0), placedRow("beside", 89.999, 180))
	within := func(p search.Point, metres float64, want ...string) {
		t.Helper()
		wantSites(t, s, search.Query{Center: &p, Radius: metres}, want...)
	}
	within(mende, 1, "here")
	within(mende, 990, "here")
	within(mende, 1010, "here", "near")
	within(mende, 9_900, "here", "near")
	within(mende, 10_100, "here", "near", "far")
	within(search.Point{Lat: -17, Lon: 180}, 1_500, "fiji", "tonga")
	within(search.Point{Lat: -17, Lon: 179.99}, 1_500, "fiji")
	within(search.Point{Lat: 89.9999, Lon: 90}, 1_000, "pole", "beside")
	within(mende, 100_000_000, "here", "near", "far", "fiji", "tonga", "pole", "beside")
	wantSites(t, s, search.Query{Center: &mende}, "here", "near", "far", "nowhere", "fiji", "tonga", "pole", "beside")
	for _, h := range searchPage(t, s, search.Query{Center: &mende}).Hits {
		want := 0.0
		if h.Site.Lat != nil {
			want = search.Distance(mende, search.Point{Lat: *h.Site.Lat, Lon: *h.Site.Lon})
		}
		if off := h.Distance - want; off > 0.01 || off < -0.01 {
			t.Errorf("%s is %f m away, want %f", h.Site.ExternalID, h.Distance, want)
		}
	}
}

func boxes(t *testing.T, s Fixture) {
	s.WriteSites(t, placedRow("mende", 44.5180, 3.5010), placedRow("florac", 44.3260, 3.5930), placedRow("fiji", -17, 179.9), placedRow("tonga", -17, -179.9), namedRow("nowhere", "Nowhere"))
	within := func(west, south, east, north float64, want ...string) {
		t.Helper()
		wantSites(t, s, search.Query{Box: &search.Box{West: west, South: south, East: east, North: north}}, want...)
	}
	within(3, 44, 4, 45, "mende", "florac")
	within(3, 44.4, 4, 45, "mende")
	within(3.501, 44.518, 3.501, 44.518, "mende")
	within(4, 44, 5, 45)
	within(179, -18, -179, -16, "fiji", "tonga")
	within(-180, -18, 180, -16, "fiji", "tonga")
	within(4, 40, 3.55, 50, "mende")
	within(-180, -90, 180, 90, "mende", "florac", "fiji", "tonga")
}

func tags(t *testing.T, s Fixture) {
	tagged := func(externalID string, tags ...string) table.Site {
		return NewSiteRow("a", "shops", externalID, locations.StoredSite{Content: locations.Content{Name: externalID, Tags: tags}})
	}
	s.WriteSites(t, tagged("one", "Wi-Fi", "accès PMR"), tagged("two", "wifi"), tagged("three", "WI FI", "24/7"), tagged("none"),
		tagged("signs", "★★★", `"x" = 'y'`), tagged("zero", "a\x00b", "★★"))
	for _, c := range []struct {
		tags []string
		want []string
	}{
		{[]string{"wi-fi"}, []string{"one", "three"}},
		{[]string{"wi-fi", "ACCES PMR"}, []string{"one"}},
		{[]string{"wi-fi", "wi-fi"}, []string{"one", "three"}},
		{[]string{"wifi"}, []string{"two"}},
		{[]string{"wi"}, nil},
		{[]string{"pmr"}, nil},
		{[]string{"24/7", "wifi"}, nil},
		{[]string{"★★★"}, []string{"signs"}},
		{[]string{"★★"}, []string{"zero"}},
		{[]string{"★"}, nil},
		{[]string{`"x" = 'y'`}, []string{"signs"}},
		{[]string{"a\x00b"}, []string{"zero"}},
		{[]string{"unknown"}, nil},
	} {
		wantSites(t, s, search.Query{Tags: c.tags}, c.want...)
	}
	for i := range 50 { // as many as a site may have
		wantSites(t, s, search.Query{Tags: []string{fmt.Sprintf("unknown%d", i), "wifi"}[i%2:]}, []string{"two"}[:i%2]...)
	}
}

func referentials(t *testing.T, s Fixture) {
	s.WriteSites(t, NewSiteRow("a", "shops", "x", locations.StoredSite{Content: locations.Content{Name: "Magasin"}}),
		NewSiteRow("a", "depots", "x", locations.StoredSite{Content: locations.Content{Name: "Magasin"}}),
		NewSiteRow("a", "shops-2", "y", locations.StoredSite{Content: locations.Content{Name: "Magasin"}}))
	counts := map[string]int{"": 3, "shops": 1, "depots": 1, "shops-2": 1, "shop": 0, "SHOPS": 0}
	for _, code := range sortedKeys(counts) {
		want := counts[code]
		for _, text := range []string{"", "magasin"} {
			hits := searchPage(t, s, search.Query{Referential: code, Text: text}).Hits
			if len(hits) != want {
				t.Errorf("%q, %q: got %d sites, want %d", code, text, len(hits), want)
			}
			for _, h := range hits {
				if code != "" && h.Site.Referential != code {
					t.Errorf("%q: got a site of %q", code, h.Site.Referential)
				}
			}
		}
	}
}

func statuses(t *testing.T, s Fixture) {
	gone := namedRow("gone", "Magasin")
	s.WriteSites(t, namedRow("there", "Magasin"), gone, namedRow("back", "Magasin"))
	s.WriteSites(t, deactivatedRow(gone), deactivatedRow(namedRow("back", "Magasin")))
	for _, text := range []string{"", "magasin"} {
		wantSites(t, s, search.Query{Text: text}, "there")
		wantSites(t, s, search.Query{Text: text, Status: search.Active}, "there")
		wantSites(t, s, search.Query{Text: text, Status: search.Inactive}, "gone", "back")
		wantSites(t, s, search.Query{Text: text, Status: search.All}, "there", "gone", "back")
	}
	s.WriteSites(t, updatedRow(deactivatedRow(namedRow("back", "Magasin")), locations.StoredSite{Content: locations.Content{Name: "Boutique"}}))
	wantSites(t, s, search.Query{}, "there", "back")
	wantSites(t, s, search.Query{Status: search.Inactive}, "gone")
	wantSites(t, s, search.Query{Status: search.All}, "there", "gone", "back")
	wantSites(t, s, search.Query{Text: "boutique"}, "back")
	for _, h := range searchPage(t, s, search.Query{Status: search.All}).Hits {
		if want := h.Site.ExternalID != "gone"; h.Site.Active != want || h.Site.Deactivated.IsZero() != want {
			t.Errorf("%+v is active: %v, want %v", h.Site, h.Site.Active, want)
		}
	}
}

func combinedFilters(t *testing.T, s Fixture) {
	shop := func(code, externalID string, lat float64, tags ...string) table.Site {
		return NewSiteRow("a", code, externalID, locations.StoredSite{Content: locations.Content{Name: "Magasin " + externalID, Tags: tags}, Position: positionAt(lat, 3.5)})
	}
	s.WriteSites(t, shop("shops", "all", 44.5, "drive"), shop("depots", "referential", 44.5, "drive"), shop("shops", "far", 45.5, "drive"),
		shop("shops", "tag", 44.5), deactivatedRow(shop("shops", "gone", 44.5, "drive")),
		NewSiteRow("a", "shops", "name", locations.StoredSite{Content: locations.Content{Name: "Boutique", Tags: []string{"drive"}}, Position: positionAt(44.5, 3.5)}))
	q := search.Query{
		Text: "magasin", Center: &search.Point{Lat: 44.5, Lon: 3.5}, Radius: 10_000, Box: &search.Box{West: 3, South: 44, East: 4, North: 45},
		Referential: "shops", Tags: []string{"drive"},
	}
	for _, sort := range []search.Sort{"", search.ByRelevance, search.ByDistance, search.ByName} {
		q.Sort = sort
		wantOrder(t, s, q, "all")
	}
}
