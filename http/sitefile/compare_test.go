package sitefile_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lieudit/http/sitefile"
	"lieudit/schemas/locations"
)

const exportHeader = "external_id,nom,ligne_1,ligne_2,code_postal,commune,code_insee,pays,id_ban,lat,lon,position_source,geocode_score,geocode_precision," +
	"horaires,telephone,email,site_web,tags,proprietes\n"

// storedSites are sites as a referential has them, by id.
func storedSites(contents map[string]locations.Content) map[string]sitefile.Site {
	known := map[string]sitefile.Site{}
	for id, c := range contents {
		known[id] = sitefile.Site{ExternalID: id, Content: c}
	}
	return known
}

// TestWhatAProgramChangedInAnExportIsFound: each row is what a spreadsheet or pandas made of an exported site.
func TestWhatAProgramChangedInAnExportIsFound(t *testing.T) {
	t.Parallel()
	lat, lon := 47.3, 0.045
	stored := storedSites(map[string]locations.Content{"a": {
		Name: "007", Address: &locations.SiteAddress{Line1: "1/2", City: "Žatec", PostalCode: "01000"}, Phone: "+33466651234", Lat: &lat, Lon: &lon,
	}})
	for row, want := range map[string]string{
		"a,007,1/2,,01000,Žatec,,,,47.3,0.045,client,,,,'+33466651234,,,,":           "",
		"a,007,1/2,,1000,Žatec,,,,47.3,0.045,client,,,,'+33466651234,,,,":            "", // fixed
		"a,007,1/2,,1000.0,Žatec,,,,47.3,0.045,client,,,,'+33466651234,,,,":          "", // fixed
		"a,007,1/2,,01000,Žatec,,,,47.30000000001,0.045,client,,,,'+33466651234,,,,": "",
		"a,7,1/2,,01000,Žatec,,,,47.3,0.045,client,,,,'+33466651234,,,,":             "takes for a number",
		"a,007,01/02/2026,,01000,Žatec,,,,47.3,0.045,client,,,,'+33466651234,,,,":    "takes for a date",
		"a,007,1/2,,01000,?atec,,,,47.3,0.045,client,,,,'+33466651234,,,,":           "encoding",
		"a,007,1/2,,01000,Žatec,,,,47.3,45,client,,,,'+33466651234,,,,":              "decimal comma",
		"a,007,01-févr,,01000,Žatec,,,,47.3,0.045,client,,,,'+33466651234,,,,":       "takes for a date",
		"a,007,1/2,,01000,Žatec,,,,47.3,0.045,client,,,,3.34667E+11,,,,":             "takes for a number",
		"a,Autre,3 rue X,,48000,Mende,,,,44.5,3.5,client,,,,0466651234,,,,":          "", // a user may change anything
	} {
		i := readFile(t, []byte(exportHeader+row+"\n"), sitefile.Options{})
		i.KeepPositions(stored)
		got := strings.Join(i.FindLosses(stored), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", row, got, want)
		}
		if strings.Contains(row, "47.30000000001") && *i.Sites[0].Content.Lat != lat {
			t.Errorf("the position is %v", *i.Sites[0].Content.Lat)
		}
	}
}

func TestAColumnThatIsGoneFromAnExportIsFound(t *testing.T) {
	t.Parallel()
	stored := storedSites(map[string]locations.Content{"a": {Name: "A", Properties: json.RawMessage(`{"x":1}`)}})
	i := readFile(t, []byte("external_id,nom,ligne_1,id_ban\na,A,,\n"), sitefile.Options{})
	if got := fmt.Sprint(i.FindLosses(stored)); !strings.Contains(got, "the column proprietes is gone") {
		t.Errorf("got %s", got)
	}
}

// TestIDsThatAProgramChangedAreCounted: an id that goes while one comes that is the same number, or that is the same but for case.
func TestIDsThatAProgramChangedAreCounted(t *testing.T) {
	t.Parallel()
	for before, after := range map[string]string{"007": "7", "1e5": "100000", "Ab": "aB", "2.50": "2.5", "12345678901234567": "12345678901234600"} {
		i := readFile(t, []byte("id;nom\n"+after+";A\n"), sitefile.Options{})
		n, example := i.CountChangedIDs(storedSites(map[string]locations.Content{before: {Name: "B"}}))
		if n != 1 || !strings.Contains(example, before) {
			t.Errorf("%s and %s: %d, %q", before, after, n, example)
		}
	}
	i := readFile(t, []byte("id;nom\n8;A\n"), sitefile.Options{})
	if n, _ := i.CountChangedIDs(storedSites(map[string]locations.Content{"7": {Name: "A"}})); n != 0 {
		t.Errorf("another id counts: %d", n)
	}
	own := readFile(t, []byte(exportHeader+"jan-1,A,3 rue X,,,,,,,,,,,,,,,,,\n"), sitefile.Options{})
	if n, _ := own.CountChangedIDs(storedSites(map[string]locations.Content{"1-1": {Name: "A", Address: &locations.SiteAddress{Line1: "3 rue X"}}})); n != 1 {
		t.Errorf("an id of the same place in an export: %d", n)
	}
}
