package sitefile_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/http/kit"
	"lieudit/http/sitefile"
	"lieudit/http/sitefile/mapping"
)

// describeSites is the sites of a file, one line each: id, JSON of the content.
func describeSites(t testing.TB, i *sitefile.Import) []string {
	t.Helper()
	var lines []string
	for _, s := range i.Sites {
		text, err := kit.MarshalJSON(s.Content)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, s.ExternalID+" "+string(text))
	}
	return lines
}

func TestFilesAreReadByTheNamesAndTheContentOfTheirColumns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"French names, semicolons, decimal commas": {
			"\ufeffIdentifiant;Libellé;Adresse;CP;Ville;Latitude;Longitude;Étiquettes\r\n7;Chez Paul;3 rue X;48000;Mende;44,5180;3,5;bio, drive\r\n",
			[]string{`7 {"nom":"Chez Paul","adresse":{"ligne_1":"3 rue X","code_postal":"48000","commune":"Mende"},"lat":44.518,"lon":3.5,"tags":["bio","drive"]}`},
		},
		"English names, commas, quoted decimal commas": {
			"id,name,address,postcode,city,lat,lng\n7,\"Paul, \"\"chez\"\"\",,48000,Mende,\"44,5\",3.5\n",
			[]string{`7 {"nom":"Paul, \"chez\"","adresse":{"code_postal":"48000","commune":"Mende"},"lat":44.5,"lon":3.5}`},
		},
		"Windows-1252": {"id;ville\n7;Pr\xe9vench\xe8res\n", []string{`7 {"adresse":{"commune":"Prévenchères"}}`}},
		"what has no field is a property under its own name, and an empty cell is none": {
			"id;nom;Surface (m²);Note\n7;Chez Paul;120;\n8;Chez Anne;;x\n",
			[]string{`7 {"nom":"Chez Paul","proprietes":{"Surface (m²)":"120"}}`, `8 {"nom":"Chez Anne","proprietes":{"Note":"x"}}`},
		},
		"an open data portal: a pair in one column, a shape that repeats it": {
			"ref_musee;nom_du_musee;geo_point_2d;geo_shape\nM1;Musée A;44.518, 3.5;\"{\"\"type\"\":\"\"Point\"\",\"\"coordinates\"\":[3.5,44.518]}\"\nM2;Musée B;44.6, 3.4;\n",
			[]string{`M1 {"nom":"Musée A","lat":44.518,"lon":3.5}`, `M2 {"nom":"Musée B","lat":44.6,"lon":3.4}`},
		},
		"a pair with the longitude first": {
			"id;nom;geopoint\na;Gare;\"5.7118, 45.18\"\nb;Halte;\"5.7136, 45.19\"\n",
			[]string{`a {"nom":"Gare","lat":45.18,"lon":5.7118}`, `b {"nom":"Halte","lat":45.19,"lon":5.7136}`},
		},
		"the number and its suffix stand in columns of their own": {
			"id,nom,N°,rep,voie,cp\n1,A,12,bis,rue Haute,48000\n2,B,12,,rue Basse,48000\n3,C,,,Le Bourg,48000\n",
			[]string{
				`1 {"nom":"A","adresse":{"ligne_1":"12 bis rue Haute","code_postal":"48000"}}`,
				`2 {"nom":"B","adresse":{"ligne_1":"12 rue Basse","code_postal":"48000"}}`,
				`3 {"nom":"C","adresse":{"ligne_1":"Le Bourg","code_postal":"48000"}}`,
			},
		},
		"a line that ends in postcode and town is split": {
			"id;nom;adresse\n1;A;12 rue Haute, 48000 Mende\n2;B;2 place Basse - 48200\n",
			[]string{
				`1 {"nom":"A","adresse":{"ligne_1":"12 rue Haute","code_postal":"48000","commune":"Mende"}}`,
				`2 {"nom":"B","adresse":{"ligne_1":"2 place Basse","code_postal":"48200"}}`,
			},
		},
		"OpenStreetMap: a row may have contact:city where others have addr:city": {
			`{"type":"FeatureCollection","features":[
{"type":"Feature","properties":{"@id":"node/1","name":"A","addr:city":"Mende","addr:housenumber":"3","addr:street":"Rue Haute"},"geometry":{"type":"Point","coordinates":[3.5,44.5]}},
{"type":"Feature","properties":{"@id":"way/2","name":"B","contact:city":"Langogne"},"geometry":null}]}`,
			[]string{
				`node-1 {"nom":"A","adresse":{"ligne_1":"3 Rue Haute","commune":"Mende"},"lat":44.5,"lon":3.5}`,
				`way-2 {"nom":"B","adresse":{"commune":"Langogne"},"proprietes":{"contact:city":"Langogne"}}`,
			},
		},
		"JSON: members of members, and values that are no texts": {
			`{"total":1,"records":[{"recordid":"x/1","fields":{"nom":"Mairie","codepost":48000,"lat":44.5,"lng":3.5,"ouvert":true,"plats":[{"nom":"aligot"}]}}]}`,
			[]string{`x-1 {"nom":"Mairie","adresse":{"code_postal":"48000"},"lat":44.5,"lon":3.5,"proprietes":{"fields.ouvert":true,"fields.plats":[{"nom":"aligot"}]}}`},
		},
		"ids that a program wrote as decimals": {"gares_id;nom\n105.0;A\n7.0;B\n", []string{`105 {"nom":"A"}`, `7 {"nom":"B"}`}},
		"a column that repeats is no id, and another is": {
			"id_station;id_pdc;n_station\nS1;P*1;A\nS1;P*2;A\n",
			[]string{`P*1 {"nom":"A","proprietes":{"id_station":"S1"}}`, `P*2 {"nom":"A","proprietes":{"id_station":"S1"}}`},
		},
		"what a geocoder wrote is not stored": {
			"id,nom,adresse,result_label,result_latitude,result_longitude\n1,A,3 rue X,3 Rue X 48000 Mende,44.5,3.5\n",
			[]string{`1 {"nom":"A","adresse":{"ligne_1":"3 rue X"}}`},
		},
		"a number before an avenue that begins with an ordinal": {
			"id;nom;numero_voie;voie\n1;A;12;1ère Avenue\n2;B;12;12 rue X\n",
			[]string{`1 {"nom":"A","adresse":{"ligne_1":"12 1ère Avenue"}}`, `2 {"nom":"B","adresse":{"ligne_1":"12 rue X"}}`},
		},
		"another town than the field's stays in its line": {
			"id;nom;adresse;complement;ville\n1;A;3 rue X;48000 Badaroux;Mende\n2;B;3 rue X 03200 Vichy;;Vic\n",
			[]string{
				`1 {"nom":"A","adresse":{"ligne_1":"3 rue X","ligne_2":"48000 Badaroux","commune":"Mende"}}`,
				`2 {"nom":"B","adresse":{"ligne_1":"3 rue X, Vichy","code_postal":"03200","commune":"Vic"}}`,
			},
		},
		"a postal box is no postcode": {"id;nom;adresse\n1;A;ZI Nord BP 40000\n", []string{`1 {"nom":"A","adresse":{"ligne_1":"ZI Nord BP 40000"}}`}},
		"hours beside days are kept": {
			"id;nom;lundi;horaires\n1;A;9h-12h;ferme en août\n",
			[]string{`1 {"nom":"A","horaires":{"hebdo":[{"jours":["lu"],"de":"09:00","a":"12:00"}]},"proprietes":{"horaires":"ferme en août"}}`},
		},
	} {
		i := readFile(t, []byte(c.file), sitefile.Options{})
		if diff := cmp.Diff(c.want, describeSites(t, i)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMetresOfLambert93BecomeDegrees(t *testing.T) {
	t.Parallel()
	c := readFile(t, []byte("id,nom,x_l93,y_l93\n1,Paris,652469.02,6862035.26\n"), sitefile.Options{}).Sites[0].Content
	if c.Lat == nil || fmt.Sprintf("%.4f %.4f", *c.Lat, *c.Lon) != "48.8566 2.3522" {
		t.Errorf("got %v %v", c.Lat, c.Lon)
	}
}

// TestNoLineOfAnAddressIsTooLong: wherever its text comes from, and the whole is kept.
func TestNoLineOfAnAddressIsTooLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("bâtiment ", 50)
	for _, column := range []string{"ligne_2", "adresse", "voie"} {
		s := readFile(t, []byte("id;nom;"+column+"\n1;A;"+long+"\n"), sitefile.Options{}).Sites[0]
		if n := len([]rune(s.Content.Address.Line1)); n > 200 || n < 150 || !strings.Contains(string(s.Content.Properties), strings.TrimSpace(long)) {
			t.Errorf("%s: %d characters, %s", column, n, s.Content.Properties)
		}
	}
}

// TestEachCellIsCountedOnce: however often it is read.
func TestEachCellIsCountedOnce(t *testing.T) {
	t.Parallel()
	i := readFile(t, []byte("id;nom;type_voie;voie\n1;A;rue;rue  Haute\n"), sitefile.Options{})
	if len(i.Fixed) != 1 || i.Fixed[0].Count != 1 {
		t.Errorf("got %+v", i.Fixed)
	}
}

// TestAnExportIsReadExactly: ids that another file would have fixed.
func TestAnExportIsReadExactly(t *testing.T) {
	t.Parallel()
	i := readFile(t, []byte(exportHeader+"1.0,A  B,,,,,,,,,,,,,,,,,,\nnull,-,,,,,,,,,,,,,,,,,,\n2.0,NC,,,,,,,,,,,,,,,,,,\n"), sitefile.Options{})
	want := []string{`1.0 {"nom":"A  B"}`, `null {"nom":"-"}`, `2.0 {"nom":"NC"}`}
	if diff := cmp.Diff(want, describeSites(t, i)); diff != "" || len(i.Fixed) > 0 {
		t.Errorf("%s %+v", diff, i.Fixed)
	}
}

// TestAFileWithoutIDsIsRefusedWithAnIDThatWorks: the id that the message proposes tells the places apart, and rows that repeat each
// other in full are one place.
func TestAFileWithoutIDsIsRefusedWithAnIDThatWorks(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"nom;adresse;cp\nA;1 rue X;48000\nA;2 rue X;48000\n":                                  "hash:nom,ligne_1,code_postal",
		"nom;ville\nA;Mende\nA;Langogne\nA;Mende\n":                                           "hash:nom,commune",
		"nom;ville;lat;lon\nA;Mende;44.5;3.5\nA;Mende;44.6;3.5\n":                             "hash:nom,commune,lat,lon",
		"nom;ville;étage\nA;Mende;1\nA;Mende;2\n":                                             "hash:*",
		"id;nom;cp\n7;A;48000\n7;B;48000\n":                                                   "hash:nom,code_postal",
		"code_uic;nom;ligne\n1;A;x\n1;A;y\n2;B;x\n":                                           "hash:*",
		"[{\"nom\":\"A\",\"url\":\"https://a.fr\"},{\"nom\":\"A\",\"url\":\"https://b.fr\"}]": "hash:nom,site_web",
	} {
		i, err := sitefile.Read(strings.NewReader(file), int64(len(file)), "", sitefile.Options{})
		if err != nil || i.ProposedID != want || len(i.Errors) != 1 || !strings.Contains(i.Errors[0].Advice, want) {
			t.Fatalf("%q: got %q, %+v, %v; want %s", file, i.ProposedID, i.Errors, err, want)
		}
		again := readFile(t, []byte(file), sitefile.Options{Columns: mapping.Given{ID: want}})
		ids := map[string]bool{}
		for _, s := range again.Sites {
			ids[s.ExternalID] = true
		}
		if len(ids) != len(again.Sites) || len(ids) < 2 {
			t.Errorf("%q: %d ids of %d sites", file, len(ids), len(again.Sites))
		}
	}
}

func TestAllErrorsAreSaidAtOnceWithTheirLines(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]string{
		"id;nom;lat;lon\n1;A;44.5;3.5\n1;B;nord;3.5\n;C;44.5;3.5\n2;D;44,5;3.5\n3;E;44.5;3.5\n4;F;44.5;3.5\n": {
			`line 3: an id that an earlier line has, such as "1 (line 2)"`, `line 3: the column lat holds no position there, such as "nord"`, `line 4: no id in the column id`,
		},
		"id;nom;lat;lon\n1;A;44.5;3.5\n2;B;;3.5\n":                                 {`line 3: the column lat holds no position there`},
		"id;nom;cp;ville\n1;A;48000;Mende\n2;B;48000;Mende\n\"3;C;48000;Mende\"\n": {`line 4: one cell instead of 4`},
		"id;nom\na/b;A\na:b;B\na-b;C\n":                                            {`line 4: an id that becomes the same as another one`},
		"id;x;y\n1;100200;6800000\n2;100300;6800100\n":                             {`the columns "x" and "y" are metres of a projection that nothing in the file names`},
		`{"type":"FeatureCollection","features":[{"id":"a","properties":{"nom":"x"},"geometry":{"type":"LineString","coordinates":[[3,44],[3.1,44]]}},{"id":"b","properties":{"nom":"y"},"geometry":{"type":"Point","coordinates":[3,44]}}]}`: {`line 1: a line or a polygon instead of a point`},
		`{"type":"FeatureCollection","crs":{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::31370"}},"features":[{"id":"a","properties":{"nom":"x"},"geometry":{"type":"Point","coordinates":[150000,170000]}}]}`:                   {"none of France's"},
		"siret;nom\n" + "2,13E+13;A\n4,88E+13;B\n": {"an id that a spreadsheet has shortened"},
	} {
		i, err := sitefile.Read(strings.NewReader(file), int64(len(file)), "", sitefile.Options{Columns: mapping.Given{ID: givenID(file)}})
		if err != nil {
			t.Fatalf("%q: %v", file, err)
		}
		var got []string
		for _, o := range i.Errors {
			if got = append(got, o.Reason); o.Advice == "" {
				t.Errorf("%q: no advice for %q", file, o.Reason)
			}
		}
		for _, w := range want {
			if !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(g, w) }) {
				t.Errorf("%q: want %q in %q", file, w, got)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%q: got %q, want %d", file, got, len(want))
		}
	}
}

// givenID names the first column of a CSV file, so that it is taken for the id though it is not unique.
func givenID(file string) string {
	if strings.HasPrefix(file, "{") {
		return ""
	}
	name, _, _ := strings.Cut(file, ";")
	return name
}

func TestFilesThatHoldNoPlacesAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := sitefile.Read(bytes.NewReader(nil), 0, "", sitefile.Options{}); err == nil {
		t.Error("an empty file is read")
	}
	file := "id;nom\n"
	if _, err := sitefile.Read(strings.NewReader(file), int64(len(file)), "", sitefile.Options{}); !errors.Is(err, sitefile.ErrEmpty) {
		t.Errorf("got %v", err)
	}
	var many strings.Builder
	many.WriteString("id;nom\n")
	for n := range sitefile.MaxSites + 1 {
		fmt.Fprintf(&many, "%d;x\n", n)
	}
	i, err := sitefile.Read(strings.NewReader(many.String()), int64(many.Len()), "", sitefile.Options{})
	if err != nil || len(i.Errors) != 1 || len(i.Sites) != 0 {
		t.Errorf("too many rows: %+v, %v", i, err)
	}
}

// TestAShiftOfTheColumnsIsFound: from one row on every cell stands a column too far.
func TestAShiftOfTheColumnsIsFound(t *testing.T) {
	t.Parallel()
	var file strings.Builder
	file.WriteString("id;nom;cp;ville\n")
	for n := range 60 {
		if n < 30 {
			fmt.Fprintf(&file, "%d;x;48000;Mende\n", n)
		} else {
			fmt.Fprintf(&file, "%d;x;;48000\n", n) // the postcode has moved on
			fmt.Fprintf(&file, "%da;x;Mende;\n", n)
		}
	}
	i, err := sitefile.Read(strings.NewReader(file.String()), int64(file.Len()), "", sitefile.Options{})
	if err != nil || len(i.Errors) != 1 || !strings.Contains(i.Errors[0].Reason, "line 33") {
		t.Errorf("got %+v, %v", i.Errors, err)
	}
}

// TestShortRowsOfAWideFileTakeTheirOwnCells is not parallel: it counts what the process allocates.
func TestShortRowsOfAWideFileTakeTheirOwnCells(t *testing.T) {
	const columns, rows = 9_999, 5_000
	var csv, objects strings.Builder
	csv.WriteString("external_id,nom" + strings.Repeat(",", columns-2) + "\n")
	objects.WriteString(`{"external_id":"x","nom":"n"`)
	for i := range columns - 2 {
		fmt.Fprintf(&objects, `,"c%d":1`, i)
	}
	objects.WriteString("}\n")
	for i := range rows {
		fmt.Fprintf(&csv, "%d,n\n", i)
		fmt.Fprintf(&objects, `{"external_id":"%d","nom":"n"}`+"\n", i)
	}
	for name, file := range map[string]string{"a.csv": csv.String(), "a.ndjson": objects.String()} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		i, err := sitefile.Read(strings.NewReader(file), int64(len(file)), name, sitefile.Options{})
		runtime.ReadMemStats(&after)
		if err != nil || i.Rows < rows {
			t.Fatalf("%s: %v, %v", name, i, err)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 200 {
			t.Errorf("%s: a file of %d KiB allocates %d MiB", name, len(file)>>10, took)
		}
	}
}
