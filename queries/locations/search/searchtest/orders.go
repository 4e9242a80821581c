package searchtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/locations/search"
	"lieudit/schemas/locations"
)

var orders = []rule{
	{"by name: folded, without a name last, then by external id", byName},
	{"by distance: without a position last, then by name", byDistance},
	{"without a text relevance is distance, without a center the name", byDefault},
	{"a site is found as it was written", roundTrip},
}

func byName(t *testing.T, s Fixture) {
	s.WriteSites(t, namedRow("b-2", "Éclair"), namedRow("b-1", "eclair"), namedRow("c", "École"), namedRow("a", "Zoo"), namedRow("z", "abeille"), namedRow("x", "L'Abri"),
		namedRow("2", "12 Rue"), namedRow("1", "9 Rue"), namedRow("none", ""), namedRow("NONE", "★"), namedRow("œ", "œuf"), namedRow("of", "Office"))
	want := []string{"2", "1", "z", "b-1", "b-2", "c", "x", "œ", "of", "a", "NONE", "none"}
	wantOrder(t, s, search.Query{Sort: search.ByName}, want...)
	wantOrder(t, s, search.Query{}, want...)
	wantOrder(t, s, search.Query{Text: "rue", Sort: search.ByName}, "2", "1")
	wantOrder(t, s, search.Query{Text: "e", Sort: search.ByName}, "b-1", "b-2", "c")
}

func byDistance(t *testing.T, s Fixture) {
	s.WriteSites(t, placedRow("north", 44.6, 3.5), placedRow("here", 44.5, 3.5), placedRow("b", 44.52, 3.5), placedRow("a", 44.52, 3.5), namedRow("nowhere-2", "Zoo"), namedRow("nowhere-1", "zoo"),
		placedRow("east", 44.5, 3.55))
	center := &search.Point{Lat: 44.5, Lon: 3.5}
	wantOrder(t, s, search.Query{Center: center, Sort: search.ByDistance}, "here", "a", "b", "east", "north", "nowhere-1", "nowhere-2")
	wantOrder(t, s, search.Query{Center: center, Sort: search.ByDistance, Radius: 5_000}, "here", "a", "b", "east")
	wantOrder(t, s, search.Query{Center: &search.Point{Lat: 44.6, Lon: 3.5}, Sort: search.ByDistance, Text: "north"}, "north")
}

func byDefault(t *testing.T, s Fixture) {
	s.WriteSites(t, placedRow("a", 44.6, 3.5), placedRow("b", 44.5, 3.5), placedRow("c", 44.55, 3.5))
	center := &search.Point{Lat: 44.5, Lon: 3.5}
	for _, sort := range []search.Sort{"", search.ByRelevance} {
		wantOrder(t, s, search.Query{Sort: sort}, "a", "b", "c")
		wantOrder(t, s, search.Query{Sort: sort, Text: "  "}, "a", "b", "c")
		wantOrder(t, s, search.Query{Sort: sort, Center: center}, "b", "c", "a")
		wantOrder(t, s, search.Query{Sort: sort, Center: center, Text: " "}, "b", "c", "a")
	}
	wantOrder(t, s, search.Query{Sort: search.ByName, Center: center}, "a", "b", "c")
}

func roundTrip(t *testing.T, s Fixture) {
	lat, lon := 44.5180123456789, 3.5010987654321
	stored := locations.StoredSite{
		Content: locations.Content{
			Name: `Le "Bœuf" <&> 🥐`, Address: &locations.SiteAddress{Line1: "1 rue A", Line2: "Bât. B", PostalCode: "48000", City: "Mende", InseeCode: "48095", Country: "FR"},
			Hours: []byte(`{"lun":["09:00-12:00"]}`), Phone: "04", Email: "a@b.fr", Website: "https://b.fr", Tags: []string{"b", "a"},
			Properties: []byte(`{"n":12345678901234567890,"x":1.0}`),
		},
		Position: &locations.Position{Lat: lat, Lon: lon, Source: locations.SourceBAN, IDBan: "id-ban", Score: 0.875},
	}
	row := deactivatedRow(NewSiteRow("a", "shops", "x", stored))
	s.WriteSites(t, row)
	want := locations.Site{
		ID: row.PublicID, Referential: "shops", ExternalID: "x", Content: stored.Content, Source: locations.SourceBAN, Score: 0.875,
		Version: 2, Created: row.Created.Time(), Modified: row.Modified.Time(), Deactivated: row.Deactivated.Time(),
	}
	want.Lat, want.Lon, want.IDBan = &lat, &lon, "id-ban"
	hits := searchPage(t, s, search.Query{Status: search.All, Text: "boeuf"}).Hits
	if diff := cmp.Diff([]search.Hit{{Site: want}}, hits); diff != "" {
		t.Error(diff)
	}
}
