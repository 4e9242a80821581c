package address

import "testing"

func TestAPostcodeOrACommuneIsAPlace(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	for typed, want := range map[string]string{
		"48000": "48095", " 48 000 ": "48095", "F-48000": "48095", "48000 Mende": "48095", "Mende 48000": "48095", "mende": "48095", "MENDE": "48095",
		"Mende (48)": "48095", "Mende, Lozère": "48095", "Mende, France": "48095", "Mende Occitanie": "48095", "48095": "48095",
		// outside the vintage
		"montpellier": "34172", "34080": "34172", "34000 montpellier": "34172", "Montpellier (Hérault)": "34172", "Toulouse": "31555", "31555": "31555",
		// a city and its arrondissements
		"paris": "75056", "75013": "75113", "75013 Paris": "75056", "Paris 13e arrondissement": "75113", "69003": "69383", "lyon": "69123",
		// of several the most populous one
		"saint denis": "97411", "Saint-Denis (93)": "93066", "saint-denis seine saint denis": "93066", "93200 Saint-Denis": "93066", "13001": "13201",
		// stop words and accents
		"le puy en velay": "43157", "Nîmes": "30189", "nimes": "30189", "st etienne": "42218",
		// no place
		"": "", "?": "", "12 rue des lilas": "", "00000": "", "48000 Montpellier": "", "zxwvtq": "", "rue de mende": "", "Mende (30)": "", "France": "",
		"mende 48": "48095", "48": "", "3 rue de l'ermitage 48000 mende": "",
	} {
		r, ok := e.Place(typed)
		if ok != (want != "") || r.CityCode != want || ok && (r.Type != Municipality || r.Lon == 0 || r.Lat == 0) {
			t.Errorf("%q: got %s %s at %v, %v, want %q", typed, r.CityCode, r.Label, r.Lon, r.Lat, want)
		}
	}
}

func TestEveryPostcodeOfTheTableIsAPlaceThatItServes(t *testing.T) {
	t.Parallel()
	e := engineOf(t, hamlet())
	checked := 0
	for c := range e.table.All() {
		for _, postcode := range c.Postcodes() {
			r, ok := e.Place(postcode)
			if checked++; !c.Located() {
				continue
			}
			if !ok || r.Postcode != postcode || !e.serves(postcode, r.CityCode) {
				t.Errorf("%s of %s: %s %s, %v", postcode, c.Name, r.Postcode, r.CityCode, ok)
			}
		}
	}
	if checked < 30_000 {
		t.Errorf("%d postcodes of communes", checked)
	}
}
