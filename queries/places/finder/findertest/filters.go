package findertest

import (
	"fmt"
	"testing"

	"lieudit/queries/places/finder"
	"lieudit/schemas/site"
	"lieudit/schemas/table"
)

var filters = []rule{
	{"a radius holds what is within it", radius},
	{"a box holds what is within it, across the antimeridian too", boxes},
	{"a site has all tags that are asked for", tags},
	{"a referential's sites alone", referentials},
	{"sites that are not active are found by who asks for them", statuses},
	{"all parts of a question hold", together},
}

func radius(t *testing.T, s Stage) {
	mende := finder.Point{Lat: 44.5180, Lon: 3.5010}
	s.Put(t, at("here", 44.5180, 3.5010), at("near", 44.5270, 3.5010), at("far", 44.6080, 3.5010), named("nowhere", "Nowhere"),
		at("fiji", -17, 179.99), at("tonga", -17, -179.99), at("pole", 90, 0), at("beside", 89.999, 180))
	within := func(p finder.Point, metres float64, want ...string) {
		t.Helper()
		finds(t, s, finder.Query{Center: &p, Radius: metres}, want...)
	}
	within(mende, 1, "here")
	within(mende, 990, "here")
	within(mende, 1010, "here", "near")
	within(mende, 9_900, "here", "near")
	within(mende, 10_100, "here", "near", "far")
	within(finder.Point{Lat: -17, Lon: 180}, 1_500, "fiji", "tonga")
	within(finder.Point{Lat: -17, Lon: 179.99}, 1_500, "fiji")
	within(finder.Point{Lat: 89.9999, Lon: 90}, 1_000, "pole", "beside")
	within(mende, 100_000_000, "here", "near", "far", "fiji", "tonga", "pole", "beside")
	finds(t, s, finder.Query{Center: &mende}, "here", "near", "far", "nowhere", "fiji", "tonga", "pole", "beside")
	for _, h := range search(t, s, finder.Query{Center: &mende}).Hits {
		want := 0.0
		if h.Site.Lat != nil {
			want = finder.Distance(mende, finder.Point{Lat: *h.Site.Lat, Lon: *h.Site.Lon})
		}
		if off := h.Distance - want; off > 0.01 || off < -0.01 {
			t.Errorf("%s is %f m away, want %f", h.Site.ExternalID, h.Distance, want)
		}
	}
}

func boxes(t *testing.T, s Stage) {
	s.Put(t, at("mende", 44.5180, 3.5010), at("florac", 44.3260, 3.5930), at("fiji", -17, 179.9), at("tonga", -17, -179.9), named("nowhere", "Nowhere"))
	within := func(west, south, east, north float64, want ...string) {
		t.Helper()
		finds(t, s, finder.Query{Box: &finder.Box{West: west, South: south, East: east, North: north}}, want...)
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

func tags(t *testing.T, s Stage) {
	tagged := func(externalID string, tags ...string) table.Site {
		return Row("a", "shops", externalID, site.Stored{Content: site.Content{Name: externalID, Tags: tags}})
	}
	s.Put(t, tagged("one", "Wi-Fi", "accès PMR"), tagged("two", "wifi"), tagged("three", "WI FI", "24/7"), tagged("none"),
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
		finds(t, s, finder.Query{Tags: c.tags}, c.want...)
	}
	for i := range 50 { // as many as a site may have
		finds(t, s, finder.Query{Tags: []string{fmt.Sprintf("unknown%d", i), "wifi"}[i%2:]}, []string{"two"}[:i%2]...)
	}
}

func referentials(t *testing.T, s Stage) {
	s.Put(t, Row("a", "shops", "x", site.Stored{Content: site.Content{Name: "Magasin"}}),
		Row("a", "depots", "x", site.Stored{Content: site.Content{Name: "Magasin"}}),
		Row("a", "shops-2", "y", site.Stored{Content: site.Content{Name: "Magasin"}}))
	counts := map[string]int{"": 3, "shops": 1, "depots": 1, "shops-2": 1, "shop": 0, "SHOPS": 0}
	for _, code := range sortedKeys(counts) {
		want := counts[code]
		for _, text := range []string{"", "magasin"} {
			hits := search(t, s, finder.Query{Referential: code, Text: text}).Hits
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

func statuses(t *testing.T, s Stage) {
	gone := named("gone", "Magasin")
	s.Put(t, named("there", "Magasin"), gone, named("back", "Magasin"))
	s.Put(t, inactive(gone), inactive(named("back", "Magasin")))
	for _, text := range []string{"", "magasin"} {
		finds(t, s, finder.Query{Text: text}, "there")
		finds(t, s, finder.Query{Text: text, Status: finder.Active}, "there")
		finds(t, s, finder.Query{Text: text, Status: finder.Inactive}, "gone", "back")
		finds(t, s, finder.Query{Text: text, Status: finder.All}, "there", "gone", "back")
	}
	s.Put(t, changed(inactive(named("back", "Magasin")), site.Stored{Content: site.Content{Name: "Boutique"}}))
	finds(t, s, finder.Query{}, "there", "back")
	finds(t, s, finder.Query{Status: finder.Inactive}, "gone")
	finds(t, s, finder.Query{Status: finder.All}, "there", "gone", "back")
	finds(t, s, finder.Query{Text: "boutique"}, "back")
	for _, h := range search(t, s, finder.Query{Status: finder.All}).Hits {
		if want := h.Site.ExternalID != "gone"; h.Site.Active != want || h.Site.Deactivated.IsZero() != want {
			t.Errorf("%+v is active: %v, want %v", h.Site, h.Site.Active, want)
		}
	}
}

func together(t *testing.T, s Stage) {
	shop := func(code, externalID string, lat float64, tags ...string) table.Site {
		return Row("a", code, externalID, site.Stored{Content: site.Content{Name: "Magasin " + externalID, Tags: tags}, Position: placed(lat, 3.5)})
	}
	s.Put(t, shop("shops", "all", 44.5, "drive"), shop("depots", "referential", 44.5, "drive"), shop("shops", "far", 45.5, "drive"),
		shop("shops", "tag", 44.5), inactive(shop("shops", "gone", 44.5, "drive")),
		Row("a", "shops", "name", site.Stored{Content: site.Content{Name: "Boutique", Tags: []string{"drive"}}, Position: placed(44.5, 3.5)}))
	q := finder.Query{
		Text: "magasin", Center: &finder.Point{Lat: 44.5, Lon: 3.5}, Radius: 10_000, Box: &finder.Box{West: 3, South: 44, East: 4, North: 45},
		Referential: "shops", Tags: []string{"drive"},
	}
	for _, sort := range []finder.Sort{"", finder.ByRelevance, finder.ByDistance, finder.ByName} {
		q.Sort = sort
		lists(t, s, q, "all")
	}
}
