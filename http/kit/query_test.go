package kit_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/http/kit"
	"lieudit/schemas/plan"
)

var filterDecoder = kit.NewDecoder[filter]()

func queryDecoder(raw string) (filter, error) {
	r := httptest.NewRequest("GET", "/", nil)
	r.URL.RawQuery = raw
	return filterDecoder.DecodeQuery(r)
}

func TestAQueryIsReadIntoItsStruct(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]filter{
		"q=x":              {Q: "x", Limit: 5, Auto: true, Sort: "nom"},
		"q=%C3%A9t%C3%A9+": {Q: "été ", Limit: 5, Auto: true, Sort: "nom"},
		"q=x&limit=&lat=&sort=&type=&day=&autocomplete=": {Q: "x", Limit: 5, Auto: true, Sort: "nom"}, // as an empty form sends them
		"q=x&limit=20&autocomplete=0&sort=distance":      {Q: "x", Limit: 20, Sort: "distance"},
		"q=x&limit=2e1&autocomplete=false":               {Q: "x", Limit: 20, Sort: "nom"},
		"q=x&lat=-90&lon=1e2":                            {Q: "x", Limit: 5, Auto: true, Sort: "nom", Lat: pointer(-90.0), Lon: pointer(100.0)},
		"q=x&type=street&type=municipality":              {Q: "x", Limit: 5, Auto: true, Sort: "nom", Type: []string{"street", "municipality"}},
		"q=x&type=street,municipality":                   {Q: "x", Limit: 5, Auto: true, Sort: "nom", Type: []string{"street", "municipality"}},
		"q=x&type=,street,&type=":                        {Q: "x", Limit: 5, Auto: true, Sort: "nom", Type: []string{"street"}},
		"q=x&population_min=5&population_max=5":          {Q: "x", Limit: 5, Auto: true, Sort: "nom", Min: pointer[int64](5), Max: pointer[int64](5)},
		"q=x&day=2028-02-29&at=2026-11-21T12%3A00%3A00%2B01:00": {
			Q: "x", Limit: 5, Auto: true, Sort: "nom", Day: plan.Date{Year: 2028, Month: 2, Day: 29}, At: time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC),
		},
	} {
		got, err := queryDecoder(raw)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			status, violations := problemOf(t, err)
			t.Errorf("%s: %d %q\n%s", raw, status, violations, diff)
		}
	}
}

func TestItemsOfARepeatedQueryKeepTheirCommas(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("GET", "/?q=x&ou=2/B&lieux=1/a,&lieux=&lieux=2/c", nil)
	want := filter{Q: "x", Limit: 5, Auto: true, Sort: "nom", Where: spot{2, "B"}, Spots: []spot{{1, "a,"}, {2, "c"}}}
	got, err := filterDecoder.DecodeRepeatedQuery(r)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	r.URL.RawQuery = "q=x&type=street,municipality"
	if got, err := filterDecoder.DecodeRepeatedQuery(r); err != nil || !slices.Equal(got.Type, []string{"street", "municipality"}) {
		t.Errorf("words that hold no commas: %v, %v", got.Type, err)
	}
	r.URL.RawQuery = "q=x&type=street,no&y=1&ou=1/A&ou=2/B&lieux=x"
	status, violations := problemOf(t, errorOf(filterDecoder.DecodeRepeatedQuery(r)))
	for i, want := range []string{`literal_error ["query","type",1]`, `string_type ["query","ou"]`, `value_error ["query","lieux",0]`, `extra_forbidden ["query","y"]`} {
		if status != 422 || len(violations) != 4 || !strings.HasPrefix(violations[i], want+" ") {
			t.Fatalf("%d %q, want %s", status, violations, want)
		}
	}
}

func TestAQueryThatCannotBeReadOrLacksSomethingIs400(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "q=", "q=&q=", "limit=3", "Q=x", "q=aaaaaa", "q=" + strings.Repeat("%C3%A9", 6), "q=aaaaaa&limit=x",
		"q=%zz", "q=x&a=%", "q=x;limit=3", "q=%ff", "%ff=x&q=x",
	} {
		if status, _ := problemOf(t, errorOf(queryDecoder(raw))); status != malformed {
			t.Errorf("%q: %d, want 400", raw, status)
		}
	}
}

func TestAllBrokenRulesOfAQueryAreReported(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][]string{
		"q=x&limit=0":                 {`greater_than_equal ["query","limit"] {"limit":"0","q":"x"}`},
		"q=x&limit=21":                {`less_than_equal ["query","limit"] {"limit":"21","q":"x"}`},
		"q=x&limit=x":                 {`int_parsing ["query","limit"] {"limit":"x","q":"x"}`},
		"q=x&limit=0x5":               {`int_parsing ["query","limit"] {"limit":"0x5","q":"x"}`},
		"q=x&limit=1.5":               {`int_from_float ["query","limit"] {"limit":"1.5","q":"x"}`},
		"q=x&limit=" + nines:          {`int_parsing_size ["query","limit"] {"limit":"` + nines + `","q":"x"}`},
		"q=x&limit=3&limit=4":         {`int_type ["query","limit"] {"limit":["3","4"],"q":"x"}`},
		"q=x&q=y":                     {`string_type ["query","q"] {"q":["x","y"]}`},
		"q=%00":                       {`value_error ["query","q"] {"q":"\u0000"}`},
		"q=x&lat=NaN&lon=inf":         {`float_parsing ["query","lat"] {"lat":"NaN","lon":"inf","q":"x"}`, `float_parsing ["query","lon"] {"lat":"NaN","lon":"inf","q":"x"}`},
		"q=x&lat=1e999&lon=1":         {`finite_number ["query","lat"] {"lat":"1e999","lon":"1","q":"x"}`},
		"q=x&lat=91&lon=1":            {`less_than_equal ["query","lat"] {"lat":"91","lon":"1","q":"x"}`},
		"q=x&lat=1":                   {`value_error ["query"] {"lat":"1","q":"x"}`},
		"q=x&autocomplete=oui":        {`bool_parsing ["query","autocomplete"] {"autocomplete":"oui","q":"x"}`},
		"q=x&type=Street":             {`literal_error ["query","type",0] {"q":"x","type":"Street"}`},
		"q=x&type=street,a&y=1":       {`literal_error ["query","type",1] {"q":"x","type":"street,a","y":"1"}`, `extra_forbidden ["query","y"] {"q":"x","type":"street,a","y":"1"}`},
		"q=x&type=street,a,b":         {`too_long ["query","type"] {"q":"x","type":"street,a,b"}`},
		"q=x&day=2026-02-29":          {`date_parsing ["query","day"] {"day":"2026-02-29","q":"x"}`},
		"q=x&at=0001-01-01T00:00:00Z": {`datetime_parsing ["query","at"] {"at":"0001-01-01T00:00:00Z","q":"x"}`},
		"q=x&at=hier":                 {`datetime_parsing ["query","at"] {"at":"hier","q":"x"}`},
		"q=x&z=1&a=":                  {`extra_forbidden ["query","a"] {"a":"","q":"x","z":"1"}`, `extra_forbidden ["query","z"] {"a":"","q":"x","z":"1"}`},
		"q=x&=1":                      {`extra_forbidden ["query",""] {"":"1","q":"x"}`},
		"q=x&Limit=1":                 {`extra_forbidden ["query","Limit"] {"Limit":"1","q":"x"}`},
		"q=x&sort=pertinence":         {`literal_error ["query","sort"] {"q":"x","sort":"pertinence"}`},
		"q=x&population_min=9&population_max=3&lon=1": {
			`value_error ["query"] {"lon":"1","population_max":"3","population_min":"9","q":"x"}`,
			`value_error ["query"] {"lon":"1","population_max":"3","population_min":"9","q":"x"}`,
		},
	} {
		status, got := problemOf(t, errorOf(queryDecoder(raw)))
		if diff := cmp.Diff(want, got); status != 422 || diff != "" {
			t.Errorf("%s: %d\n%s", raw, status, diff)
		}
	}
}

const nines = "99999999999999999999"

func TestAtMost100ParametersAreReported(t *testing.T) {
	t.Parallel()
	var raw strings.Builder
	raw.WriteString("q=x")
	for i := range 200 {
		raw.WriteString("&x" + strings.Repeat("y", i) + "=")
	}
	if _, got := problemOf(t, errorOf(queryDecoder(raw.String()))); len(got) != 100 {
		t.Errorf("%d violations, want 100", len(got))
	}
}

func TestALargeQueryIsEchoedAsItsParameterAlone(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat("a", 5000)
	for raw, want := range map[string]string{
		"q=x&limit=0&z=" + pad: `greater_than_equal ["query","limit"] {"limit":"0"}`,
		"q=x&z=1&y=" + pad:     `extra_forbidden ["query","z"] {"z":"1"}`,
		"q=x&day=" + pad:       `date_parsing ["query","day"] {}`,
	} {
		_, got := problemOf(t, errorOf(queryDecoder(raw)))
		if !slices.Contains(got, want) || len(strings.Join(got, "")) > 1000 {
			t.Errorf("%.40s…: %.300q, want %s", raw, got, want)
		}
	}
	if _, got := problemOf(t, errorOf(queryDecoder("q=x&lat=1&day="+strings.Repeat("&day=", 1000)))); len(got) != 1 || got[0] != `value_error ["query"] {}` {
		t.Errorf("a rule over several: %.300q", got)
	}
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"q=x&limit=3", "q=%00&lat=1e999", "q=x&type=a,b&type=c", "=&&;=%", "q=x&population_min=9&population_max=3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := queryDecoder(raw)
		status, violations := problemOf(t, err)
		if status == 422 && len(violations) == 0 || status != 0 && status != 400 && status != 422 {
			t.Errorf("%q: %d %q", raw, status, violations)
		}
		if status == 0 && (got.Q == "" || len(got.Q) > 4*5 || got.Limit < 1 || got.Limit > 20 || len(got.Type) > 2 || len(got.BrokenRules()) > 0) {
			t.Errorf("%q is read as %+v", raw, got)
		}
	})
}

func TestAnOpenQueryIgnoresUndeclaredParametersAndKeepsTheRules(t *testing.T) {
	t.Parallel()
	decode := func(raw string) (filter, error) {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.RawQuery = raw
		return filterDecoder.DecodeOpenQuery(r)
	}
	got, err := decode("q=x&index=address&%5B=1")
	if want := (filter{Q: "x", Limit: 5, Auto: true, Sort: "nom"}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if status, violations := problemOf(t, errorOf(decode("q=x&index=address&limit=x"))); status != 422 || len(violations) != 1 {
		t.Errorf("got %d %q", status, violations)
	}
	if status, _ := problemOf(t, errorOf(decode("index=address"))); status != malformed {
		t.Errorf("got %d, want 400", status)
	}
}

func TestAFormKeepsTheCommasOfItsFields(t *testing.T) {
	t.Parallel()
	type form struct {
		Columns []string `json:"columns,omitempty" max:"2"`
		Sort    string   `json:"sort,omitempty" enum:"nom"`
	}
	decoder := kit.NewDecoder[form]()
	got, err := decoder.DecodeForm(map[string][]string{"columns": {"rue, numéro", "ville"}, "other": {"x"}})
	if want := (form{Columns: []string{"rue, numéro", "ville"}}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = decoder.DecodeForm(map[string][]string{"columns": {"a", "b", "c"}, "sort": {"x"}})
	status, violations := problemOf(t, err)
	const input = ` {"columns":["a","b","c"],"sort":"x"}`
	if want := []string{`too_long ["body","columns"]` + input, `literal_error ["body","sort"]` + input}; status != 422 || !slices.Equal(violations, want) {
		t.Errorf("got %d %q, want %q", status, violations, want)
	}
}

func TestAnEmptyValueOfAFixedFormWithoutDefaultBreaksIt(t *testing.T) {
	t.Parallel()
	type form struct {
		Status string   `json:"status,omitempty" enum:"active archived"`
		Code   string   `json:"code,omitempty" pattern:"^[a-z]+$"`
		Sort   string   `json:"sort,omitempty" enum:"nom" default:"nom"`
		Tags   []string `json:"tags,omitempty"`
		Text   string   `json:"text,omitempty" max:"5"`
	}
	decoder := kit.NewDecoder[form]()
	for raw, want := range map[string][]string{
		"status=":                 {`literal_error ["query","status"] {"status":""}`},
		"code=&code=":             {`string_pattern_mismatch ["query","code"] {"code":["",""]}`},
		"code=&status=":           {`literal_error ["query","status"] {"code":"","status":""}`, `string_pattern_mismatch ["query","code"] {"code":"","status":""}`},
		"sort=&tags=&text=":       nil,
		"status=&status=archived": nil,
	} {
		r := httptest.NewRequest("GET", "/?"+raw, nil)
		if _, violations := problemOf(t, errorOf(decoder.DecodeQuery(r))); !slices.Equal(violations, want) {
			t.Errorf("%s: got %q, want %q", raw, violations, want)
		}
		if _, err := decoder.DecodeOpenQuery(r); err != nil {
			t.Errorf("%s: an open query is refused: %v", raw, err)
		}
	}
}

func TestAnIntegerWithoutASignIsRead(t *testing.T) {
	t.Parallel()
	type numbers struct {
		Position uint64 `json:"position"`
	}
	decoder := kit.NewDecoder[numbers]()
	for raw, want := range map[string]*numbers{
		"position=0":                    {Position: 0},
		"position=9223372036854775807":  {Position: 1<<63 - 1},
		"position=1e3":                  {Position: 1000},
		"position=-1":                   nil,
		"position=18446744073709551616": nil,
	} {
		r := httptest.NewRequest("GET", "/?"+raw, nil)
		got, err := decoder.DecodeQuery(r)
		if (err == nil) != (want != nil) {
			t.Errorf("%s: %v", raw, err)
		}
		if want != nil && got != *want {
			t.Errorf("%s: got %+v, want %+v", raw, got, *want)
		}
	}
}
