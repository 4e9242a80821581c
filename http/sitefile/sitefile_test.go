package sitefile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

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

// readFile reads a file, which must be one that can be imported.
func readFile(t testing.TB, file []byte, o sitefile.Options) *sitefile.Import {
	t.Helper()
	i, err := sitefile.Read(bytes.NewReader(file), int64(len(file)), "", o)
	if err != nil || len(i.Errors) > 0 {
		t.Fatalf("%v, %v in %s", err, i, file)
	}
	return i
}

// decodeAsSync is what the service makes of the sites of a file.
func decodeAsSync(t testing.TB, file []byte) []body.SiteRow {
	t.Helper()
	var rows []any
	for _, s := range readFile(t, file, sitefile.Options{}).Sites {
		rows = append(rows, struct {
			ExternalID string `json:"external_id"`
			locations.Content
		}{s.ExternalID, s.Content})
	}
	text, err := kit.MarshalJSON(map[string]any{"sites": rows})
	if err != nil {
		t.Fatal(err)
	}
	got, err := kit.NewDecoder[body.SyncSites]().DecodeText(text)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
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
				if len(shown) == 0 {
					continue // no sites are no file
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
		Name: randomText(r), IDBan: randomText(r), Phone: randomText(r), Email: randomText(r), Website: randomText(r), Hours: randomObject(r), Properties: randomObject(r),
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
	if string(raw) == `""` { // reads as nothing in JSON as it does in CSV
		return nil
	}
	return raw
}

func randomObject(r *rand.Rand) json.RawMessage {
	if r.IntN(3) == 0 {
		return nil
	}
	raw, _ := json.Marshal(map[string]any{"a" + randomText(r): randomJSON(r), "b": map[string]any{"c": []any{randomJSON(r), json.Number("1e-7")}}})
	return raw
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
