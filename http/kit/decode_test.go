package kit_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/http/kit"
	"lieudit/schemas/body/shape"
	"lieudit/schemas/plan"
)

var syncDecoder = kit.NewDecoder[sync]()

func pointer[T any](v T) *T { return &v }

func TestABodyIsReadIntoItsStruct(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sync{
		`{"sites":[]}`:          {Sites: []site{}, Count: 7},
		" {\"sites\" : [ ] }\n": {Sites: []site{}, Count: 7},
		"\ufeff{\"sites\":[]}":  {Sites: []site{}, Count: 7}, // a byte order mark is skipped
		`{"sites":[{"external_id":"a","lat":1,"lon":-2.5e1,"adresse":{"commune":"Ét\u00e9 \ud83d\ude00 \/\b\f\n\r\t\"\\"}},{"external_id":"b"}],
		  "confirmer_reduction":true,"label":"été","kind":"secret","q":"ééééé","count":20,"big":9223372036854775807,"ratio":-1.5,
		  "day":"2028-02-29","at":"2026-11-21T12:00:00.5+01:00","agence_de":"acme","proprietes":{"x":[1,{"y":null}]},"tags":["a","c"]}`: {
			Sites: []site{
				{ID: "a", Lat: pointer(1.0), Lon: pointer(-25.0), Inner: &listItem{City: "Été 😀 /\b\f\n\r\t\"\\"}},
				{ID: "b"},
			},
			Confirm: true, Label: "été", Kind: "secret", Q: "ééééé", Count: 20, Big: 1<<63 - 1, Ratio: pointer(-1.5),
			Day: plan.Date{Year: 2028, Month: 2, Day: 29}, At: time.Date(2026, 11, 21, 11, 0, 0, 5e8, time.UTC),
			Agency: shape.Nullable[string]{IsGiven: true, Value: pointer("acme")},
			Extra:  []byte(`{"x":[1,{"y":null}]}`), Tags: []string{"a", "c"},
		},
		`{"sites":[],"agence_de":null,"count":2.0,"big":1e3}`:                     {Sites: []site{}, Count: 2, Big: 1000, Agency: shape.Nullable[string]{IsGiven: true}},
		`{"sites":[],"ou":"3/B","lieux":["0/","1/A"]}`:                            {Sites: []site{}, Count: 7, Where: spot{3, "B"}, Spots: []spot{{}, {1, "A"}}},
		`{"sites":[],"ou":{"etage":3,"porte":"B"},"lieux":[{"porte":"é"},"1/A"]}`: {Sites: []site{}, Count: 7, Where: spot{3, "B"}, Spots: []spot{{Door: "é"}, {1, "A"}}},
	} {
		got, err := syncDecoder.DecodeText([]byte(text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			status, violations := problemOf(t, err)
			t.Errorf("%s: %d %q\n%s", text, status, violations, diff)
		}
	}
}

func TestATextThatStandsForAnObjectHasRulesToo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"sites":[],"lieux":["x"]}`:                      `value_error ["body","lieux",0]`,
		`{"sites":[],"lieux":["1/A","12345"]}`:            `string_too_long ["body","lieux",1]`,
		`{"sites":[],"lieux":["1/A",{"etage":2}]}`:        `value_error ["body","lieux",1]`,
		`{"sites":[],"lieux":[7]}`:                        `model_attributes_type ["body","lieux",0]`,
		`{"sites":[],"lieux":["1/A","1/A","1/A"]}`:        `too_long ["body","lieux"]`,
		`{"sites":[],"ou":{"etage":10,"porte":"B"}}`:      `less_than_equal ["body","ou","etage"]`,
		`{"sites":[],"ou":{"etage":1,"porte":"B","x":1}}`: `extra_forbidden ["body","ou","x"]`,
	} {
		status, violations := problemOf(t, errorOf(syncDecoder.DecodeText([]byte(text))))
		if status != 422 || len(violations) != 1 || !strings.HasPrefix(violations[0], want+" ") {
			t.Errorf("%s: %d %q, want %s", text, status, violations, want)
		}
	}
	for _, text := range []string{`{"sites":[],"ou":""}`, `{"sites":[],"ou":"12345"}`} {
		if status, _ := problemOf(t, errorOf(syncDecoder.DecodeText([]byte(text)))); status != malformed {
			t.Errorf("%s: %d, want 400", text, status)
		}
	}
}

func TestNoBodyIsAnEmptyObject(t *testing.T) {
	t.Parallel()
	type wish struct {
		Agency shape.Nullable[string] `json:"agence_de,omitzero"`
	}
	for _, text := range []string{"", " \n", "{}", "\ufeff"} {
		if got, err := kit.NewDecoder[wish]().DecodeText([]byte(text)); err != nil || got.Agency.IsGiven {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if status, _ := problemOf(t, errorOf(syncDecoder.DecodeText([]byte(text)))); status != malformed {
			t.Errorf("%q where sites are required: %d, want 400", text, status)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

// TestWhatCannotBeReadIs400 has bodies that are not strict JSON, and bodies that lack something required at the top.
func TestWhatCannotBeReadIs400(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":0`, i)
	}
	for _, text := range []string{
		"{", "}", "nul", "null", "true", "3", `"text"`, "[]", `[{"sites":[]}]`, "{]", `{"sites":[}`, `{"sites":[]`, `{"sites":[]]`,
		`{"sites":[]}x`, `{"sites":[]}{}`, `{"sites":[]},`, `{"sites":[],}`, `{,"sites":[]}`, `{"sites" []}`, `{"sites":}`, `{sites:[]}`,
		`{'sites':[]}`, `{"sites":[1,]}`, `{"sites":[,1]}`, `{"sites":[1 2]}`, "{\"sites\":[]}\x00", "\x00{\"sites\":[]}", `{"sites":[]/**/}`,
		"{\"sites\":[],\"label\":\"a\nb\"}", "{\"sites\":[],\"label\":\"\x01\"}", `{"sites":[],"label":"\x"}`, `{"sites":[],"label":"\u12"}`,
		`{"sites":[],"label":"\u12g4"}`, `{"sites":[],"label":"\ud800"}`, `{"sites":[],"label":"\ud800x"}`, `{"sites":[],"label":"\udc00"}`,
		`{"sites":[],"label":"\ud800\u0041"}`, `{"sites":[],"label":"\ud800\ud800"}`, `{"sites":[],"label":"a`, `{"sites":[],"label":"a\`,
		"{\"sites\":[],\"label\":\"\xff\"}", "{\"sites\":[],\"label\":\"\xed\xa0\x80\"}", "\xff", "{\"sites\":[]}\ufeff", "\ufeff\ufeff{\"sites\":[]}",
		`{"sites":[],"count":01}`, `{"sites":[],"count":+1}`, `{"sites":[],"count":.5}`, `{"sites":[],"count":1.}`, `{"sites":[],"count":1e}`,
		`{"sites":[],"count":-}`, `{"sites":[],"count":0x1}`, `{"sites":[],"count":NaN}`, `{"sites":[],"ratio":Infinity}`, `{"sites":[],"count":1_0}`,
		`{"sites":[],"confirmer_reduction":True}`, `{"sites":[],"confirmer_reduction":truex}`,
		`{"sites":[],"sites":[]}`, `{"sites":[],"sit\u0065s":[]}`, `{"sites":[{"external_id":"a","external_id":"b"}]}`, // twice is ambiguous
		`{"sites":[],"x":1,"x":2}`, `{"sites":[],"proprietes":{"a":1,"a":2}}`, `{"sites":[],"x":{"a":1,"a":2}}`,
		`{"sites":[],"x":` + deep + `}`, `{"sites":[],"proprietes":` + deep + `}`, strings.Repeat(`{"sites":`, 1000),
		`{"sites":[],"proprietes":{` + strings.Join(many, ",") + `}}`,
		`{}`, `{"label":"x"}`, `{"label":3}`, `{"sites":[],"q":"eeeeee"}`, `{"q":"eeeeee","sites":3}`,
	} {
		if status, _ := problemOf(t, errorOf(syncDecoder.DecodeText([]byte(text)))); status != malformed {
			t.Errorf("%.80q: %d, want 400", text, status)
		}
	}
}

// brokenRules are bodies, and each rule they break with the object that holds the field.
var brokenRules = map[string][]string{
	`{"sites":3}`:                                    {`list_type ["body","sites"] {"sites":3}`},
	`{"sites":null}`:                                 {`list_type ["body","sites"] {"sites":null}`},
	`{"sites":[3]}`:                                  {`model_attributes_type ["body","sites",0] {"sites":[3]}`},
	`{"sites":[{}]}`:                                 {`missing ["body","sites",0,"external_id"] {}`},
	`{"sites":[],"Sites":[]}`:                        {`extra_forbidden ["body","Sites"] {"sites":[],"Sites":[]}`},
	`{"sites":[],"":0}`:                              {`extra_forbidden ["body",""] {"sites":[],"":0}`},
	`{"sites":[],"label":3}`:                         {`string_type ["body","label"] {"sites":[],"label":3}`},
	`{"sites":[],"label":null}`:                      {`string_type ["body","label"] {"sites":[],"label":null}`},
	`{"sites":[],"label":""}`:                        {`string_too_short ["body","label"] {"sites":[],"label":""}`},
	`{"sites":[],"label":"ééééééééééé"}`:             {`string_too_long ["body","label"] {"sites":[],"label":"ééééééééééé"}`},
	`{"sites":[],"label":"\u0000"}`:                  {`value_error ["body","label"] {"sites":[],"label":"\u0000"}`},
	`{"sites":[],"kind":"Secret"}`:                   {`literal_error ["body","kind"] {"sites":[],"kind":"Secret"}`},
	`{"sites":[],"q":3}`:                             {`string_type ["body","q"] {"sites":[],"q":3}`},
	`{"sites":[],"count":0}`:                         {`greater_than_equal ["body","count"] {"sites":[],"count":0}`},
	`{"sites":[],"count":21}`:                        {`less_than_equal ["body","count"] {"sites":[],"count":21}`},
	`{"sites":[],"count":1.5}`:                       {`int_from_float ["body","count"] {"sites":[],"count":1.5}`},
	`{"sites":[],"count":"5"}`:                       {`int_type ["body","count"] {"sites":[],"count":"5"}`},
	`{"sites":[],"count":true}`:                      {`int_type ["body","count"] {"sites":[],"count":true}`},
	`{"sites":[],"big":9223372036854775808}`:         {`int_parsing_size ["body","big"] {"sites":[],"big":9223372036854775808}`},
	`{"sites":[],"big":1e400}`:                       {`int_parsing_size ["body","big"] {"sites":[],"big":1e400}`},
	`{"sites":[],"ratio":1.51}`:                      {`less_than_equal ["body","ratio"] {"sites":[],"ratio":1.51}`},
	`{"sites":[],"ratio":-1e400}`:                    {`finite_number ["body","ratio"] {"sites":[],"ratio":-1e400}`},
	`{"sites":[],"ratio":"1"}`:                       {`float_type ["body","ratio"] {"sites":[],"ratio":"1"}`},
	`{"sites":[],"confirmer_reduction":1}`:           {`bool_type ["body","confirmer_reduction"] {"sites":[],"confirmer_reduction":1}`},
	`{"sites":[],"confirmer_reduction":"true"}`:      {`bool_type ["body","confirmer_reduction"] {"sites":[],"confirmer_reduction":"true"}`},
	`{"sites":[],"day":"2026-02-29"}`:                {`date_parsing ["body","day"] {"sites":[],"day":"2026-02-29"}`},
	`{"sites":[],"day":20260221}`:                    {`date_type ["body","day"] {"sites":[],"day":20260221}`},
	`{"sites":[],"at":"2026-11-21"}`:                 {`datetime_parsing ["body","at"] {"sites":[],"at":"2026-11-21"}`},
	`{"sites":[],"at":0}`:                            {`datetime_type ["body","at"] {"sites":[],"at":0}`},
	`{"sites":[],"agence_de":"A"}`:                   {`string_pattern_mismatch ["body","agence_de"] {"sites":[],"agence_de":"A"}`},
	`{"sites":[],"agence_de":{}}`:                    {`string_type ["body","agence_de"] {"sites":[],"agence_de":{}}`},
	`{"sites":[],"tags":["a","d",1]}`:                {`literal_error ["body","tags",1] {"sites":[],"tags":["a","d",1]}`, `string_type ["body","tags",2] {"sites":[],"tags":["a","d",1]}`},
	`{"sites":[],"tags":["a","b","c","d"]}`:          {`too_long ["body","tags"] {"sites":[],"tags":["a","b","c","d"]}`},
	`{"sites":[{"external_id":"a","lat":1}]}`:        {`value_error ["body","sites",0] {"external_id":"a","lat":1}`},
	`{"sites":[{"external_id":"a","adresse":{}}]}`:   {`missing ["body","sites",0,"adresse","commune"] {}`},
	`{"sites":[{"external_id":"a","adresse":null}]}`: {`model_attributes_type ["body","sites",0,"adresse"] {"external_id":"a","adresse":null}`},
	`{"sites":[{"external_id":"a b"},{"lat":91,"x":1}],"y":2}`: {
		`string_pattern_mismatch ["body","sites",0,"external_id"] {"external_id":"a b"}`,
		`less_than_equal ["body","sites",1,"lat"] {"lat":91,"x":1}`,
		`extra_forbidden ["body","sites",1,"x"] {"lat":91,"x":1}`,
		`missing ["body","sites",1,"external_id"] {"lat":91,"x":1}`,
		`extra_forbidden ["body","y"] {"sites":[{"external_id":"a b"},{"lat":91,"x":1}],"y":2}`,
	},
}

func TestAllBrokenRulesAreReportedWithTheObjectAroundTheMember(t *testing.T) {
	t.Parallel()
	for text, want := range brokenRules {
		status, got := problemOf(t, errorOf(syncDecoder.DecodeText([]byte(text))))
		if diff := cmp.Diff(want, got); status != 422 || diff != "" {
			t.Errorf("%s: %d\n%s", text, status, diff)
		}
	}
}

func TestALargeObjectIsEchoedAsItsMemberAlone(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat("a", 5000)
	for text, want := range map[string]string{
		`{"sites":[],"proprietes":"` + pad + `","count":0}`: `greater_than_equal ["body","count"] {"count":0}`,
		`{"sites":[],"label":"` + pad + `"}`:                `string_too_long ["body","label"] {}`,
		`{"sites":[{"adresse":{"commune":"` + pad + `"}}]}`: `missing ["body","sites",0,"external_id"] {}`,
	} {
		if _, got := problemOf(t, errorOf(syncDecoder.DecodeText([]byte(text)))); len(got) != 1 || got[0] != want {
			t.Errorf("%.60s: %.200q, want %s", text, got, want)
		}
	}
}

func TestAtMost100RulesAreReported(t *testing.T) {
	t.Parallel()
	type rows struct {
		Sites []site `json:"sites"`
	}
	text := `{"sites":[` + strings.Repeat(`{"x":1},`, 5000) + `{}]}`
	_, got := problemOf(t, errorOf(kit.NewDecoder[rows]().DecodeText([]byte(text))))
	if len(got) != 100 || !strings.HasPrefix(got[99], `missing ["body","sites",49,`) {
		t.Errorf("%d violations, the last %s", len(got), got[len(got)-1])
	}
}

func TestItemsPastTheMostAreNotKept(t *testing.T) {
	t.Parallel()
	text := `{"sites":[` + strings.Repeat(`{"external_id":"a"},`, 100_000) + `{"external_id":"a"}]}`
	got, err := syncDecoder.DecodeText([]byte(text))
	status, violations := problemOf(t, err)
	if status != 422 || len(violations) != 1 || violations[0] != `too_long ["body","sites"] {}` || cap(got.Sites) > 16 {
		t.Errorf("%d %.200q with %d sites kept", status, violations, len(got.Sites))
	}
}

func TestABodyOverTheLimitIs413(t *testing.T) {
	t.Parallel()
	text := []byte(`{"sites":[]}`)
	for limit, want := range map[int64]int{int64(len(text)): 0, int64(len(text)) - 1: tooLarge, 0: tooLarge} {
		r := httptest.NewRequest("POST", "/", bytes.NewReader(text))
		r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, limit)
		if status, _ := problemOf(t, errorOf(syncDecoder.DecodeBody(r))); status != want {
			t.Errorf("%d bytes with a limit of %d: %d, want %d", len(text), limit, status, want)
		}
	}
}

func TestParametersBesideABodyBreakARule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query, text string
		status      int
		want        string
	}{
		{"", `{"sites":[]}`, 0, ""},
		{"x=1", `{"sites":[]}`, 422, `extra_forbidden ["query","x"] {"x":"1"}`},
		{"x=1", `{"sites":3}`, 422, `list_type ["body","sites"] {"sites":3}`},
		{"x=1", `{"sites":`, malformed, ""},
		{"x=%zz", `{"sites":3}`, malformed, ""},
		{"x=%zz", `{"sites":[]}`, malformed, ""},
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(c.text))
		r.URL.RawQuery = c.query
		status, got := problemOf(t, errorOf(syncDecoder.DecodeBody(r)))
		if status != c.status || strings.Join(got, ";") != c.want {
			t.Errorf("?%s with %s: %d %q, want %d %s", c.query, c.text, status, got, c.status, c.want)
		}
	}
}

func TestABodyThatBreaksOffIs400(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("POST", "/", failingReader{})
	if status, _ := problemOf(t, errorOf(syncDecoder.DecodeBody(r))); status != malformed {
		t.Errorf("%d, want 400", status)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, fmt.Errorf("connection reset") }
