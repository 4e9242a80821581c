package sitefile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/http/csvfile"
	"lieudit/http/kit"
	"lieudit/http/sitefile"
	"lieudit/schemas/body"
	"lieudit/schemas/locations"
)

var formats = map[string]sitefile.Format{
	"csv": sitefile.CSV(csvfile.RFC4180), "excel": sitefile.CSV(csvfile.FrenchExcel), "geojson": sitefile.GeoJSON, "ndjson": sitefile.NDJSON,
}

func writeFile(t testing.TB, f sitefile.Format, sites ...locations.Site) []byte {
	t.Helper()
	var out bytes.Buffer
	w := f.NewWriter(&out)
	for _, s := range sites {
		if err := w.WriteRow(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// decodeAsSync is what the service makes of the rows of a file.
func decodeAsSync(t testing.TB, file []byte) []body.SiteRow {
	t.Helper()
	rows, err := sitefile.Read(file)
	if err != nil {
		t.Fatalf("%v in %s", err, file)
	}
	text := []byte(`{"sites":[`)
	for i, r := range rows {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, r.JSON...)
	}
	got, err := kit.NewDecoder[body.SyncSites]().DecodeText(append(text, "]}"...))
	if err != nil {
		t.Fatalf("%v in %s", err, file)
	}
	return got.Sites
}

// TestWhatIsExportedIsImportedAsItWas: in every format, whatever the sites hold, a sync of the export finds each of them
// the same as it is stored.
func TestWhatIsExportedIsImportedAsItWas(t *testing.T) {
	t.Parallel()
	for name, f := range formats {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2026))
			for range 400 {
				stored, shown := randomSites(r)
				if len(shown) == 0 && name == "ndjson" {
					continue // nothing is no file
				}
				got := decodeAsSync(t, writeFile(t, f, shown...))
				if len(got) != len(stored) {
					t.Fatalf("%d sites of %d", len(got), len(stored))
				}
				for i := range got {
					if got[i].ExternalID != shown[i].ExternalID || locations.DigestOf(stored[i]).Compare(got[i].Content.Hash()) != locations.Same {
						t.Fatalf("got %s\nof  %s", marshalToString(got[i].Content), marshalToString(shown[i].Content))
					}
				}
			}
		})
	}
}

func marshalToString(v any) string {
	plain, err := json.Marshal(v)
	return fmt.Sprint(string(plain), err)
}

// randomSites are sites as they are stored and as they are shown.
func randomSites(r *rand.Rand) (stored []locations.StoredSite, shown []locations.Site) {
	for i := range r.IntN(5) {
		s := randomSite(r)
		stored = append(stored, s)
		one := locations.Site{ID: "x", Referential: "shops", ExternalID: fmt.Sprintf("%s.~_-%d", []string{"a", "+", "@", "-:*"}[r.IntN(4)], i), Active: true, Version: 3}
		one.Show(s)
		shown = append(shown, one)
	}
	return stored, shown
}

func randomSite(r *rand.Rand) locations.StoredSite {
	c := locations.Content{
		Name: randomText(r), IDBan: randomText(r), Phone: randomText(r), Email: randomText(r), Website: randomText(r), Hours: randomJSON(r), Properties: randomObject(r),
		Address: &locations.SiteAddress{Line1: randomText(r), Line2: randomText(r), PostalCode: "48000", City: randomText(r), Country: randomText(r)},
	}
	if r.IntN(3) == 0 {
		c.Address = nil
	}
	for i := range r.IntN(4) {
		c.Tags = append(c.Tags, fmt.Sprintf("%d%s%d", i, randomText(r), i), fmt.Sprintf("%s%d", randomText(r), i))
	}
	s := locations.StoredSite{Content: c}
	lat, lon := randomDegrees(r, 90), randomDegrees(r, 180)
	switch r.IntN(3) {
	case 0:
		s.Content.Lat, s.Content.Lon = &lat, &lon
		s.Position = s.Content.OwnPosition()
	case 1:
		s.Position = &locations.Position{Lat: lat, Lon: lon, Source: locations.SourceBAN, IDBan: "b", Score: 0.87, Precision: locations.PrecisionLocality}
	}
	return s
}

func randomDegrees(r *rand.Rand, most float64) float64 {
	return []float64{0, 1e-7, -1e-7, most, -most, 44.5, (r.Float64()*2 - 1) * most}[r.IntN(7)]
}

// randomText is a text with characters that a format has to escape; it is often empty.
func randomText(r *rand.Rand) string {
	odd := []string{
		"", "", "Chez Paul", `"`, `""`, "a;b", "a,b", "a|b", "a\nb", "a\r\nb", "a\rb", " a ", "=1+1", "-2", "+33 4", "@x", "'", "'=1", "''-", "\t=", "é😀", "\u00a0x\u00a0",
		"[", `["a"]`, "{}", "null", "1e-7", "\\", "\t", "\u2028", "<b>&", "\ufeff", "true", "4,5", "/", "fin\n",
	}
	return odd[r.IntN(len(odd))]
}

func randomJSON(r *rand.Rand) json.RawMessage {
	if r.IntN(3) == 0 {
		return nil
	}
	all := []any{randomText(r), 1e-7, json.Number("1.50"), json.Number("1E400"), true, []any{randomText(r), nil}, map[string]any{randomText(r): randomText(r)}}
	raw, _ := json.Marshal(all[r.IntN(len(all))])
	return raw
}

func randomObject(r *rand.Rand) json.RawMessage {
	if r.IntN(3) == 0 {
		return nil
	}
	raw, _ := json.Marshal(map[string]any{"a" + randomText(r): randomJSON(r), "b": map[string]any{"c": []any{randomJSON(r), json.Number("1e-7")}}})
	return raw
}

func TestCSVFilesOfOtherProgramsAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"French names, semicolons, decimal commas": {
			"\ufeffIdentifiant;Libellé;Adresse;CP;Ville;Latitude;Longitude;Étiquettes\r\n7;Chez Paul;3 rue X;48000;Mende;44,5180;3,5;bio, drive\r\n",
			`{"adresse":{"code_postal":"48000","commune":"Mende","ligne_1":"3 rue X"},"external_id":"7","lat":44.518,"lon":3.5,"nom":"Chez Paul","tags":["bio","drive"]}`,
		},
		"English names, commas, quoted decimal commas": {
			"id,name,address,postcode,city,lat,lng\n7,\"Paul, \"\"chez\"\"\",,48000,Mende,\"44,5\",3.5\n",
			`{"adresse":{"code_postal":"48000","commune":"Mende"},"external_id":"7","lat":44.5,"lon":3.5,"nom":"Paul, \"chez\""}`,
		},
		"Windows-1252":                   {"id;ville\n7;Pr\xe9vench\xe8res\n", `{"adresse":{"commune":"Prévenchères"},"external_id":"7"}`},
		"an id beside the external_id":   {"id\texternal_id\nx\t7\n", `{"external_id":"7"}`},
		"what is shown is passed over":   {"external_id,actif,version\n7,oui,3\n", `{"external_id":"7"}`},
		"hours in words":                 {"external_id,horaires\n7,lun-ven 9h-18h\n", `{"external_id":"7","horaires":"lun-ven 9h-18h"}`},
		"a latitude that is none":        {"external_id,lat\n7,nord\n", `{"external_id":"7","lat":"nord"}`},
		"a row that is short, and empty": {"external_id,nom,pays\n7\n,,\n\n", `{"external_id":"7"}`},
	} {
		rows, err := sitefile.Read([]byte(c.file))
		if err != nil || len(rows) != 1 || string(rows[0].JSON) != c.want || rows[0].Line != 2 {
			t.Errorf("%s: got %s, %v want line 2 %s", name, marshalToString(rows), err, c.want)
		}
	}
}

func TestFeaturesOfGeographicProgramsAreRead(t *testing.T) {
	t.Parallel()
	for feature, want := range map[string]string{
		`{"id":7,"properties":{"nom":"A","email":null},"geometry":{"type":"Point","coordinates":[3.5,44.5,900]}}`:             `{"external_id":"7","lat":44.5,"lon":3.5,"nom":"A"}`,
		`{"id":"f1","properties":{"external_id":"a","lat":1,"lon":2},"geometry":{"type":"Point","coordinates":[3.50,4.4e1]}}`: `{"external_id":"a","lat":4.4e1,"lon":3.50}`,
		`{"properties":{"external_id":"a","lat":1,"lon":2},"geometry":null}`:                                                  `{"external_id":"a","lat":1,"lon":2}`,
		`{"properties":null}`: `{}`,
	} {
		rows, err := sitefile.Read([]byte(`{"name":"layer","features":[` + feature + `],"type":"FeatureCollection"}`))
		if err != nil || len(rows) != 1 || string(rows[0].JSON) != want {
			t.Errorf("got %s, %v want %s", marshalToString(rows), err, want)
		}
	}
}

func TestRowsHaveTheLineTheyBeginOn(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"csv":     "external_id,nom\n1,\"a\nb\n\nc\"\n\n2,\"x\r\ny\"\n3,\n",
		"geojson": "{\"type\":\"FeatureCollection\",\n\"x\":[1,\n2],\"features\":[\n\n{\"properties\":{}},\n{\"properties\":{\"a\":\n1},\"geometry\":null},{\"id\":5}]}",
		"ndjson":  "{}\n\n{}\r\n{}",
	} {
		want := map[string][]int{"csv": {2, 7, 9}, "geojson": {5, 6, 7}, "ndjson": {1, 3, 4}}[name]
		rows, err := sitefile.Read([]byte(file))
		var got []int
		for _, r := range rows {
			got = append(got, r.Line)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestUnreadableFilesAreRefused(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"":                            "empty",
		" \n":                         "empty",
		"PK\x03\x04":                  "save it as CSV",
		"[{}]":                        "one object a line",
		"\xff\xfea":                   "UTF-16",
		"nom\nx\n":                    "no column says external_id",
		"external_id,surface\n1,2\n":  `"surface"`,
		"external_id,cp,zip\n1,2,3\n": `"cp" and "zip" both say code_postal`,
		"external_id\n1,2\n":          "line 2: 2 cells",
		"external_id\n\"1\n":          "line 2: a quote",
		"{}\n{\n":                     "line 2",
		`{"type":"FeatureCollection","features":[{"properties":{}}`:                             "line 1",
		`{"type":"FeatureCollection","features":[{"geometry":{"type":"Polygon"}}]}`:             "not a Polygon",
		"{\"type\":\"FeatureCollection\",\"features\":[\n{\"properties\":{}},\n{\"properties\"": "line 2",
	} {
		if rows, err := sitefile.Read([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %d rows, %v; want %q", file, len(rows), err, want)
		}
	}
	if _, err := sitefile.Read(nil); !errors.Is(err, sitefile.ErrEmpty) {
		t.Errorf("got %v", err)
	}
	if rows, err := sitefile.Read([]byte("external_id,surface\n1,2\n"), "surface"); err != nil || len(rows) != 1 {
		t.Errorf("an ignored column: %v", err)
	}
}

func FuzzReadNeverPanicsAndItsRowsAreObjects(f *testing.F) {
	for _, seed := range []string{"id;nom\n1;\"a\n", "{}\n{}", `{"type":"FeatureCollection","features":[{}]}`, "id\tx\r1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		rows, err := sitefile.Read(file)
		for _, r := range rows {
			var object map[string]json.RawMessage
			if err != nil || json.Unmarshal(r.JSON, &object) != nil || r.Line < 1 {
				t.Errorf("%q: row %q on line %d, %v", file, r.JSON, r.Line, err)
			}
		}
	})
}

// TestNoTextOfAnExportIsAFormula: a spreadsheet that opens the file runs nothing, and numbers stay numbers.
func TestNoTextOfAnExportIsAFormula(t *testing.T) {
	t.Parallel()
	lat, lon := -12.78, -61.5
	s := locations.Site{ExternalID: "+1", Content: locations.Content{
		Name: "=1+1", Phone: "+33466000000", Lat: &lat, Lon: &lon, Tags: []string{"@x", "b"}, Website: "'-", Hours: json.RawMessage(`-1`),
		Address: &locations.SiteAddress{Line1: "-3 rue", Line2: "\tx", PostalCode: "@", City: "'a", InseeCode: "=", Country: "+"},
	}}
	want := "'+1,'=1+1,'-3 rue,'\tx,'@,'a,'=,'+,,-12.78,-61.5,,,,'-1,'+33466000000,,''-,\"'@x,b\","
	_, got, _ := strings.Cut(strings.TrimSpace(string(writeFile(t, sitefile.CSV(csvfile.RFC4180), s))), "\r\n")
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
