package kit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"lieudit/http/kit"
	"lieudit/schemas/body"
	shop "lieudit/schemas/locations"
)

// wholeSync is a sync of n sites, each with n bytes of content.
func wholeSync(n, bytes int) []byte {
	var out strings.Builder
	out.WriteString(`{"confirmer_reduction":false,"sites":[`)
	for i := range n {
		if i > 0 {
			out.WriteByte(',')
		}
		row := fmt.Sprintf(`{"external_id":"shop-%05d","nom":"Épicerie du Coin %d","adresse":{"ligne_1":"%d rue de l’Ermitage","code_postal":"48000","commune":"Mende","pays":"FR"},`+
			`"lat":44.%06d,"lon":3.%06d,"telephone":"+33 4 66 00 %04d","email":"shop%d@exemple.fr","site_web":"https://exemple.fr/%d","tags":["bio","drive","pain \"frais\""],`+
			`"horaires":{"lun":[["09:00","12:00"],["14:00","19:00"]],"mar":[["09:00","19:00"]]},"actif":true,"version":3,"proprietes":{"surface":120.5,"note":"`, i, i, i, i, i, i%10000, i, i)
		out.WriteString(row + strings.Repeat("x", max(0, bytes-len(row)-3)) + `"}}`)
	}
	out.WriteString("]}")
	return []byte(out.String())
}

var syncSitesDecoder = kit.NewDecoder[body.SyncSites]()

func TestBrokenRulesOfARowNameItsIndex(t *testing.T) {
	t.Parallel()
	text := strings.Replace(string(wholeSync(20, 0)), `"lat":44.000017`, `"lat":444`, 1)
	text = strings.Replace(text, `"external_id":"shop-00019"`, `"external_id":"shop-00003"`, 1)
	text = strings.Replace(text, `"lon":3.000005,`, ``, 1)
	status, got := problemOf(t, errorOf(syncSitesDecoder.DecodeText([]byte(text))))
	want := []string{`value_error ["body","sites",5] `, `less_than_equal ["body","sites",17,"lat"] `, `value_error ["body","sites",19,"external_id"] {"external_id":"shop-00003"`}
	if status != 422 || len(got) != len(want) {
		t.Fatalf("%d %q", status, got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got %s want %s", got[i], want[i])
		}
	}
}

func TestARowMayHoldUpToItsLimits(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"m%d":1`, i))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	long := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	for row, want := range map[string]string{
		`"external_id":"a.B_~-9"`:                                     "",
		`"external_id":""`:                                            `string_pattern_mismatch ["body","sites",0,"external_id"]`,
		`"external_id":"é"`:                                           `string_pattern_mismatch ["body","sites",0,"external_id"]`,
		`"nom":"x"`:                                                   `missing ["body","sites",0,"external_id"]`,
		`"external_id":"a","x":1`:                                     `extra_forbidden ["body","sites",0,"x"]`,
		`"external_id":"a","lat":1`:                                   `value_error ["body","sites",0]`,
		`"external_id":"a","lat":"1"`:                                 `float_type ["body","sites",0,"lat"]`,
		`"external_id":"a","lat":1e-7,"lon":-180`:                     "",
		`"external_id":"a","lon":181,"lat":1`:                         `less_than_equal ["body","sites",0,"lon"]`,
		`"external_id":"a","tags":["x","y","x"]`:                      `value_error ["body","sites",0,"tags",2]`,
		`"external_id":"a","tags":["",""]`:                            `string_too_short ["body","sites",0,"tags",0]`,
		`"external_id":"a","tags":[` + long(67) + `]`:                 `string_too_long ["body","sites",0,"tags",0]`,
		`"external_id":"a","tags":[` + long(66) + `]`:                 "",
		`"external_id":"a","proprietes":[]`:                           `dict_type ["body","sites",0,"proprietes"]`,
		`"external_id":"a","proprietes":` + many(100):                 "",
		`"external_id":"a","proprietes":` + many(101):                 `too_long ["body","sites",0,"proprietes"]`,
		`"external_id":"a","proprietes":{"a":` + long(16<<10-6) + `}`: "",
		`"external_id":"a","proprietes":{"a":` + long(16<<10-5) + `}`: `value_error ["body","sites",0,"proprietes"]`,
		`"external_id":"a","horaires":` + long(16<<10):                "",
		`"external_id":"a","horaires":` + long(16<<10+1):              `value_error ["body","sites",0,"horaires"]`,
		`"external_id":"a","id":[],"referentiel":{},"geocode_score":"x","geocode_precision":7,"position_source":null,"actif":1,"version":[{}],"cree_le":0,"modifie_le":1,"desactive_le":{"a":2}`: "",
		`"external_id":"a","adresse":{"code_insee":"480955"}`: `string_too_long ["body","sites",0,"adresse","code_insee"]`,
	} {
		status, got := problemOf(t, errorOf(syncSitesDecoder.DecodeText([]byte(`{"sites":[{`+row+`}]}`))))
		if want == "" && status != 0 || want != "" && (status != 422 || !strings.HasPrefix(got[0], want)) {
			t.Errorf("%.80s: %d %.200q want %s", row, status, got, want)
		}
	}
	for text, want := range map[string]int{`{}`: 400, `{"sites":1}`: 422, `{"sites":[],"x":1}`: 422, `{"sites":[1]}`: 422, `{"sites":[{}],"sites":[]}`: 400, `[]`: 400, `{"sites":[]}`: 0} {
		if status, _ := problemOf(t, errorOf(syncSitesDecoder.DecodeText([]byte(text)))); status != want {
			t.Errorf("%s: %d want %d", text, status, want)
		}
	}
	status, got := problemOf(t, errorOf(syncSitesDecoder.DecodeText([]byte(`{"sites":[`+strings.Repeat(`{},`, 20_000)+`{}]}`))))
	if status != 422 || len(got) != 100 {
		t.Errorf("%d with %d violations", status, len(got))
	}
}

// countingReader is a body that never ends.
type countingReader struct{ read int }

func (s *countingReader) Read(p []byte) (int, error) { s.read += len(p); return len(p), nil }

func TestABodyOverTheLimitIsReadNoFurther(t *testing.T) {
	t.Parallel()
	endless := &countingReader{}
	r := httptest.NewRequest("POST", "/", endless)
	r.ContentLength = -1
	r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, 1<<20)
	if status, _ := problemOf(t, errorOf(syncSitesDecoder.DecodeBody(r))); status != 413 || endless.read > 4<<20 {
		t.Errorf("%d after %d bytes", status, endless.read)
	}
}

func TestABodyOf15MBIsReadAtOnce(t *testing.T) {
	t.Parallel()
	text := wholeSync(11_000, 1400)
	began := time.Now()
	got, err := syncSitesDecoder.DecodeText(text)
	if err != nil || len(got.Sites) != 11_000 || len(got.Sites[7].Tags) != 3 {
		t.Fatalf("%d sites, %v", len(got.Sites), err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d bytes take %v", len(text), took)
	}
}

func BenchmarkSyncOf11000Sites(b *testing.B) {
	text := wholeSync(11_000, 1400)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := syncSitesDecoder.DecodeText(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSyncOf11000LeanSites(b *testing.B) {
	text := wholeSync(11_000, 0)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := syncSitesDecoder.DecodeText(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSyncRawLimit is encoding/json on the same bytes, which checks nothing.
func BenchmarkSyncRawLimit(b *testing.B) {
	text := wholeSync(11_000, 0)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		var v struct{ Sites []shop.Site }
		if err := json.Unmarshal(text, &v); err != nil {
			b.Fatal(err)
		}
	}
}
