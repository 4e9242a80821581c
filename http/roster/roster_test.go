package roster_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/http/grid"
	"lieudit/http/input"
	"lieudit/http/roster"
	"lieudit/schemas/body"
	"lieudit/schemas/site"
)

var formats = map[string]roster.Format{
	"csv": roster.CSV(grid.Standard), "excel": roster.CSV(grid.Excel), "geojson": roster.GeoJSON, "ndjson": roster.NDJSON,
}

func write(t testing.TB, f roster.Format, sites ...site.Site) []byte {
	t.Helper()
	var out bytes.Buffer
	w := f.Begin(&out)
	for _, s := range sites {
		if err := w.Site(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sync is what the service makes of the rows of a file.
func sync(t testing.TB, file []byte) []body.SiteRow {
	t.Helper()
	rows, err := roster.Read(file)
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
	got, err := input.For[body.SyncSites]().Text(append(text, "]}"...))
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
				stored, shown := someSites(r)
				if len(shown) == 0 && name == "ndjson" {
					continue // nothing is no file
				}
				got := sync(t, write(t, f, shown...))
				if len(got) != len(stored) {
					t.Fatalf("%d sites of %d", len(got), len(stored))
				}
				for i := range got {
					if got[i].ExternalID != shown[i].ExternalID || site.DigestOf(stored[i]).Compare(got[i].Content.Sum()) != site.Same {
						t.Fatalf("got %s\nof  %s", text(got[i].Content), text(shown[i].Content))
					}
				}
			}
		})
	}
}

func text(v any) string {
	plain, err := json.Marshal(v)
	return fmt.Sprint(string(plain), err)
}

// someSites are sites as they are stored and as they are shown.
func someSites(r *rand.Rand) (stored []site.Stored, shown []site.Site) {
	for i := range r.IntN(5) {
		s := someSite(r)
		stored = append(stored, s)
		one := site.Site{ID: "x", Referential: "shops", ExternalID: fmt.Sprintf("a.~_-%d", i), Active: true, Version: 3}
		one.Content, one.Source, one.Score = s.Show()
		shown = append(shown, one)
	}
	return stored, shown
}

func someSite(r *rand.Rand) site.Stored {
	c := site.Content{
		Name: words(r), IDBan: words(r), Phone: words(r), Email: words(r), Website: words(r), Hours: free(r), Properties: object(r),
		Address: &site.Address{Line1: words(r), Line2: words(r), PostalCode: "48000", City: words(r), Country: words(r)},
	}
	if r.IntN(3) == 0 {
		c.Address = nil
	}
	for i := range r.IntN(4) {
		c.Tags = append(c.Tags, fmt.Sprintf("%d%s%d", i, words(r), i), fmt.Sprintf("%s%d", words(r), i))
	}
	s := site.Stored{Content: c}
	lat, lon := degrees(r, 90), degrees(r, 180)
	switch r.IntN(3) {
	case 0:
		s.Content.Lat, s.Content.Lon = &lat, &lon
		s.Position = s.Content.Own()
	case 1:
		s.Position = &site.Position{Lat: lat, Lon: lon, Source: site.FromBan, IDBan: "b", Score: 0.87}
	}
	return s
}

func degrees(r *rand.Rand, most float64) float64 {
	return []float64{0, 1e-7, -1e-7, most, -most, 44.5, (r.Float64()*2 - 1) * most}[r.IntN(7)]
}

// words is a text that formats could stumble over; often none.
func words(r *rand.Rand) string {
	odd := []string{
		"", "", "Chez Paul", `"`, `""`, "a;b", "a,b", "a|b", "a\nb", "a\r\nb", "a\rb", " a ", "=1+1", "-2", "+33 4", "@x", "'", "é😀", "\u00a0x\u00a0",
		"[", `["a"]`, "{}", "null", "1e-7", "\\", "\t", "\u2028", "<b>&", "\ufeff", "true", "4,5", "/", "fin\n",
	}
	return odd[r.IntN(len(odd))]
}

func free(r *rand.Rand) json.RawMessage {
	if r.IntN(3) == 0 {
		return nil
	}
	all := []any{words(r), 1e-7, json.Number("1.50"), json.Number("1E400"), true, []any{words(r), nil}, map[string]any{words(r): words(r)}}
	raw, _ := json.Marshal(all[r.IntN(len(all))])
	return raw
}

func object(r *rand.Rand) json.RawMessage {
	if r.IntN(3) == 0 {
		return nil
	}
	raw, _ := json.Marshal(map[string]any{"a" + words(r): free(r), "b": map[string]any{"c": []any{free(r), json.Number("1e-7")}}})
	return raw
}

func TestSheetsOfPeopleAreReadAsTheyAreMeant(t *testing.T) {
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
		rows, err := roster.Read([]byte(c.file))
		if err != nil || len(rows) != 1 || string(rows[0].JSON) != c.want || rows[0].Line != 2 {
			t.Errorf("%s: got %s, %v want line 2 %s", name, text(rows), err, c.want)
		}
	}
}

func TestFeaturesOfMapsAreReadAsTheyAreMeant(t *testing.T) {
	t.Parallel()
	for feature, want := range map[string]string{
		`{"id":7,"properties":{"nom":"A","email":null},"geometry":{"type":"Point","coordinates":[3.5,44.5,900]}}`:             `{"external_id":"7","lat":44.5,"lon":3.5,"nom":"A"}`,
		`{"id":"f1","properties":{"external_id":"a","lat":1,"lon":2},"geometry":{"type":"Point","coordinates":[3.50,4.4e1]}}`: `{"external_id":"a","lat":4.4e1,"lon":3.50}`,
		`{"properties":{"external_id":"a","lat":1,"lon":2},"geometry":null}`:                                                  `{"external_id":"a","lat":1,"lon":2}`,
		`{"properties":null}`: `{}`,
	} {
		rows, err := roster.Read([]byte(`{"name":"layer","features":[` + feature + `],"type":"FeatureCollection"}`))
		if err != nil || len(rows) != 1 || string(rows[0].JSON) != want {
			t.Errorf("got %s, %v want %s", text(rows), err, want)
		}
	}
}

func TestRowsKnowTheirLine(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"csv":     "external_id,nom\n1,\"a\nb\n\nc\"\n\n2,\"x\r\ny\"\n3,\n",
		"geojson": "{\"type\":\"FeatureCollection\",\n\"x\":[1,\n2],\"features\":[\n\n{\"properties\":{}},\n{\"properties\":{\"a\":\n1},\"geometry\":null},{\"id\":5}]}",
		"ndjson":  "{}\n\n{}\r\n{}",
	} {
		want := map[string][]int{"csv": {2, 7, 9}, "geojson": {5, 6, 7}, "ndjson": {1, 3, 4}}[name]
		rows, err := roster.Read([]byte(file))
		var got []int
		for _, r := range rows {
			got = append(got, r.Line)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestFilesThatCannotBeMeantAreRefused(t *testing.T) {
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
		if rows, err := roster.Read([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %d rows, %v; want %q", file, len(rows), err, want)
		}
	}
	if _, err := roster.Read(nil); !errors.Is(err, roster.ErrEmpty) {
		t.Errorf("got %v", err)
	}
	if rows, err := roster.Read([]byte("external_id,surface\n1,2\n"), "surface"); err != nil || len(rows) != 1 {
		t.Errorf("an ignored column: %v", err)
	}
}

func FuzzReadNeverPanicsAndItsRowsAreObjects(f *testing.F) {
	for _, seed := range []string{"id;nom\n1;\"a\n", "{}\n{}", `{"type":"FeatureCollection","features":[{}]}`, "id\tx\r1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		rows, err := roster.Read(file)
		for _, r := range rows {
			var object map[string]json.RawMessage
			if err != nil || json.Unmarshal(r.JSON, &object) != nil || r.Line < 1 {
				t.Errorf("%q: row %q on line %d, %v", file, r.JSON, r.Line, err)
			}
		}
	})
}
