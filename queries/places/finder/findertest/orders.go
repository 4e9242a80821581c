package findertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/places/finder"
	"lieudit/schemas/site"
)

var orders = []rule{
	{"by name: folded, without a name last, then by external id", byName},
	{"by distance: without a position last, then by name", byDistance},
	{"without a text relevance is distance, without a center the name", byDefault},
	{"a site is found as it was written", whole},
}

func byName(t *testing.T, s Stage) {
	s.Put(t, named("b-2", "Éclair"), named("b-1", "eclair"), named("c", "École"), named("a", "Zoo"), named("z", "abeille"), named("x", "L'Abri"),
		named("2", "12 Rue"), named("1", "9 Rue"), named("none", ""), named("NONE", "★"), named("œ", "œuf"), named("of", "Office"))
	want := []string{"2", "1", "z", "b-1", "b-2", "c", "x", "œ", "of", "a", "NONE", "none"}
	lists(t, s, finder.Query{Sort: finder.ByName}, want...)
	lists(t, s, finder.Query{}, want...)
	lists(t, s, finder.Query{Text: "rue", Sort: finder.ByName}, "2", "1")
	lists(t, s, finder.Query{Text: "e", Sort: finder.ByName}, "b-1", "b-2", "c")
}

func byDistance(t *testing.T, s Stage) {
	s.Put(t, at("north", 44.6, 3.5), at("here", 44.5, 3.5), at("b", 44.52, 3.5), at("a", 44.52, 3.5), named("nowhere-2", "Zoo"), named("nowhere-1", "zoo"),
		at("east", 44.5, 3.55))
	center := &finder.Point{Lat: 44.5, Lon: 3.5}
	lists(t, s, finder.Query{Center: center, Sort: finder.ByDistance}, "here", "a", "b", "east", "north", "nowhere-1", "nowhere-2")
	lists(t, s, finder.Query{Center: center, Sort: finder.ByDistance, Radius: 5_000}, "here", "a", "b", "east")
	lists(t, s, finder.Query{Center: &finder.Point{Lat: 44.6, Lon: 3.5}, Sort: finder.ByDistance, Text: "north"}, "north")
}

func byDefault(t *testing.T, s Stage) {
	s.Put(t, at("a", 44.6, 3.5), at("b", 44.5, 3.5), at("c", 44.55, 3.5))
	center := &finder.Point{Lat: 44.5, Lon: 3.5}
	for _, sort := range []finder.Sort{"", finder.ByRelevance} {
		lists(t, s, finder.Query{Sort: sort}, "a", "b", "c")
		lists(t, s, finder.Query{Sort: sort, Text: "  "}, "a", "b", "c")
		lists(t, s, finder.Query{Sort: sort, Center: center}, "b", "c", "a")
		lists(t, s, finder.Query{Sort: sort, Center: center, Text: " "}, "b", "c", "a")
	}
	lists(t, s, finder.Query{Sort: finder.ByName, Center: center}, "a", "b", "c")
}

func whole(t *testing.T, s Stage) {
	lat, lon := 44.5180123456789, 3.5010987654321
	stored := site.Stored{
		Content: site.Content{
			Name: `Le "Bœuf" <&> 🥐`, Address: &site.Address{Line1: "1 rue A", Line2: "Bât. B", PostalCode: "48000", City: "Mende", InseeCode: "48095", Country: "FR"},
			Hours: []byte(`{"lun":["09:00-12:00"]}`), Phone: "04", Email: "a@b.fr", Website: "https://b.fr", Tags: []string{"b", "a"},
			Properties: []byte(`{"n":12345678901234567890,"x":1.0}`),
		},
		Position: &site.Position{Lat: lat, Lon: lon, Source: site.FromBan, IDBan: "id-ban", Score: 0.875},
	}
	row := inactive(Row("a", "shops", "x", stored))
	s.Put(t, row)
	want := site.Site{
		ID: row.Site, Referential: "shops", ExternalID: "x", Content: stored.Content, Source: site.FromBan, Score: 0.875,
		Version: 2, Created: row.Created.Time(), Modified: row.Modified.Time(), Deactivated: row.Deactivated.Time(),
	}
	want.Lat, want.Lon, want.IDBan = &lat, &lon, "id-ban"
	hits := search(t, s, finder.Query{Status: finder.All, Text: "boeuf"}).Hits
	if diff := cmp.Diff([]finder.Hit{{Site: want}}, hits); diff != "" {
		t.Error(diff)
	}
}
