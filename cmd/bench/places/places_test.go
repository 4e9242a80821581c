package places

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/address/commune"
	"lieudit/schemas/locations"
)

func TestTheFlagsThatAMessageProposesAreRead(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][]string{
		"x.csv: no ids\n  --id 'hash:nom,ligne_1' makes ids of these fields, or name a column with --id\nnothing was written": {"--id", "hash:nom,ligne_1"},
		"--shapes center takes the point in the middle of each, --shapes skip leaves these sites out":                         {"--shapes", "center"},
		"name it with --crs EPSG:2154 (Lambert-93), or export the file in WGS 84":                                             {"--crs", "EPSG:2154"},
		"these would do: --ignore 'l'adresse' --ignore 'geo_*'":                                                               {"--ignore", "l'adresse", "--ignore", "geo_*"},
		"nothing was written; --confirm goes on":                                                                              {"--confirm"},
		"12 of 20 places stand at 0, 0\nnothing was written; --confirm goes on, --confirm says that it is meant":              {"--confirm"},
		"--header 3 says which line holds the names":                                                                          {"--header", "3"},
		"give every place an id of its own, or take another column with --id":                                                 nil,
		"the file holds no places": nil,
	} {
		if diff := cmp.Diff(want, proposedFlags(message)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", message, diff)
		}
	}
}

func TestARefusalIsItsFirstLineWithoutTheFile(t *testing.T) {
	t.Parallel()
	for stderr, want := range map[string]string{
		"lieudit: /tmp/x.csv: no ids\n           --id 'hash:nom' does\n": "no ids",
		"lieudit: /tmp/x.csv:4: too many cells\n":                        "4: too many cells",
		"lieudit: is the service running?\n":                             "is the service running?",
	} {
		if got := firstSentence("/tmp/x.csv", stderr); got != want {
			t.Errorf("%q: got %q, want %q", stderr, got, want)
		}
	}
}

const preview = `1214 rows of CSV, separated by ';', UTF-8
COLUMN       BECOMES                                                  EXAMPLE
Dénomination nom                                                      Chez Élodie
tél          telephone (by its content)                               –
note         proprietes                                               x
autre nom    proprietes.autre nom, and nom where that is empty        y
geo_shape    not stored: repeats the position                         {"type"}
line 2
{
  "external_id": "a"
}
note   line 3 is a second row of names and is passed over
mended 1,204 × telephones to E.164, line 2: "04 66" is "+33466"
mended 3 × a text, with a comma, lines 2, 3 and 1 others
doubt  2 × has no name, lines 4, 5
created  1,214
updated  3
active   1,214, before 0
`

func TestThePreviewIsCounted(t *testing.T) {
	t.Parallel()
	rows, columns := parsePreview(preview)
	if want := (Columns{Fields: 2, Properties: 2, LeftOut: 1}); rows != 1214 || columns != want {
		t.Errorf("got %d rows, %+v; want 1214, %+v", rows, columns, want)
	}
	want := []Finding{{"telephones to E.164", 1204}, {"a text, with a comma", 3}}
	if diff := cmp.Diff(want, parseFindings(preview, "mended")); diff != "" {
		t.Errorf("mended (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Finding{{"has no name", 2}}, parseFindings(preview, "doubt")); diff != "" {
		t.Errorf("doubts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"line 3 is a second row of names and is passed over"}, parseNotes(preview)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if got := parseChanges(preview); got != "created 1,214, updated 3" {
		t.Errorf("changes: %q", got)
	}
	if got := parseChanges("unchanged  7\nactive  7, before 7\n"); got != "" {
		t.Errorf("no changes: %q", got)
	}
}

func TestSitesAreTheSameWhateverTheirReferential(t *testing.T) {
	t.Parallel()
	const a = `{"id":"1","referentiel":"x","external_id":"a","nom":"A","version":1,"cree_le":"2026-01-01T00:00:00Z","modifie_le":"2026-01-01T00:00:00Z","actif":true}`
	other := strings.NewReplacer(`"id":"1"`, `"id":"2"`, `"version":1`, `"version":7`, `2026`, `2025`)
	for name, c := range map[string]struct{ got, want string }{
		"other id, version and days": {other.Replace(a), ""},
		"another name":               {strings.ReplaceAll(a, `"A"`, `"B"`), `1 of 1 differ, first a: nom: want "A", got "B"`},
		"a member more":              {strings.ReplaceAll(a, `"nom"`, `"lat":1,"nom"`), `1 of 1 differ, first a: lat: want , got 1`},
		"a site more":                {a + "\n" + strings.ReplaceAll(a, `"a"`, `"b"`), "1 of 1 differ, first b: was not there"},
		"none":                       {"", "1 of 1 differ, first a: is missing"},
	} {
		want, err := parseSites([]byte(a))
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseSites([]byte(c.got))
		if difference := compareSites(want, got); err != nil || difference != c.want {
			t.Errorf("%s: got %q, %v; want %q", name, difference, err, c.want)
		}
	}
}

func TestASiteIsOutsideOnlyOfTheCommunesThatItsAddressCanMean(t *testing.T) {
	t.Parallel()
	table, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		lat, lon float64
		address  locations.SiteAddress
		want     string // the nearest commune; "" if inside
	}{
		"in Mende":                             {44.518, 3.5, locations.SiteAddress{PostalCode: "48000", City: "Mende"}, ""},
		"in Langogne, said to be in Mende":     {44.727, 3.855, locations.SiteAddress{PostalCode: "48000", City: "Mende"}, "Mende (48095)"},
		"the INSEE code wins":                  {44.727, 3.855, locations.SiteAddress{PostalCode: "48000", City: "Mende", InseeCode: "48080"}, ""},
		"a name of two communes":               {48.936, 2.357, locations.SiteAddress{City: "Saint-Denis"}, ""},
		"a postcode alone":                     {44.727, 3.855, locations.SiteAddress{PostalCode: "48300"}, ""},
		"abroad nothing is compared":           {50.8, 4.3, locations.SiteAddress{PostalCode: "48000", City: "Mende", Country: "BE"}, ""},
		"an address that says no commune":      {50.8, 4.3, locations.SiteAddress{Line1: "3 rue Haute"}, ""},
		"a postcode of companies has no place": {50.8, 4.3, locations.SiteAddress{PostalCode: "48005", City: "Mende Cedex"}, ""},
	} {
		s := locations.Site{Content: locations.Content{Lat: &c.lat, Lon: &c.lon, Address: &c.address}}
		got, isOutside := findOutside(table, s)
		if isOutside != (c.want != "") || isOutside && got.Commune != c.want {
			t.Errorf("%s: got %+v, %v; want %q", name, got, isOutside, c.want)
		}
	}
}

func TestAlertsThatAreOnlyCountedAreOfTheFarthestSites(t *testing.T) {
	t.Parallel()
	all := []Outside{{Kilometres: 900}, {Kilometres: 40}, {Kilometres: 20}}
	for unnamed, want := range map[int]int{0: 3, 1: 2, 2: 1, 3: 1} { // 20 km do not raise an alert
		if got := withoutUnnamed(all, unnamed); len(got) != want {
			t.Errorf("%d alerts are not named: %v, want %d", unnamed, got, want)
		}
	}
}

func TestTotalsAddUp(t *testing.T) {
	t.Parallel()
	in, refused := Attempt{Imported: true}, Attempt{}
	var sum Totals
	for _, f := range []File{
		{Rows: 3, First: in, Sites: 3, Mended: []Finding{{"a", 2}, {"b", 1}}, RoundTrips: []RoundTrip{{Form: "CSV"}}, PeakKB: 5, Alerts: map[string]int{"sans_nom": 2}},
		{Rows: 4, First: refused, Second: &in, Sites: 4, Doubts: []Finding{{"c", 1}}, RoundTrips: []RoundTrip{{Again: "created 1"}}, PeakKB: 9},
		{Rows: 5, First: refused, Second: &refused, PeakKB: 1},
	} {
		sum.Add(f)
	}
	want := Totals{Files: 3, Rows: 12, First: 1, Second: 1, Mended: 3, Doubts: 1, Alerts: 2, Sites: 7, Same: 1, PeakKB: 9}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
