package searchtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/locations/search"
	"lieudit/schemas/geo"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

// Rules of what a text finds. A text may have other capitals than the site, no accents, typos, an abbreviation in full or
// the beginning of its last word only, and finds the site all the same.
var texts = []rule{
	{"every word typed is found in name, address or tags", words},
	{"typos are forgiven by the length of a word", typos},
	{"what answers better comes first", ranking},
	{"nothing else of a site is ever looked at", hiddenFields},
	{"a secret key's text finds external ids", externalIDs},
	{"the signs of an external id are signs like others", externalIDsWithSigns},
}

// shops are a few sites as customers have them: with accents, ligatures, abbreviations (bd, St, Av., Gal, ZI), articles
// with an apostrophe, numbers and tags. The rules name them by their external ids.
func shops() []table.Site {
	shop := func(externalID, name, line, postcode, city string, tags ...string) table.Site {
		return NewSiteRow("a", "shops", externalID, locations.StoredSite{Content: locations.Content{
			Name: name, Address: &locations.SiteAddress{Line1: line, PostalCode: postcode, City: city}, Tags: tags}})
	}
	return []table.Site{
		shop("lilas", "Boulangerie des Lilas", "12 rue de l'Église", "48000", "Mende", "pain", "bio"),
		shop("boeuf", "Au Cœur de Bœuf", "3 bd Voltaire", "48100", "Marvejols", "Viande bio"),
		shop("michel", "Pharmacie St Michel", "7 place Saint-Jean", "48000", "Mende"),
		shop("hotel", "HÔTEL DU CHÂTEAU", "Av. du Gal Leclerc", "48400", "Florac", "wi-fi"),
		shop("livres", "Librairie de Mende", "1er étage, ZI du Causse", "48500", "La Canourgue"),
		shop("garage", "Garage 2000", "5 route de Mende", "48100", "Marvejols", "24/7"),
	}
}

// words has a case for each way in which a word can be found: as it is, folded, as an abbreviation or what it stands
// for, and as a beginning.
func words(t *testing.T, s Fixture) {
	s.WriteSites(t, shops()...)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"boulangerie", []string{"lilas"}},
		{"BOULANGERIE", []string{"lilas"}},
		{"lilas boulangerie", []string{"lilas"}},
		{"boulangerie mende", []string{"lilas"}},
		{"boulangerie marvejols", nil},
		{"bio", []string{"lilas", "boeuf"}},
		{"bio 48100", []string{"boeuf"}},
		{"eglise", []string{"lilas"}},
		{"l’église", []string{"lilas"}},
		{"coeur de boeuf", []string{"boeuf"}},
		{"CŒUR-DE-BŒUF", []string{"boeuf"}},
		{"hotel chateau", []string{"hotel"}},
		{"Ho\u0302tel", []string{"hotel"}},
		{"wi fi", []string{"hotel"}},
		{"  mende  ", []string{"lilas", "michel", "livres", "garage"}},
		// the last word may be a beginning
		{"b", []string{"lilas", "boeuf"}},
		{"boulangerie men", []string{"lilas"}},
		{"480", []string{"lilas", "michel"}},
		// and two words before it that have three letters
		{"bou lilas", []string{"lilas"}},
		{"bou lil", []string{"lilas"}},
		{"boulang li", []string{"lilas"}},
		{"phar mic men", []string{"michel"}},
		{"lib de men", []string{"livres"}},
		{"coe de boe", []string{"boeuf"}},
		{"bo lilas", nil},
		{"boulangeries lilas", []string{"lilas"}}, // a typo
		{"boulangrie lilas", []string{"lilas"}},   // typos in a whole word
		{"boulangx lilas", nil},                   // a beginning before the last word has no typos
		{"phar mic pla men", nil},                 // three are too many, although place is there
		{"480 mende", nil},                        // nor are numbers beginnings there
		// what is short for something is the same as it
		{"saint michel", []string{"michel"}},
		{"st jean", []string{"michel"}},
		{"boulevard voltaire", []string{"boeuf"}},
		{"bvd voltaire", []string{"boeuf"}},
		{"avenue du général leclerc", []string{"hotel"}},
		{"zone industrielle causse", []string{"livres"}},
		{"zi causse", []string{"livres"}},
		{"1er etage", []string{"livres"}},
		{"n° 12 rue", []string{"lilas"}},
		{"place", []string{"michel"}},
	} {
		wantSites(t, s, search.Query{Text: c.text}, c.want...)
	}
}

// typos has a case for each number of typos that a word of some length may have (search.AllowedTypos): letters that are
// missing, wrong or swapped. Words of three letters and numbers must be exact.
func typos(t *testing.T, s Fixture) {
	s.WriteSites(t, shops()...)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"liles", []string{"lilas"}},
		{"llas", []string{"lilas"}},
		{"lials", []string{"lilas"}},
		{"lylos", nil}, // two typos in five letters, where one is allowed
		{"pein", []string{"lilas"}},
		{"pin", nil}, // no typo is allowed in three letters
		{"boulengerie des", []string{"lilas"}},
		{"bulangrie lilas", []string{"lilas"}},
		{"bolnagrie lilas", nil}, // three typos; two are the most that are allowed
		{"voltiare", []string{"boeuf"}},
		{"pharmcie michle", []string{"michel"}},
		{"48001", nil},
		{"garage 2001", nil},
		{"boulanegri", []string{"lilas"}}, // a beginning with typos
	} {
		wantSites(t, s, search.Query{Text: c.text}, c.want...)
	}
}

// ranking looks at the first place only: engines need not agree on the others. An exact word is before a beginning, and
// that before a typo; the name is before tags, and these before the street.
func ranking(t *testing.T, s Fixture) {
	s.WriteSites(t, shops()...)
	s.WriteSites(t, namedRow("exact", "Soleil"), namedRow("longer", "Soleils du Midi"), namedRow("typo", "Soleol"))
	tagged := NewSiteRow("a", "shops", "tagged", locations.StoredSite{Content: locations.Content{Name: "Aaa", Tags: []string{"primeur"}}})
	street := NewSiteRow("a", "shops", "street", locations.StoredSite{Content: locations.Content{Name: "Aaa", Address: &locations.SiteAddress{Line1: "rue Primeur"}}})
	s.WriteSites(t, tagged, street, namedRow("name", "Primeur"))
	wantFirst(t, s, search.Query{Text: "mende"}, "livres") // in the name
	wantFirst(t, s, search.Query{Text: "soleil"}, "exact")
	wantFirst(t, s, search.Query{Text: "soleils"}, "longer")
	wantFirst(t, s, search.Query{Text: "soleol"}, "typo")
	wantFirst(t, s, search.Query{Text: "primeur"}, "name")
	wantSites(t, s, search.Query{Text: "primeur"}, "name", "tagged", "street")
	s.WriteSites(t, namedRow("short", "Mag Flora"), namedRow("long", "Magasin Florac"), namedRow("half", "Mag Florac Sud"))
	wantSites(t, s, search.Query{Text: "mag flo"}, "short", "long", "half")
	wantFirst(t, s, search.Query{Text: "mag flora"}, "short")
	wantFirst(t, s, search.Query{Text: "magasin flo"}, "long")
	wantFirst(t, s, search.Query{Text: "mag florac"}, "half")
	s.WriteSites(t, deactivatedRow(namedRow("name", "Primeur")))
	wantFirst(t, s, search.Query{Text: "primeur"}, "tagged")
}

// hiddenFields looks for what is in every member of a site that must not be searched. The site is found by its name alone,
// so it is there to be found.
func hiddenFields(t *testing.T, s Fixture) {
	s.WriteSites(t, NewSiteRow("a", "referentiel", "ext-4711", locations.StoredSite{
		Content: locations.Content{
			Name: "Nom", Hours: json.RawMessage(`{"lundi":"ouvert"}`), Phone: "0466112233", Email: "courriel@exemple.fr",
			Website: "https://exemple.fr/vitrine", Properties: json.RawMessage(`{"marge":"confidentiel"}`), IDBan: "48095_abcd",
		},
		Position: &locations.Position{Lat: 44.5, Lon: 3.5, Source: locations.SourceBAN, IDBan: "48095_wxyz_00012", Score: 0.875},
	}))
	for _, text := range []string{
		"lundi", "ouvert", "0466112233", "courriel", "courriel@exemple.fr", "vitrine", "https", "marge", "confidentiel", "48095_abcd",
		"48095", "wxyz", "0.875", "44.5", "ban", "referentiel", "true", "2026", "content", "position",
	} {
		wantSites(t, s, search.Query{Text: text})
		wantSites(t, s, search.Query{Text: text, MatchExternalIDs: true})
		wantSites(t, s, search.Query{Text: "nom " + text, MatchExternalIDs: true})
		wantSites(t, s, search.Query{Tags: []string{text}, MatchExternalIDs: true})
	}
	wantSites(t, s, search.Query{Text: "nom"}, "ext-4711")
}

// externalIDs looks for ids and their beginnings, with MatchExternalIDs and without. The whole id is first, and the case of
// letters does not matter. A site named like the beginning of an id is found by its name.
func externalIDs(t *testing.T, s Fixture) {
	s.WriteSites(t, namedRow("MAG-0042", "Un"), namedRow("MAG-0042.b", "Deux"), namedRow("mag-1", "Trois"), namedRow("7f3a~c_9", "MAG"))
	for _, text := range []string{"MAG-0042", "mag-0042", "mag-00", "7f3a~c_9", "7f3"} {
		wantSites(t, s, search.Query{Text: text})
	}
	wantSites(t, s, search.Query{Text: "mag-0042", MatchExternalIDs: true}, "MAG-0042", "MAG-0042.b")
	wantFirst(t, s, search.Query{Text: "mag-0042", MatchExternalIDs: true}, "MAG-0042")
	wantSites(t, s, search.Query{Text: " MAG-0042.B ", MatchExternalIDs: true}, "MAG-0042.b")
	wantSites(t, s, search.Query{Text: "mag-", MatchExternalIDs: true}, "MAG-0042", "MAG-0042.b", "mag-1", "7f3a~c_9")
	wantSites(t, s, search.Query{Text: "mag-0043", MatchExternalIDs: true})
	wantSites(t, s, search.Query{Text: "0042", MatchExternalIDs: true})
	wantSites(t, s, search.Query{Text: "7F3A~C_9", MatchExternalIDs: true}, "7f3a~c_9")
	wantSites(t, s, search.Query{Text: "7f3a", MatchExternalIDs: true}, "7f3a~c_9")
	wantSites(t, s, search.Query{Text: "deux", MatchExternalIDs: true}, "MAG-0042.b")
	wantSites(t, s, search.Query{Text: "mag"}, "7f3a~c_9")
}

// externalIDsWithSigns looks for ids that hold signs which filters and patterns give a meaning to elsewhere.
func externalIDsWithSigns(t *testing.T, s Fixture) {
	ids := []string{"Node:123", "node:123:deactivate", "node:1*", "a@b+c", "*", "+33"}
	for _, id := range ids {
		s.WriteSites(t, namedRow(id, "Nom"))
	}
	wantSites(t, s, search.Query{Text: "node:123", MatchExternalIDs: true}, "Node:123", "node:123:deactivate")
	wantFirst(t, s, search.Query{Text: "node:123", MatchExternalIDs: true}, "Node:123")
	wantSites(t, s, search.Query{Text: "node:1", MatchExternalIDs: true}, "Node:123", "node:123:deactivate", "node:1*")
	wantSites(t, s, search.Query{Text: "node:1*", MatchExternalIDs: true}, "node:1*")
	wantSites(t, s, search.Query{Text: "A@B+", MatchExternalIDs: true}, "a@b+c")
	wantSites(t, s, search.Query{Text: "*", MatchExternalIDs: true}, "*")
	wantSites(t, s, search.Query{Text: "+33", MatchExternalIDs: true}, "+33")
	for _, id := range ids {
		wantSites(t, s, search.Query{Text: id})
	}
	wantSites(t, s, search.Query{Text: "nom"}, ids...)
}

// Rules of what the other parts of a query find. Unlike a text, they hold exactly.
var filters = []rule{
	{"a radius holds what is within it", radius},
	{"a box holds what is within it, across the antimeridian too", boxes},
	{"a site has all tags that are asked for", tags},
	{"a referential's sites alone", referentials},
	{"sites that are not active are found by who asks for them", statuses},
	{"open sites alone, by the clock of each", openSites},
	{"all that is found is counted", countsOfAll},
	{"all parts of a question hold", combinedFilters},
}

// radius has circles around a pole and across the antimeridian too. A degree of latitude is 111.2 km, so near is 1 km from
// here, and far 10 km. The distances of hits are compared with search.Distance.
func radius(t *testing.T, s Fixture) {
	mende := geo.Point{Lat: 44.5180, Lon: 3.5010}
	s.WriteSites(t, placedRow("here", 44.5180, 3.5010), placedRow("near", 44.5270, 3.5010), placedRow("far", 44.6080, 3.5010), namedRow("nowhere", "Nowhere"),
		placedRow("fiji", -17, 179.99), placedRow("tonga", -17, -179.99), placedRow("pole", 90, 0), placedRow("beside", 89.999, 180))
	within := func(p geo.Point, metres float64, want ...string) {
		t.Helper()
		wantSites(t, s, search.Query{Center: &p, Radius: metres}, want...)
	}
	within(mende, 1, "here")
	within(mende, 990, "here")
	within(mende, 1010, "here", "near")
	within(mende, 9_900, "here", "near")
	within(mende, 10_100, "here", "near", "far")
	within(geo.Point{Lat: -17, Lon: 180}, 1_500, "fiji", "tonga")
	within(geo.Point{Lat: -17, Lon: 179.99}, 1_500, "fiji")
	within(geo.Point{Lat: 89.9999, Lon: 90}, 1_000, "pole", "beside")
	within(mende, 100_000_000, "here", "near", "far", "fiji", "tonga", "pole", "beside")
	wantSites(t, s, search.Query{Center: &mende}, "here", "near", "far", "nowhere", "fiji", "tonga", "pole", "beside")
	for _, h := range searchPage(t, s, search.Query{Center: &mende}).Hits {
		want := 0.0
		if h.Site.Lat != nil {
			want = geo.Distance(mende, geo.Point{Lat: *h.Site.Lat, Lon: *h.Site.Lon})
		}
		if off := h.Distance - want; off > 0.01 || off < -0.01 {
			t.Errorf("%s is %f m away, want %f", h.Site.ExternalID, h.Distance, want)
		}
	}
}

// boxes has boxes of one point, of the whole Earth and across the antimeridian too, where West is greater than East. A
// site without a position is in no box.
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

// tags has tags of signs alone too, which fold to nothing and are compared as they are. A tag is never found by a part of
// it, and two tags must both be there.
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
	for i := range 50 { // as many tags as a site may have
		wantSites(t, s, search.Query{Tags: []string{fmt.Sprintf("unknown%d", i), "wifi"}[i%2:]}, []string{"two"}[:i%2]...)
	}
}

// referentials has codes that begin alike, and the same external id in two of them. A code counts as it is, in its case and
// whole.
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

// statuses has a site that was deactivated, and one that was active again later. Without a status a query finds the active
// sites.
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

// openSites has sites that are open at other hours of Monday 2026-11-23 (UTC), and some of which that is not known. There are more
// than a page of closed ones between the open ones.
func openSites(t *testing.T, s Fixture) {
	open := func(externalID, hours string, a *locations.SiteAddress) table.Site {
		return NewSiteRow("a", "shops", externalID, locations.StoredSite{
			Content: locations.Content{Name: "Magasin " + externalID, Hours: json.RawMessage(hours), Address: a}, Position: positionAt(44.5, 3.5),
		})
	}
	const monday = `{"hebdo":[{"jours":["lu"],"de":"09:00","a":"12:30"}]}`
	s.WriteSites(t, open("mende", monday, nil), open("noon", `{"hebdo":[{"jours":["lu"],"de":"12:00","a":"14:00"}]}`, nil),
		open("reunion", monday, &locations.SiteAddress{PostalCode: "97400"}), open("zone", `{"fuseau":"Indian/Reunion","hebdo":[{"jours":["lu"],"de":"09:00","a":"12:30"}]}`, nil),
		open("night", `{"hebdo":[{"jours":["di"],"de":"22:00","a":"05:30"}]}`, nil), open("holiday", `{"hebdo":[{"jours":["lu"],"de":"09:00","a":"12:30"}],"exceptions":[{"du":"2026-11-23","ferme":true}]}`, nil),
		open("text", `{"texte":"9h-12h30"}`, nil), open("none", "", nil))
	for i := range 40 {
		s.WriteSites(t, open(fmt.Sprint("closed", i), `{"hebdo":[{"jours":["ma"],"de":"09:00","a":"12:30"}]}`, nil))
	}
	for _, c := range []struct {
		clock string
		want  []string
	}{
		{"04:00", []string{"night"}}, {"05:00", []string{"reunion", "zone"}}, {"08:00", []string{"mende", "reunion", "zone"}},
		{"11:15", []string{"mende", "noon"}}, {"13:00", nil},
	} {
		at, _ := time.Parse(time.DateTime, "2026-11-23 "+c.clock+":00")
		for _, q := range []search.Query{
			{OpenAt: at}, {OpenAt: at, Text: "magasin"}, {OpenAt: at, Text: "mag", Sort: search.ByName},
			{OpenAt: at, Center: &geo.Point{Lat: 44.5, Lon: 3.5}, Radius: 100}, {OpenAt: at, Referential: "shops", Status: search.All},
		} {
			wantSites(t, s, q, c.want...)
			q.Account, q.Limit = "a", 1
			if got := hitIDs(collectPages(t, s, q, func(int) {})); len(got) != len(c.want) {
				t.Errorf("%+v: got %q in pages, want %q", q, got, c.want)
			}
		}
	}
}

// countsOfAll counts what queries find on all their pages, and the values of facets in all their spellings.
func countsOfAll(t *testing.T, s Fixture) {
	s.WriteSites(t, shops()...)
	s.WriteSites(t, NewSiteRow("a", "depots", "depot", locations.StoredSite{Content: locations.Content{
		Name: "Dépôt Mende", Tags: []string{"Bio", "bio", "Pain"}, Address: &locations.SiteAddress{City: "MENDE"}}}),
		deactivatedRow(namedRow("gone", "Mende")), NewSiteRow("b", "shops", "other", locations.StoredSite{Content: locations.Content{Name: "Mende"}}))
	all := []search.Facet{search.TagFacet, search.TownFacet, search.ReferentialFacet}
	for _, c := range []struct {
		q      search.Query
		facets []search.Facet
		want   search.Counts
	}{
		{search.Query{}, nil, search.Counts{Total: 7, Facets: map[search.Facet][]search.ValueCount{}}},
		{search.Query{Text: "nothing"}, []search.Facet{search.TagFacet}, search.Counts{Facets: map[search.Facet][]search.ValueCount{search.TagFacet: {}}}},
		{search.Query{Text: "???"}, nil, search.Counts{Facets: map[search.Facet][]search.ValueCount{}}},
		{search.Query{Status: search.All}, nil, search.Counts{Total: 8, Facets: map[search.Facet][]search.ValueCount{}}},
		{search.Query{Text: "pain bio"}, all, search.Counts{Total: 2, Facets: map[search.Facet][]search.ValueCount{
			search.TagFacet: {{Value: "Bio", Sites: 2}, {Value: "Pain", Sites: 2}}, search.TownFacet: {{Value: "MENDE", Sites: 2}},
			search.ReferentialFacet: {{Value: "depots", Sites: 1}, {Value: "shops", Sites: 1}},
		}}},
		{search.Query{Referential: "shops", Text: "bio"}, []search.Facet{search.TownFacet}, search.Counts{Total: 2, Facets: map[search.Facet][]search.ValueCount{
			search.TownFacet: {{Value: "Marvejols", Sites: 1}, {Value: "Mende", Sites: 1}},
		}}},
	} {
		c.q.Account, c.q.Limit = "a", 1
		got, err := s.Engine().Count(t.Context(), c.q, c.facets)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%+v: %v, %s", c.q, err, diff)
		}
	}
	if _, err := s.Engine().Count(t.Context(), search.Query{Account: "a"}, nil); !errors.Is(err, search.ErrInvalidQuery) {
		t.Errorf("a page of none: got %v", err)
	}
}

// combinedFilters has for each part of a query a site that does not meet this part alone. Only the site that meets all is
// found, in every order.
func combinedFilters(t *testing.T, s Fixture) {
	shop := func(code, externalID string, lat float64, tags ...string) table.Site {
		return NewSiteRow("a", code, externalID, locations.StoredSite{Content: locations.Content{Name: "Magasin " + externalID, Tags: tags}, Position: positionAt(lat, 3.5)})
	}
	s.WriteSites(t, shop("shops", "all", 44.5, "drive"), shop("depots", "referential", 44.5, "drive"), shop("shops", "far", 45.5, "drive"),
		shop("shops", "tag", 44.5), deactivatedRow(shop("shops", "gone", 44.5, "drive")),
		NewSiteRow("a", "shops", "name", locations.StoredSite{Content: locations.Content{Name: "Boutique", Tags: []string{"drive"}}, Position: positionAt(44.5, 3.5)}))
	q := search.Query{
		Text: "magasin", Center: &geo.Point{Lat: 44.5, Lon: 3.5}, Radius: 10_000, Box: &search.Box{West: 3, South: 44, East: 4, North: 45},
		Referential: "shops", Tags: []string{"drive"},
	}
	for _, sort := range []search.Sort{"", search.ByRelevance, search.ByDistance, search.ByName} {
		q.Sort = sort
		wantOrder(t, s, q, "all")
	}
}

// Rules of input that no honest client sends. It is answered as any other, or refused with an error of package search; it
// never reaches a filter or a statement as anything but a value.
var edgeCases = []rule{
	{"odd texts are texts", oddTexts},
	{"words of every script are found", scripts},
	{"odd filters hold literally", oddFilters},
	{"what makes no sense is refused", invalidQueries},
}

// oddTexts has texts that are code, zero bytes, broken UTF-8 or very long. They find what their words find. Signs separate
// words, so a text of signs alone has no words and finds nothing. A soft hyphen or a broken byte inside a word makes
// it another text.
func oddTexts(t *testing.T, s Fixture) {
	s.WriteSites(t, namedRow("plain", "Magasin"), namedRow("long", strings.Repeat("a", 200)), namedRow("emoji", "🥐 Fournil 🥖"), namedRow("account", "account a b"))
	for _, c := range []struct {
		text string
		want []string
	}{
		{strings.Repeat("a", 200), []string{"long"}},
		{strings.Repeat("a", 199), []string{"long"}},
		{strings.Repeat("a", 199) + "b", nil},
		{strings.Repeat("z", 200), nil},
		{strings.Repeat("é", 200), nil},
		{"???", nil},
		{"'\"`;--", nil},
		{"🥐", nil},
		{"🥐 fournil 🎉", []string{"emoji"}},
		{`account = "b"`, []string{"account"}},
		{`magasin" OR account = "b`, nil},
		{"magasin'); drop table site; --", nil},
		{"magasin\x00", []string{"plain"}},
		{"\x00", nil},
		{"mag\xffasin", nil},
		{"\xff\xfe", nil},
		{"-magasin", []string{"plain"}},
		{`"magasin"`, []string{"plain"}},
		{"magasin*", []string{"plain"}},
		{"* * *", nil},
		{"magasin " + strings.Repeat("magasin ", 20), []string{"plain"}},
		{"\u202emagasin\u202c", []string{"plain"}},
		{"ma\u00adgasin", nil},
	} {
		wantSites(t, s, search.Query{Text: c.text}, c.want...)
		wantSites(t, s, search.Query{Text: c.text, MatchExternalIDs: true}, c.want...)
	}
}

// scripts has words that are not in Latin letters, as they are, as beginnings and in another case. ß is found as ss.
func scripts(t *testing.T, s Fixture) {
	s.WriteSites(t, namedRow("arabic", "مخبز الزهور"), namedRow("hebrew", "מאפיית הפרחים"), namedRow("greek", "Φούρνος Λουλούδι"), namedRow("russian", "Пекарня Цветы"),
		namedRow("german", "Straße"))
	for _, c := range [][2]string{
		{"مخبز", "arabic"}, {"الزهو", "arabic"}, {"הפרחים", "hebrew"}, {"ΦΟΥΡΝΟΣ", "greek"}, {"пекарня", "russian"},
		{"ПЕКАРНЯ цветы", "russian"}, {"strasse", "german"}, {"STRAẞE", "german"},
	} {
		wantSites(t, s, search.Query{Text: c[0]}, c[1])
	}
}

// oddFilters has tags and codes that try to be part of a filter or of a statement. Those that a site has are found; all
// others find nothing and are no error.
func oddFilters(t *testing.T, s Fixture) {
	s.WriteSites(t, NewSiteRow("a", "shops", "x", locations.StoredSite{Content: locations.Content{Name: "Magasin", Tags: []string{`a"b`, `a' OR '1'='1`, "back\\slash"}}}))
	for _, tag := range []string{`a"b`, `a' OR '1'='1`, "back\\slash"} {
		wantSites(t, s, search.Query{Tags: []string{tag}}, "x")
	}
	for _, tag := range []string{`x" OR account = "a`, `'`, `"`, "\\", "\x00", "\xff", "", " ", strings.Repeat("a", 10_000), "🥐"} {
		wantSites(t, s, search.Query{Tags: []string{tag}})
	}
	for _, code := range []string{`x" OR referential = "shops`, `'`, `shops' --`, "shops\x00", "\xff", "sho*", "🥐"} {
		wantSites(t, s, search.Query{Referential: code})
	}
}

// invalidQueries has a query for each reason that search.Query.Validate knows. The engine returns ErrInvalidQuery, although
// there are sites to find.
func invalidQueries(t *testing.T, s Fixture) {
	s.WriteSites(t, namedRow("x", "Magasin"))
	here := &geo.Point{}
	for _, q := range []search.Query{
		{Limit: -1}, {Limit: 0}, {Limit: 1, Status: "actives"}, {Limit: 1, Sort: "name"}, {Limit: 1, Sort: search.ByDistance}, {Limit: 1, Radius: 10},
		{Limit: 1, Center: here, Radius: -1}, {Limit: 1, Center: here, Radius: math.NaN()},
		{Limit: 1, Center: &geo.Point{Lat: math.NaN()}}, {Limit: 1, Center: &geo.Point{Lat: 91}}, {Limit: 1, Center: &geo.Point{Lon: -181}},
		{Limit: 1, Box: &search.Box{South: 1, North: -1}}, {Limit: 1, Box: &search.Box{East: math.Inf(1)}}, {Limit: 1, Box: &search.Box{North: math.NaN()}},
	} {
		q.Account = "a"
		if _, err := s.Engine().Search(t.Context(), q); !errors.Is(err, search.ErrInvalidQuery) {
			t.Errorf("%+v: got %v, want %v", q, err, search.ErrInvalidQuery)
		}
	}
}
