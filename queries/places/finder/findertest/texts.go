package findertest

import (
	"encoding/json"
	"testing"

	"lieudit/queries/places/finder"
	"lieudit/schemas/site"
	"lieudit/schemas/table"
)

var texts = []rule{
	{"every word typed is found in name, address or tags", words},
	{"typos are forgiven by the length of a word", typos},
	{"what answers better comes first", better},
	{"nothing else of a site is ever looked at", hidden},
	{"a secret key's text finds external ids", externalIDs},
}

// shops are a few sites as customers have them.
func shops() []table.Site {
	shop := func(externalID, name, line, postcode, city string, tags ...string) table.Site {
		return Row("a", "shops", externalID, site.Stored{Content: site.Content{
			Name: name, Address: &site.Address{Line1: line, PostalCode: postcode, City: city}, Tags: tags}})
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

func words(t *testing.T, s Stage) {
	s.Put(t, shops()...)
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
		finds(t, s, finder.Query{Text: c.text}, c.want...)
	}
}

func typos(t *testing.T, s Stage) {
	s.Put(t, shops()...)
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
		finds(t, s, finder.Query{Text: c.text}, c.want...)
	}
}

func better(t *testing.T, s Stage) {
	s.Put(t, shops()...)
	s.Put(t, named("exact", "Soleil"), named("longer", "Soleils du Midi"), named("typo", "Soleol"))
	tagged := Row("a", "shops", "tagged", site.Stored{Content: site.Content{Name: "Aaa", Tags: []string{"primeur"}}})
	street := Row("a", "shops", "street", site.Stored{Content: site.Content{Name: "Aaa", Address: &site.Address{Line1: "rue Primeur"}}})
	s.Put(t, tagged, street, named("name", "Primeur"))
	first(t, s, finder.Query{Text: "mende"}, "livres") // in the name
	first(t, s, finder.Query{Text: "soleil"}, "exact")
	first(t, s, finder.Query{Text: "soleils"}, "longer")
	first(t, s, finder.Query{Text: "soleol"}, "typo")
	first(t, s, finder.Query{Text: "primeur"}, "name")
	finds(t, s, finder.Query{Text: "primeur"}, "name", "tagged", "street")
	s.Put(t, inactive(named("name", "Primeur")))
	first(t, s, finder.Query{Text: "primeur"}, "tagged")
}

func hidden(t *testing.T, s Stage) {
	s.Put(t, Row("a", "referentiel", "ext-4711", site.Stored{
		Content: site.Content{
			Name: "Nom", Hours: json.RawMessage(`{"lundi":"ouvert"}`), Phone: "0466112233", Email: "courriel@exemple.fr",
			Website: "https://exemple.fr/vitrine", Properties: json.RawMessage(`{"marge":"confidentiel"}`), IDBan: "48095_abcd",
		},
		Position: &site.Position{Lat: 44.5, Lon: 3.5, Source: site.FromBan, IDBan: "48095_wxyz_00012", Score: 0.875},
	}))
	for _, text := range []string{
		"lundi", "ouvert", "0466112233", "courriel", "courriel@exemple.fr", "vitrine", "https", "marge", "confidentiel", "48095_abcd",
		"48095", "wxyz", "0.875", "44.5", "ban", "referentiel", "true", "2026", "content", "position",
	} {
		finds(t, s, finder.Query{Text: text})
		finds(t, s, finder.Query{Text: text, Private: true})
		finds(t, s, finder.Query{Text: "nom " + text, Private: true})
		finds(t, s, finder.Query{Tags: []string{text}, Private: true})
	}
	finds(t, s, finder.Query{Text: "nom"}, "ext-4711")
}

func externalIDs(t *testing.T, s Stage) {
	s.Put(t, named("MAG-0042", "Un"), named("MAG-0042.b", "Deux"), named("mag-1", "Trois"), named("7f3a~c_9", "MAG"))
	for _, text := range []string{"MAG-0042", "mag-0042", "mag-00", "7f3a~c_9", "7f3"} {
		finds(t, s, finder.Query{Text: text})
	}
	finds(t, s, finder.Query{Text: "mag-0042", Private: true}, "MAG-0042", "MAG-0042.b")
	first(t, s, finder.Query{Text: "mag-0042", Private: true}, "MAG-0042")
	finds(t, s, finder.Query{Text: " MAG-0042.B ", Private: true}, "MAG-0042.b")
	finds(t, s, finder.Query{Text: "mag-", Private: true}, "MAG-0042", "MAG-0042.b", "mag-1", "7f3a~c_9")
	finds(t, s, finder.Query{Text: "mag-0043", Private: true})
	finds(t, s, finder.Query{Text: "0042", Private: true})
	finds(t, s, finder.Query{Text: "7F3A~C_9", Private: true}, "7f3a~c_9")
	finds(t, s, finder.Query{Text: "7f3a", Private: true}, "7f3a~c_9")
	finds(t, s, finder.Query{Text: "deux", Private: true}, "MAG-0042.b")
	finds(t, s, finder.Query{Text: "mag"}, "7f3a~c_9")
}
