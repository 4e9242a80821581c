package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/queries/locations/search"
	"lieudit/schemas/geo"
	"lieudit/schemas/grant"
	"lieudit/schemas/locations"
	"lieudit/schemas/token"
)

// fakeSearch is a search that returns a fixed result and records its queries.
type fakeSearch struct {
	hits    []search.Hit
	next    string
	queries []search.Query
}

func (e *fakeSearch) Count(_ context.Context, q search.Query, _ []search.Facet) (search.Counts, error) {
	return search.Counts{Total: len(e.hits)}, q.Validate()
}

func (e *fakeSearch) Search(_ context.Context, q search.Query) (search.Result, error) {
	e.queries = append(e.queries, q)
	if q.After == "lost" {
		return search.Result{}, search.ErrInvalidCursor
	}
	return search.Result{Hits: e.hits, Next: e.next}, nil
}

// newSearchAPI is a testAPI with e as its search.
func newSearchAPI(t testing.TB, e *fakeSearch) *testAPI {
	t.Helper()
	b := newTestAPI(t)
	b.replaceHandler(func(p *fakeParts) { p.locations.Search = e })
	return b
}

// searchAsPage searches with a publishable key and an origin, as a web page does.
func (b *testAPI) searchAsPage(t *testing.T, query string) (int, string) {
	w := b.send("GET", searchURL+query, "STARTER publishable", "Origin", "https://a.fr")
	return w.Code, readBody(t, w)
}

func (b *testAPI) searchAsServer(t *testing.T, query string) (int, string) {
	w := b.send("GET", searchURL+query, "STARTER secret")
	return w.Code, readBody(t, w)
}

// newMarkedSite is a site in which every member has a value that no other member has. marks are their texts, by member.
func newMarkedSite(t *testing.T) (s locations.Site, marks map[string]string) {
	t.Helper()
	marks = map[string]string{}
	n := 0
	var fill func(v reflect.Value, name string)
	fill = func(v reflect.Value, name string) {
		n++
		mark := fmt.Sprintf("mark%d", 1000+n)
		switch v.Kind() {
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() {
				v.Set(reflect.ValueOf(time.Date(1900+n, 1, 2, 3, 4, 5, 0, time.UTC)))
				marks[name] = fmt.Sprint(1900+n, "-01-02")
				return
			}
			for i := range v.NumField() {
				field := v.Type().Field(i)
				json, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				fill(v.Field(i), strings.TrimPrefix(name+"."+json, "."))
			}
			return
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), name)
			return
		case reflect.Slice:
			if v.Type() == reflect.TypeFor[json.RawMessage]() {
				v.SetBytes([]byte(`{"x":"` + mark + `"}`))
			} else {
				v.Set(reflect.ValueOf([]string{mark}))
			}
		case reflect.String:
			v.SetString(mark)
		case reflect.Float64:
			mark = fmt.Sprintf("0.%d", 55500+n)
			v.SetFloat(0.555 + float64(n)/100000)
		case reflect.Int64:
			mark = fmt.Sprint(777000 + n)
			v.SetInt(int64(777000 + n))
		case reflect.Bool:
			v.SetBool(true)
			return
		default:
			t.Fatalf("a site has a %s: say how it is marked", v.Kind())
		}
		marks[name] = mark
	}
	fill(reflect.ValueOf(&s).Elem(), "")
	return s, marks
}

// publicFields are the members that a publishable key may see.
var publicFields = []string{"nom", "adresse", "lat", "lon", "horaires", "telephone", "site_web", "tags", "distance"}

func TestAPublishableKeySeesThePublicMembersAlone(t *testing.T) {
	t.Parallel()
	s, marks := newMarkedSite(t)
	e := &fakeSearch{hits: []search.Hit{{Site: s, Distance: 12.5}}, next: "after " + s.ExternalID}
	b := newSearchAPI(t, e)
	for _, query := range []string{
		"", "?format=geojson", "?q=x", "?sort=nom", "?sort=pertinence&q=x", "?lat=1&lon=2&sort=distance", "?lat=1&lon=2&format=geojson&radius=5",
		"?bbox=1,2,3,4", "?referentiel=" + strings.ToLower(s.Referential), "?tags=a,b", "?limit=1",
	} {
		status, got := b.searchAsPage(t, query)
		if status != 200 || !strings.Contains(got, marks["nom"]) {
			t.Fatalf("%s: %d %s", query, status, got)
		}
		for fact, mark := range marks {
			shown := strings.Contains(got, mark)
			first, _, _ := strings.Cut(fact, ".")
			if want := slices.Contains(publicFields, first); shown != want {
				t.Errorf("%s: %s is shown: %v, want %v in %s", query, fact, shown, want, got)
			}
		}
		var answer struct {
			Results  []map[string]any
			Features []struct{ Properties map[string]any }
		}
		if err := json.Unmarshal([]byte(got), &answer); err != nil {
			t.Fatal(err)
		}
		for _, f := range answer.Features {
			answer.Results = append(answer.Results, f.Properties)
		}
		for member := range answer.Results[0] {
			if !slices.Contains(publicFields, member) {
				t.Errorf("%s: a page sees %s", query, member)
			}
		}
	}
	for _, q := range e.queries {
		if q.MatchExternalIDs || q.Status != "" || q.Account != "acme" {
			t.Errorf("a page is searched for as %+v", q)
		}
	}
}

func TestASecretKeySeesTheWholeSite(t *testing.T) {
	t.Parallel()
	s, marks := newMarkedSite(t)
	b := newSearchAPI(t, &fakeSearch{hits: []search.Hit{{Site: s, Distance: 1234.5}}})
	for _, query := range []string{"?lat=1&lon=2", "?lat=1&lon=2&format=geojson"} {
		status, got := b.searchAsServer(t, query)
		for fact, mark := range marks {
			if status != 200 || !strings.Contains(got, mark) {
				t.Errorf("%s: %d, no %s in %s", query, status, fact, got)
			}
		}
		if !strings.Contains(got, `"distance":1235`) {
			t.Errorf("%s: no distance in whole metres in %s", query, got)
		}
	}
}

func TestTheSearchQueryIsThatOfTheRequest(t *testing.T) {
	t.Parallel()
	e := &fakeSearch{}
	b := newSearchAPI(t, e)
	status, got := b.searchAsServer(t, "?q=pain&lat=44.5&lon=3.5&radius=700&bbox=1,2,3,4&referentiel=shops&tags=a&tags=b,c&statut=tous&sort=nom&limit=7")
	expected := search.Query{
		Account: "acme", Text: "pain", Center: &geo.Point{Lat: 44.5, Lon: 3.5}, Radius: 700, Box: &search.Box{West: 1, South: 2, East: 3, North: 4},
		Referential: "shops", Tags: []string{"a", "b", "c"}, Status: "tous", Sort: "nom", Limit: 7, MatchExternalIDs: true,
	}
	if status != 200 || strings.TrimSpace(got) != nothingFound || !reflect.DeepEqual(e.queries[0], expected) {
		t.Errorf("%d %s, asked %+v", status, got, e.queries[0])
	}
	if b.searchAsServer(t, "?lat=1&lon=2"); e.queries[1].Radius != 10_000 || e.queries[1].Limit != 20 {
		t.Errorf("defaults are %+v", e.queries[1])
	}
	for _, query := range []string{"?radius=5", "?sort=distance", "?lat=1", "?near=x&lat=1&lon=2", "?bbox=1", "?bbox=3,4,1,2", "?lat=1&lon=2&radius=0", "?lat=1&lon=2&radius=100001"} {
		if status, got := b.searchAsServer(t, query); status != 422 {
			t.Errorf("%s: %d %s", query, status, got)
		}
	}
	if status, _ := b.searchAsServer(t, "?near=Mende"); status != 500 {
		t.Errorf("without addresses near is %d", status)
	}
	if status, got := b.searchAsPage(t, "?statut=actif"); status != 422 || !strings.Contains(got, `"statut"`) {
		t.Errorf("a page asks for statut: %d %s", status, got)
	}
	if len(e.queries) != 2 {
		t.Errorf("%d questions, want 2", len(e.queries))
	}
}

// TestACursorIsOfOneSearch: a cursor is valid for the account and the kind of key that got it, and for the same search. It
// does not show the site that the page ended with.
func TestACursorIsOfOneSearch(t *testing.T) {
	t.Parallel()
	s, _ := newMarkedSite(t)
	e := &fakeSearch{hits: []search.Hit{{Site: s}}, next: "the place of the last hit"}
	b := newSearchAPI(t, e)
	cursorOf := func(text string) string {
		var answer struct{ Curseur string }
		if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Curseur == "" || strings.Contains(answer.Curseur, "place") {
			t.Fatalf("%v in %s", err, text)
		}
		return url.QueryEscape(answer.Curseur)
	}
	_, first := b.searchAsPage(t, "?q=pain&limit=3&lat=1&lon=2")
	cursor := cursorOf(first)
	if status, got := b.searchAsPage(t, "?lon=2&lat=1&q=pain&limit=9&curseur="+cursor); status != 200 || e.queries[len(e.queries)-1].After != e.next {
		t.Errorf("%d %s, asked %+v", status, got, e.queries)
	}
	asked := len(e.queries)
	for _, query := range []string{"?q=pains&lat=1&lon=2", "?q=pain", "?q=pain&lat=1&lon=2&radius=9", "?q=pain&lat=1&lon=2&format=geojson"} {
		if status, got := b.searchAsPage(t, query+"&curseur="+cursor); status != 422 || !strings.Contains(got, `["query","curseur"]`) {
			t.Errorf("%s: %d %s", query, status, got)
		}
	}
	for _, wrong := range []string{"x", "%25", cursor[:len(cursor)-2], cursor[2:], cursor + "AA"} {
		if status, got := b.searchAsPage(t, "?q=pain&lat=1&lon=2&curseur="+wrong); status != 422 || !strings.Contains(got, "not a cursor that was given") {
			t.Errorf("%s: %d %s", wrong, status, got)
		}
	}
	if status, _ := b.searchAsServer(t, "?q=pain&lat=1&lon=2&curseur="+cursor); status != 422 {
		t.Errorf("a page's cursor opens a secret key's: %d", status)
	}
	other := b.keyRing.keys[token.HashOf(b.keys["STARTER publishable"])]
	other.Account = "other"
	b.keyRing.keys[token.HashOf(b.keys["STARTER publishable"])] = other
	if status, _ := b.searchAsPage(t, "?q=pain&lat=1&lon=2&curseur="+cursor); status != 422 {
		t.Errorf("an account's cursor opens another's: %d", status)
	}
	if len(e.queries) != asked {
		t.Errorf("a wrong cursor came as far as the search: %+v", e.queries[asked:])
	}
	e.next = "lost"
	_, first = b.searchAsServer(t, "?q=x")
	if status, got := b.searchAsServer(t, "?q=x&curseur="+cursorOf(first)); status != 422 {
		t.Errorf("a cursor the search does not know: %d %s", status, got)
	}
}

const searchURL = "/services/v1/locations/search"

// originCases is the table of requests, with the key declaring one origin.
var originCases = []struct {
	sent []string
	kept string
	want string // the refusal's code, or "" when it is let in
}{
	{nil, "https://a.fr", originAbsent},
	{[]string{""}, "https://a.fr", originAbsent},
	{[]string{"null"}, "https://a.fr", originRefused},
	{[]string{"https://a.fr"}, "https://a.fr", ""},
	{[]string{"HTTPS://A.FR"}, "https://a.fr", ""},
	{[]string{"http://a.fr"}, "https://a.fr", originRefused},
	{[]string{"https://a.fr:443"}, "https://a.fr", ""},
	{[]string{"https://a.fr:8443"}, "https://a.fr", originRefused},
	{[]string{"https://a.fr."}, "https://a.fr", originRefused},
	{[]string{"https://a.fr/"}, "https://a.fr", originRefused},
	{[]string{"https://a.fr/path"}, "https://a.fr", originRefused},
	{[]string{"https://x.a.fr"}, "https://*.a.fr", ""},
	{[]string{"https://y.x.a.fr"}, "https://*.a.fr", ""},
	{[]string{"https://a.fr"}, "https://*.a.fr", originRefused},
	{[]string{"https://evila.fr"}, "https://*.a.fr", originRefused},
	{[]string{"https://a.fr.evil.com"}, "https://a.fr", originRefused},
	{[]string{"https://xn--caf-dma.fr"}, "https://xn--caf-dma.fr", ""},
	{[]string{"https://a.fr", "https://a.fr"}, "https://a.fr", originRefused},
	{[]string{"", ""}, "https://a.fr", originRefused},
	{[]string{"", "https://a.fr"}, "https://a.fr", originRefused},
}

func TestOriginsThroughTheAPI(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	declared := map[string]string{}
	declare := func(kept string) string {
		if declared[kept] == "" {
			declared[kept] = token.DefaultPrefixes.New(token.Publishable)
			b.keyRing.keys[token.HashOf(declared[kept])] = grant.Grant{
				Kind: token.Publishable, Account: "acme", Origins: []string{kept}, Terms: grant.Terms{Plan: "STARTER"},
			}
		}
		return declared[kept]
	}
	for _, c := range originCases {
		headers := []string{"Authorization", "Bearer " + declare(c.kept)}
		for _, o := range c.sent {
			headers = append(headers, "Origin", o)
		}
		w := b.send("GET", searchURL, "", headers...)
		if c.want == "" {
			expectResponse(t, strings.Join(c.sent, ","), w, 200, nothingFound)
		} else {
			expectResponse(t, strings.Join(c.sent, ","), w, 403, `"code":"`+c.want+`"`)
		}
		if got := w.Header()["Access-Control-Allow-Origin"]; len(got) != 1 || got[0] != "*" {
			t.Errorf("Origin %q: Access-Control-Allow-Origin is %q, want one *", c.sent, got)
		}
		if w.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("Origin %q: credentials are allowed", c.sent)
		}
	}
}

func TestASecretKeyNeedsNoOrigin(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	expectResponse(t, "none", b.send("GET", searchURL, "GROWTH secret"), 200, nothingFound)
	expectResponse(t, "any", b.send("GET", searchURL, "GROWTH secret", "Origin", "https://nowhere.fr"), 200, nothingFound)
}

func TestPreflightIsAnsweredOnEveryPath(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	for _, target := range []string{searchURL, "/services/v1/me", "/services/v1/version", "/services/v1/nowhere", "/", "//x", searchURL + "/"} {
		w := b.send("OPTIONS", target, "", "Origin", "https://x.fr", "Access-Control-Request-Method", "GET")
		want := http.Header{
			"Access-Control-Allow-Origin":  {"*"},
			"Access-Control-Allow-Methods": {"GET, POST, PUT, PATCH, DELETE"},
			"Access-Control-Allow-Headers": {"Authorization, Content-Type"},
			"Access-Control-Max-Age":       {"7200"},
		}
		if w.Code != 204 || w.Body.Len() != 0 || len(w.Header()) != len(want) {
			t.Errorf("OPTIONS %s: %d %q %v", target, w.Code, w.Body, w.Header())
		}
		for name, value := range want {
			if got := w.Header().Get(name); got != value[0] {
				t.Errorf("OPTIONS %s: %s is %q, want %q", target, name, got, value[0])
			}
		}
	}
}

// TestWebPagesCanReadTheSearchAndItsRefusals: the header is on every answer of the search path and on every 403 of a
// publishable key, and on nothing else.
func TestWebPagesCanReadTheSearchAndItsRefusals(t *testing.T) {
	t.Parallel()
	b, stale := newTestAPI(t), newTestAPI(t)
	stale.keyRing.isStale = true
	for _, c := range []struct {
		b                   *testAPI
		method, target, key string
		status              int
		open                bool
	}{
		{b, "GET", searchURL, "", 401, true},
		{b, "GET", searchURL, "DISCOVERY secret", 403, true},
		{b, "GET", searchURL, "GROWTH secret", 200, true},
		{b, "GET", searchURL + "?x=1", "GROWTH secret", 422, true},
		{b, "GET", searchURL + "?q=%zz", "GROWTH secret", 400, true},
		{b, "POST", searchURL, "GROWTH secret", 405, true},
		{b, "HEAD", searchURL, "GROWTH secret", 405, true},
		{stale, "GET", searchURL, "GROWTH secret", 503, true},
		{b, "GET", "/services/v1/me", "GROWTH publishable", 403, true},
		{b, "GET", "/services/v1/nowhere", "GROWTH publishable", 403, true},
		{stale, "GET", "/services/v1/me", "GROWTH publishable", 503, false},
		{b, "GET", "/services/v1/me", "GROWTH secret", 200, false},
		{b, "GET", "/services/v1/me", "", 401, false},
		{b, "GET", "/services/v1/version", "", 200, false},
		{b, "GET", "/services/v1/route/compute", "GROWTH secret", 403, false},
		{b, "GET", "/services/v1/nowhere", "GROWTH secret", 404, false},
		{b, "GET", searchURL + "/", "GROWTH secret", 404, false},
		{b, "GET", "/services/v1/locations%2Fsearch", "GROWTH secret", 404, false},
	} {
		w := c.b.send(c.method, c.target, c.key, "Origin", "https://nowhere.fr")
		if got := w.Header().Get("Access-Control-Allow-Origin") == "*"; w.Code != c.status || got != c.open {
			t.Errorf("%s %s with %s: %d and readable by pages %v, want %d and %v", c.method, c.target, c.key, w.Code, got, c.status, c.open)
		}
	}
}
