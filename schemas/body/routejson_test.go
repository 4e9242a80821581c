package body

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// plainJSON is JSON by encoding/json. Lines are written as the struct that they are.
func plainJSON(t *testing.T, v any) string {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// fill sets a value at random: often to zero, with texts that need escapes and numbers of any length.
func fill(r *rand.Rand, v reflect.Value) {
	texts := []string{"", "Rue de l'Église", "a\"b\\c", "<&>", "\u2028", "\x01\t", "A\xff", "€ 5", "日本"}
	floats := []float64{0, -0.000001, 2.5, 48.856613, -179.999999, 1e-7, 123456.789, 0.1 + 0.2, 1e21, 7, -3}
	if r.IntN(4) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[r.IntN(len(texts))])
	case reflect.Int:
		v.SetInt(r.Int64N(2_000_000) - 1_000)
	case reflect.Float64:
		v.SetFloat(floats[r.IntN(len(floats))])
		if r.IntN(2) == 0 {
			v.SetFloat(math.Round((r.Float64()*360-180)*1e6) / 1e6)
		}
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(r, v.Field(i))
			}
		}
	}
}

func TestAnswersAboutRoutesWriteThemselvesAsEncodingJSONDoes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(41, 1))
	for _, answer := range []interface {
		AppendJSON([]byte) ([]byte, error)
	}{&ComputedRoute{}, &Tour{}, &Isochrone{}} {
		for range 500 {
			v := reflect.New(reflect.TypeOf(answer).Elem())
			fill(r, v.Elem())
			got, err := v.Interface().(interface {
				AppendJSON([]byte) ([]byte, error)
			}).AppendJSON([]byte("before "))
			if want := "before " + plainJSON(t, v.Interface()); err != nil || string(got) != want {
				t.Fatalf("got  %s, %v\nwant %s", got, err, want)
			}
		}
	}
}

func TestALineIsATextOrAnObject(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(41, 2))
	for range 500 {
		var l Line
		fill(r, reflect.ValueOf(&l).Elem())
		type object Line
		if got, want := plainJSON(t, &l), plainJSON(t, (*object)(&l)); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	if got, want := plainJSON(t, PolylineOf(`_p~iF\"`)), `"_p~iF\\\""`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestANumberThatIsNotFiniteIsNotWritten(t *testing.T) {
	t.Parallel()
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		a := ComputedRoute{RoutePath: RoutePath{BBox: []float64{x}}}
		if text, err := a.AppendJSON(nil); err == nil {
			t.Errorf("%v is written: %s", x, text)
		}
	}
}

func TestDegreesHaveTheirShortestText(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(41, 3))
	for range 200_000 {
		x := math.Round((r.Float64()*360-180)*1e6) / 1e6
		w := objectWriter{}
		w.float(x)
		if want, err := json.Marshal(x); err != nil || string(w.text) != string(want) {
			t.Fatalf("got %s, want %s", w.text, want)
		}
	}
}
