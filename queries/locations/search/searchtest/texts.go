package searchtest

import (
	"encoding/json"
	"testing"

	"lieudit/queries/locations/search"
	"lieudit/schemas/locations"
	"lieudit/schemas/table"
)

var texts = []rule{
	{"every word typed is found in name, address or tags", words},
	{"typos are forgiven by the length of a word", typos},
	{"what answers better comes first", ranking},
	{"nothing else of a site is ever looked at", hiddenFields},
	{"a secret key's text finds external ids", externalIDs},
}

// shops are a few sites as customers have them.
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
		// the last word may be a beginning, others not
		{"b", []string{"lilas", "boeuf"}},
		{"boulangerie men", []string{"lilas"}},
		{"480", []string{"lilas", "michel"}},
		{"bou lilas", nil},
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

func typos(t *testing.T, s Fixture) {
	s.WriteSites(t, shops()...)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"liles", []string{"lilas"}},
		{"llas", []string{"lilas"}},
		{"lials", []string{"lilas"}},
		{"lylos", nil}, // two in five letters
		{"pein", []string{"lilas"}},
		{"pin", nil}, // three letters
		{"boulengerie des", []string{"lilas"}},
		{"bulangrie lilas", []string{"lilas"}},
		{"bolnagrie lilas", nil}, // three
		{"voltiare", []string{"boeuf"}},
		{"pharmcie michle", []string{"michel"}},
		{"48001", nil},
		{"garage 2001", nil},
		{"boulanegri", []string{"lilas"}}, // a beginning with typos
	} {
		wantSites(t, s, search.Query{Text: c.text}, c.want...)
	}
}

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
	s.WriteSites(t, deactivatedRow(namedRow("name", "Primeur")))
	wantFirst(t, s, search.Query{Text: "primeur"}, "tagged")
}

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
