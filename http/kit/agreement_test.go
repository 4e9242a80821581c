package kit_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"lieudit/http/kit"

	"lieudit/schemas/body/shape"
)

// resolveSchema is the schema that documents a body for T.
func resolveSchema[T any](t testing.TB) *jsonschema.Resolved {
	t.Helper()
	s, err := shape.FromType(reflect.TypeFor[T]())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Schema(shape.SchemaOptions{IsClosed: true}).Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rulesBeyondSchema are the rules that a JSON Schema cannot express.
var rulesBeyondSchema = []string{"value_error", "date_parsing", "datetime_parsing", "int_parsing_size", "finite_number"}

// FuzzBodyAndSchemaAgree: a body that the decoder accepts is valid by the schema of the documents, and a body that it refuses
// for a rule that a schema can express is not.
func FuzzBodyAndSchemaAgree(f *testing.F) {
	for _, seed := range []string{
		`{"sites":[{"external_id":"a","lat":1,"lon":2,"adresse":{"commune":"X"}}],"count":2,"ratio":0.5,"agence_de":null,"tags":["a"]}`,
		`{"sites":[],"x":1}`, `{"sites":[{}],"big":1e3,"day":"2026-01-01","at":"2026-01-01T00:00:00Z"}`, `{"sites":[1,"\ud83d\ude00"],"label":""}`,
		`{"sites":[],"marks":["a","abcd","a",""],"libre":{"a":1,"b":[2],"c":{}},"patch":{"commune":"x"},"actif":[]}`, `{"sites":[],"libre":1,"patch":null}`,
		`{"sites":[],"ou":"3/B","lieux":["x",{"etage":3,"porte":"B"},{"etage":12}]}`, `{"sites":[],"ou":{"y":1},"lieux":[1]}`,
		`{"sites":[],"sites":[]}`, "\ufeff{}", `{"sites":[],"count":2.0,"proprietes":{"a":[null,true,{"b":"\u00e9"}]}}`, `{"sites":[],"kind":"x","label":"ééééééééééé"}`,
	} {
		f.Add([]byte(seed))
	}
	schema := resolveSchema[sync](f)
	f.Fuzz(func(t *testing.T, text []byte) {
		status, violations := problemOf(t, errorOf(syncDecoder.DecodeText(text)))
		plain := bytes.TrimPrefix(text, []byte("\ufeff"))
		if status == 400 {
			return
		}
		var v any
		if err := json.Unmarshal(plain, &v); err != nil || !utf8.Valid(plain) {
			t.Fatalf("%q is read (%d), but is no JSON: %v", text, status, err)
		}
		err := schema.Validate(v)
		if status == 0 && err != nil {
			t.Errorf("%s is taken, but does not fit the schema: %v", text, err)
		}
		if status == 422 && err == nil && !breaksRuleBeyondSchema(violations) {
			t.Errorf("%s fits the schema, but is refused: %q", text, violations)
		}
	})
}

func breaksRuleBeyondSchema(violations []string) bool {
	for _, v := range violations {
		for _, rule := range rulesBeyondSchema {
			if strings.HasPrefix(v, rule+" ") {
				return true
			}
		}
	}
	return false
}

func TestHugeNumbersAndStringsAreReadInLinearTime(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"sites":[],"big":` + strings.Repeat("9", 1<<20) + `}`,
		`{"sites":[],"label":"` + strings.Repeat(`\u00e9`, 1<<17) + `"}`,
		`{"sites":[],"tags":[` + strings.Repeat(`"a",`, 1<<17) + `"a"]}`,
		`{"sites":[],"proprietes":[` + strings.Repeat(`0,`, 1<<18) + `0]}`,
	} {
		status, _ := problemOf(t, errorOf(syncDecoder.DecodeText([]byte(text))))
		if status == 400 {
			t.Errorf("%.40s…: 400", text)
		}
	}
}

func BenchmarkBodyOf1000Sites(b *testing.B) {
	row := `{"external_id":"abc","lat":48.8566,"lon":2.3522,"adresse":{"commune":"Paris"}},`
	type rows struct {
		Sites []site `json:"sites"`
	}
	text := []byte(`{"sites":[` + strings.Repeat(row, 999) + strings.TrimSuffix(row, ",") + `]}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	d := kit.NewDecoder[rows]()
	for b.Loop() {
		if _, err := d.DecodeText(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRawLimit is encoding/json on the same bytes, which checks nothing.
func BenchmarkRawLimit(b *testing.B) {
	row := `{"external_id":"abc","lat":48.8566,"lon":2.3522,"adresse":{"commune":"Paris"}},`
	text := []byte(`{"sites":[` + strings.Repeat(row, 999) + strings.TrimSuffix(row, ",") + `]}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		var v struct {
			Sites []site `json:"sites"`
		}
		if err := json.Unmarshal(text, &v); err != nil {
			b.Fatal(err)
		}
	}
}
