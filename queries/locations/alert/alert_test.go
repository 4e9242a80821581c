package alert_test

import (
	"strings"
	"testing"

	"lieudit/queries/address/commune"
	"lieudit/queries/locations/alert"
	"lieudit/schemas/locations"
)

func newChecker(t testing.TB) *alert.Checker {
	t.Helper()
	communes, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	return alert.NewChecker(communes)
}

// siteAt is a site with a name and its own position.
func siteAt(lat, lon float64, a locations.SiteAddress) locations.Content {
	return locations.Content{Name: "N", Address: &a, Lat: &lat, Lon: &lon}
}

func check(c *alert.Checker, content locations.Content) string {
	var codes []string
	for _, a := range c.Check(content, content.OwnPosition()) {
		codes = append(codes, string(a.Code))
	}
	return strings.Join(codes, " ")
}

func TestAPositionIsDoubtedOnlyWhereItCannotBeMeant(t *testing.T) {
	t.Parallel()
	c := newChecker(t)
	mende := locations.SiteAddress{Line1: "1 rue", PostalCode: "48000", City: "Mende"}
	for rule, test := range map[string]struct {
		lat, lon float64
		address  locations.SiteAddress
		want     string
	}{
		"in its commune":                                  {44.518, 3.5, mende, ""},
		"10 km off":                                       {44.6, 3.6, mende, ""},
		"40 km off, in its department":                    {44.85, 3.9, mende, "position_loin"},
		"over the border of its department, near":         {44.12, 3.40, locations.SiteAddress{PostalCode: "48150", City: "Meyrueis"}, ""},
		"in another department":                           {48.85, 2.35, mende, "position_loin"},
		"nowhere":                                         {0, 0, mende, "position_nulle"},
		"on the equator":                                  {0, 3.5, mende, "position_loin"},
		"turned":                                          {3.5, 44.518, mende, "position_inversee"},
		"turned, of a territory":                          {55.5, -21.1, locations.SiteAddress{PostalCode: "97400", City: "Saint-Denis"}, "position_inversee"},
		"turned, without an address":                      {3.5, 44.518, locations.SiteAddress{Line1: "x"}, "position_inversee"},
		"abroad, and it says so":                          {3.5, 44.518, locations.SiteAddress{PostalCode: "48000", City: "Mende", Country: "Somalie"}, ""},
		"abroad, without a postcode":                      {41.38, 2.17, locations.SiteAddress{Line1: "x"}, ""},
		"in the sea off its commune":                      {43.28, 5.33, locations.SiteAddress{PostalCode: "13007", City: "Marseille"}, ""},
		"by an INSEE code":                                {48.85, 2.35, locations.SiteAddress{Line1: "1 rue", InseeCode: "48095"}, "position_loin"},
		"by the INSEE code, wherever its postcode serves": {48.85, 2.35, locations.SiteAddress{InseeCode: "75104", PostalCode: "75004"}, ""},
		"by a city alone":                                 {48.85, 2.35, locations.SiteAddress{City: "MENDE"}, "position_loin"},
		"by a city alone, near one of the name":           {48.94, 2.36, locations.SiteAddress{City: "Saint-Denis"}, ""},
		"by a city that nobody knows":                     {48.85, 2.35, locations.SiteAddress{City: "Atlantis"}, ""},
		"by a postcode that nobody has":                   {48.85, 2.35, locations.SiteAddress{PostalCode: "48099", City: "Mende Cedex 9"}, "position_loin"},
		"in the department of such a postcode":            {44.518, 3.5, locations.SiteAddress{PostalCode: "48099", City: "Mende Cedex 9"}, ""},
		"by a postcode of Corsica for companies":          {42.7, 9.45, locations.SiteAddress{PostalCode: "20405", City: "Bastia Cedex 9"}, ""},
		"by what is no postcode":                          {48.85, 2.35, locations.SiteAddress{PostalCode: "2000"}, ""},
		"by a department that nobody knows":               {48.85, 2.35, locations.SiteAddress{PostalCode: "98000"}, ""},
		"with spaces in the postcode":                     {48.85, 2.35, locations.SiteAddress{PostalCode: "48 000"}, "position_loin"},
		"in Guadeloupe":                                   {16.24, -61.53, locations.SiteAddress{PostalCode: "97110", City: "Pointe-à-Pitre"}, ""},
		"in Saint-Barthélemy":                             {17.9, -62.83, locations.SiteAddress{PostalCode: "97133", City: "Gustavia"}, ""},
		"in Guyane, deep in the forest":                   {3.2, -53.1, locations.SiteAddress{PostalCode: "97370", City: "Maripasoula"}, ""},
		"in Guadeloupe, said to be in Réunion":            {16.24, -61.53, locations.SiteAddress{PostalCode: "97400"}, "position_loin"},
	} {
		if got := check(c, siteAt(test.lat, test.lon, withLine(test.address))); got != test.want {
			t.Errorf("%s: got %q, want %q", rule, got, test.want)
		}
	}
}

// withLine is an address that is not empty.
func withLine(a locations.SiteAddress) locations.SiteAddress {
	a.Line2 = "B"
	return a
}

// Many towns have a postcode of the department next door, or lie at a border. Nothing at the centre of a commune is doubted.
func TestNoCommuneIsDoubtedAtItsCentre(t *testing.T) {
	t.Parallel()
	communes, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	c := newChecker(t)
	for m := range communes.All() {
		if !m.Located() {
			continue
		}
		for _, postcode := range append(m.Postcodes(), "") {
			for _, a := range []locations.SiteAddress{
				{PostalCode: postcode, City: m.Name}, {PostalCode: postcode, InseeCode: m.Code}, {PostalCode: postcode, City: "?"},
			} {
				if got := check(c, siteAt(m.Lat, m.Lon, withLine(a))); got != "" {
					t.Errorf("%s %s: %+v: %s", m.Code, m.Name, a, got)
				}
			}
		}
	}
}

func TestWhatASiteLacksIsTold(t *testing.T) {
	t.Parallel()
	c := newChecker(t)
	for want, content := range map[string]locations.Content{
		"":                      {Name: "N", Address: &locations.SiteAddress{City: "Mende"}},
		"sans_nom":              {Name: " ", Address: &locations.SiteAddress{City: "Mende"}},
		"adresse_vide":          {Name: "N", Address: &locations.SiteAddress{Country: "FR", Line1: " "}},
		"adresse_vide sans_nom": {},
	} {
		if got := check(c, content); got != want {
			t.Errorf("%+v: got %q, want %q", content, got, want)
		}
	}
}

func TestOfAGeocodedPositionThePrecisionMatters(t *testing.T) {
	t.Parallel()
	c := newChecker(t)
	content := locations.Content{Name: "N", Address: &locations.SiteAddress{PostalCode: "48000", City: "Mende"}}
	for precision, want := range map[locations.Precision]int{locations.PrecisionMunicipality: 1, locations.PrecisionStreet: 0, "": 0} {
		found := c.Check(content, &locations.Position{Source: locations.SourceBAN, Precision: precision})
		if len(found) != want || want == 1 && found[0].Code != alert.CommunePosition {
			t.Errorf("%q: %+v, want %d", precision, found, want)
		}
	}
}

func TestAMessageSaysHowFarFromWhat(t *testing.T) {
	t.Parallel()
	c := newChecker(t)
	for want, content := range map[string]locations.Content{
		"La position est à 482 km de sa commune, Mende (48095).":                                              siteAt(48.85, 2.35, locations.SiteAddress{PostalCode: "48000", City: "Mende"}),
		"La position est à 462 km de la plus proche des communes que dit l'adresse, Monts-de-Randon (48127).": siteAt(48.85, 2.35, locations.SiteAddress{PostalCode: "48000"}),
		"La position est à 437 km du département 48 (Lozère), celui du code postal 48099.":                    siteAt(48.85, 2.35, locations.SiteAddress{PostalCode: "48099"}),
		"La position (lat 3.5, lon 44.518) est hors de France, et en France si l'on échange lat et lon.":      siteAt(3.5, 44.518, locations.SiteAddress{PostalCode: "48000"}),
	} {
		found := c.Check(content, content.OwnPosition())
		if len(found) != 1 || found[0].Message != want {
			t.Errorf("got %+v, want %q", found, want)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	c := newChecker(b)
	content := siteAt(44.518, 3.5, locations.SiteAddress{Line1: "1 rue", PostalCode: "48000", City: "Mende"})
	for b.Loop() {
		c.Check(content, content.OwnPosition())
	}
}
