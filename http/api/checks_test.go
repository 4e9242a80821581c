package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/api"
	"lieudit/http/budget"
	"lieudit/http/connlimit"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

const (
	keyRequired  = `{"detail":"API key required. Please provide a valid API key in the Authorization header."}`
	keyInvalid   = `{"detail":"Invalid API key"}`
	unavailable  = `{"detail":"Authentication service unavailable"}`
	notFound     = `{"detail":"Not found"}`
	wrongMethod  = `{"detail":"Method not allowed"}`
	badRequest   = `{"detail":"Request too short or invalid"}`
	noRouting    = `{"detail":"Routing engine unavailable"}`
	nothingFound = `{"status":"no_results","message":"No verified match found","matches":[]}`

	outOfScope    = "cle_publiable_hors_perimetre"
	originAbsent  = "origine_absente"
	originRefused = "origine_non_autorisee"
)

// planInsufficient is the body of the 403 of a plan that does not include a service.
func planInsufficient(plan string) string {
	return `{"detail":"Your plan (` + plan + `) does not have access to this service. Please upgrade your plan."}`
}

// expectResponse checks status and body; want is the whole body, or a word of it.
func expectResponse(t *testing.T, what string, w *httptest.ResponseRecorder, status int, want string) {
	t.Helper()
	got := strings.TrimSuffix(readBody(t, w), "\n")
	if whole := strings.HasPrefix(want, "{"); w.Code != status || whole && got != want || !strings.Contains(got, want) {
		t.Errorf("%s: got %d %s, want %d %s", what, w.Code, got, status, want)
	}
}

func TestTheAuthorizationHeaderIsOneBearerToken(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	good, unknown := b.keys["GROWTH secret"], token.DefaultPrefixes.New(token.Secret)
	for _, c := range []struct {
		headers []string
		status  int
		body    string
	}{
		{nil, 401, keyRequired},
		{[]string{""}, 401, keyRequired},
		{[]string{"Bearer"}, 401, keyRequired},
		{[]string{"Bearer "}, 401, keyRequired},
		{[]string{"Bearer    "}, 401, keyRequired},
		{[]string{good}, 401, keyRequired},
		{[]string{"Basic " + good}, 401, keyRequired},
		{[]string{"Bearer" + good}, 401, keyRequired},
		{[]string{"Bearer\t" + good}, 401, keyRequired},
		{[]string{"Bearer " + good + " x"}, 401, keyRequired},
		{[]string{"Bearer " + good + ", Bearer " + good}, 401, keyRequired},
		{[]string{"Bearer " + good, "Bearer " + good}, 401, keyRequired},
		{[]string{"Token token=" + good}, 401, keyRequired},
		{[]string{"Bearer x"}, 401, keyInvalid},
		{[]string{"Bearer " + good[:len(good)-1]}, 401, keyInvalid},
		{[]string{"Bearer " + good + "0"}, 401, keyInvalid},
		{[]string{"Bearer " + strings.Replace(good, "ld_sk_", "ld_pk_", 1)}, 401, keyInvalid},
		{[]string{"Bearer " + strings.Repeat("a", 5000)}, 401, keyInvalid},
		{[]string{"Bearer é"}, 401, keyInvalid},
		{[]string{"Bearer " + unknown}, 401, keyInvalid},
		{[]string{"Bearer " + token.DefaultPrefixes.New(token.Area)}, 401, keyInvalid},
		{[]string{"Bearer " + good}, 200, `"client":"acme"`},
		{[]string{"bearer " + good}, 200, `"client":"acme"`},
		{[]string{"BEARER   " + good + " "}, 200, `"client":"acme"`},
	} {
		var pairs []string
		for _, h := range c.headers {
			pairs = append(pairs, "Authorization", h)
		}
		expectResponse(t, fmt.Sprintf("%.60q", c.headers), b.send("GET", "/services/v1/me", "", pairs...), c.status, c.body)
	}
}

func TestCustomerAreaTokensAreRefusedEvenIfTheRingHoldsThem(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	text := token.DefaultPrefixes.New(token.Area)
	b.keyRing.keys[token.HashOf(text)] = b.keyRing.keys[token.HashOf(b.keys["GROWTH secret"])]
	expectResponse(t, "area token", b.send("GET", "/services/v1/me", "", "Authorization", "Bearer "+text), 401, keyInvalid)
}

const basePath = "/services/v1"

var (
	unknownKey   = []string{"Authorization", "Bearer " + token.DefaultPrefixes.New(token.Secret)}
	malformedKey = []string{"Authorization", "Bearer x"}
)

// orderCases are requests that break several rules at once, to a fresh key ring or a stale one, and their answers.
var orderCases = []struct {
	fresh               bool
	method, target, key string
	headers             []string
	status              int
	body                string
}{
	// 1. preflight before anything
	{false, "OPTIONS", "/nowhere", "", nil, 204, ""},
	{false, "OPTIONS", basePath + "/me", "", malformedKey, 204, ""},
	{false, "OPTIONS", basePath + "/locations/search", "GROWTH publishable", nil, 204, ""},
	// no key for the version, whatever the ring
	{false, "GET", basePath + "/version?x=1", "", malformedKey, 200, `{"version":"1.2.3"}`},
	// 2. the key's form, before the ring's state and the route
	{false, "GET", basePath + "/nowhere", "", nil, 401, keyRequired},
	{false, "GET", basePath + "/nowhere", "", malformedKey, 401, keyInvalid},
	{true, "POST", basePath + "/version", "", nil, 401, keyRequired},
	{true, "HEAD", basePath + "/version", "", nil, 200, ""},
	{true, "GET", basePath + "/version/", "", nil, 401, keyRequired},
	{true, "GET", "/", "", nil, 401, keyRequired},
	{true, "GET", basePath + "/nowhere", "", unknownKey, 401, keyInvalid},
	// 3. the ring's state, before scope, route, plan and syntax; a stale ring cannot show that a key is unknown
	{false, "GET", basePath + "/me", "", unknownKey, 503, unavailable},
	{false, "GET", basePath + "/nowhere", "GROWTH secret", nil, 503, unavailable},
	{false, "POST", basePath + "/me", "GROWTH publishable", nil, 503, unavailable},
	{false, "GET", basePath + "/route/compute", "DISCOVERY secret", nil, 503, unavailable},
	// 4. scope, then origin, before route, method, plan and syntax
	{true, "GET", basePath + "/nowhere", "GROWTH publishable", nil, 403, outOfScope},
	{true, "POST", basePath + "/locations/search", "GROWTH publishable", nil, 403, outOfScope},
	{true, "GET", basePath + "/me", "GROWTH publishable", []string{"Origin", "https://a.fr"}, 403, outOfScope},
	{true, "GET", basePath + "/route/compute", "DISCOVERY publishable", nil, 403, outOfScope},
	{true, "GET", basePath + "/locations/search?limit=x", "DISCOVERY publishable", nil, 403, originAbsent},
	{true, "GET", basePath + "/locations/search?limit=x", "DISCOVERY publishable", []string{"Origin", "null"}, 403, originRefused},
	{true, "GET", basePath + "/locations/search?limit=x", "DISCOVERY publishable", []string{"Origin", "https://a.fr"}, 403, planInsufficient("DISCOVERY")},
	// 5. route, then method, before the plan
	{true, "GET", basePath + "/route/nowhere", "DISCOVERY secret", nil, 404, notFound},
	{true, "DELETE", basePath + "/route/compute", "DISCOVERY secret", nil, 405, wrongMethod},
	{true, "PUT", basePath + "/me?x=1", "GROWTH secret", nil, 405, wrongMethod},
	// 6. the plan, before syntax
	{true, "GET", basePath + "/locations/search?q=%zz&limit=x", "DISCOVERY secret", nil, 403, planInsufficient("DISCOVERY")},
	{true, "GET", basePath + "/route/compute", "GROWTH secret", nil, 403, planInsufficient("GROWTH")},
	{true, "POST", basePath + "/route/matrix", "STARTER secret", nil, 403, planInsufficient("STARTER")},
	// 7. syntax, before the rules
	{true, "GET", basePath + "/locations/search?q=%zz&limit=x", "GROWTH secret", nil, 400, badRequest},
	{true, "POST", basePath + "/route/compute", "BUSINESS secret", nil, 400, badRequest},
	{true, "GET", basePath + "/route/matrix?origins=3,44", "GROWTH secret", nil, 400, badRequest},
	{true, "GET", basePath + "/locations/search?limit=x&q=" + strings.Repeat("a", 201), "GROWTH secret", nil, 400, badRequest},
	// 9. the rules, then the work
	{true, "GET", basePath + "/locations/search?limit=x", "GROWTH secret", nil, 422, `"int_parsing"`},
	{true, "GET", basePath + "/me?x=1", "GROWTH secret", nil, 422, `"extra_forbidden"`},
	{true, "GET", basePath + "/route/compute?origin=3,44&destination=3,45", "BUSINESS secret", nil, 500, noRouting},
	{true, "GET", basePath + "/route/isochrone?origin=3,44&cost_values=60", "GROWTH secret", nil, 500, noRouting},
	{true, "GET", basePath + "/locations/search", "STARTER secret", nil, 200, nothingFound},
	{true, "GET", basePath + "/locations/search", "STARTER publishable", []string{"Origin", "https://a.fr"}, 200, nothingFound},
}

func TestChecksComeInOrder(t *testing.T) {
	t.Parallel()
	fresh, stale := newTestAPI(t), newTestAPI(t)
	stale.keyRing.isStale = true
	for _, c := range orderCases {
		b := fresh
		if !c.fresh {
			b = stale
		}
		expectResponse(t, c.method+" "+c.target+" with "+c.key, b.send(c.method, c.target, c.key, c.headers...), c.status, c.body)
	}
}

func TestEveryPlanIncludesItsServices(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	for target, want := range map[string]map[string]int{
		"/me":               {"DISCOVERY": 200, "STARTER": 200, "GROWTH": 200, "BUSINESS": 200},
		"/locations/search": {"DISCOVERY": 403, "STARTER": 200, "GROWTH": 200, "BUSINESS": 200},
		"/route/matrix?origins=3,44&destinations=3,45": {"DISCOVERY": 403, "STARTER": 403, "GROWTH": 500, "BUSINESS": 500},
		"/route/isochrone?origin=3,44&cost_values=60":  {"DISCOVERY": 403, "STARTER": 403, "GROWTH": 500, "BUSINESS": 500},
		"/route/nearest?origin=3,44&destinations=3,45": {"DISCOVERY": 403, "STARTER": 403, "GROWTH": 500, "BUSINESS": 500},
		"/route/optimize?stops=3,44&stops=3,45":        {"DISCOVERY": 403, "STARTER": 403, "GROWTH": 500, "BUSINESS": 500},
		"/route/compute?origin=3,44&destination=3,45":  {"DISCOVERY": 403, "STARTER": 403, "GROWTH": 403, "BUSINESS": 500},
	} {
		for plan, status := range want {
			w := b.send("GET", "/services/v1"+target, plan+" secret")
			if w.Code != status {
				t.Errorf("GET %s on %s: %d, want %d", target, plan, w.Code, status)
			}
			if status == 403 {
				expectResponse(t, target, w, 403, planInsufficient(plan))
			}
		}
	}
}

func TestAPlanThatIsNotSoldIncludesNoService(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	hash := token.HashOf(b.keys["GROWTH secret"])
	g := b.keyRing.keys[hash]
	g.Plan = "OLD"
	b.keyRing.keys[hash] = g
	expectResponse(t, "unknown plan", b.send("GET", "/services/v1/me", "GROWTH secret"), 403, planInsufficient("OLD"))
}

// TestAPublishableKeyIsForOneMethodAndPath sends the paths over a connection, as they stand.
func TestAPublishableKeyIsForOneMethodAndPath(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	s := httptest.NewServer(b)
	t.Cleanup(s.Close)
	const search = "/services/v1/locations/search"
	for request, want := range map[string]int{
		"GET " + search:                             200,
		"GET " + search + "?q=x":                    200,
		"GET " + search + "?":                       200,
		"GET http://elsewhere" + search:             200, // the absolute form names the same path
		"HEAD " + search:                            403,
		"POST " + search:                            403,
		"get " + search:                             403,
		"PROPFIND " + search:                        403,
		"GET " + search + "/":                       403,
		"GET /" + search:                            403,
		"GET /services//v1/locations/search":        403,
		"GET /services/v1/locations//search":        403,
		"GET /services/v1/locations%2Fsearch":       403,
		"GET /services/v1/locations/%73earch":       403,
		"GET /services/v1/./locations/search":       403,
		"GET /services/v1/x/../locations/search":    403,
		"GET /services/v1/locations/search;x":       403,
		"GET /services/v1/locations/search%20":      403,
		"GET /services/v1/locations/search%00":      403,
		"GET /services/v1/locations/searching":      403,
		"GET /services/v1/LOCATIONS/search":         403,
		"GET /services/v2/locations/search":         403,
		"GET /locations/search":                     403,
		"GET /services/v1/me":                       403,
		"GET /services/v1/locations/referentiels":   403,
		"POST /services/v1/locations/referentiels":  403,
		"GET /services/v1/address/autocomplete?q=x": 403,
		"GET /services/v1/nowhere":                  403,
		"GET /":                                     403,
	} {
		r := sendRaw(t, s.Listener.Addr().String(), request, "Authorization: Bearer "+b.keys["GROWTH publishable"], "Origin: https://a.fr")
		if r.StatusCode != want {
			t.Errorf("%s: %d, want %d", request, r.StatusCode, want)
		}
		if got := r.Header.Get("Access-Control-Allow-Origin"); got != "*" {
			t.Errorf("%s: Access-Control-Allow-Origin is %q", request, got)
		}
		if r.Header.Get("Location") != "" {
			t.Errorf("%s is sent on to %s", request, r.Header.Get("Location"))
		}
	}
}

// sendRaw sends a request as it is written.
func sendRaw(t *testing.T, addr, request string, headers ...string) *http.Response {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	lines := append([]string{request + " HTTP/1.1", "Host: x", "Connection: close"}, headers...)
	fmt.Fprintf(c, "%s\r\n\r\n", strings.Join(lines, "\r\n"))
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	r.Body.Close()
	return r
}

func TestAPathIsNeverCleanedOrRedirected(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	s := httptest.NewServer(b)
	t.Cleanup(s.Close)
	for _, path := range []string{"//services/v1/me", "/services/v1//me", "/services/v1/me/", "/services/v1/x/../me", "/services/v1/%6de", "/services/v1%2Fme", "/services/v1"} {
		r := sendRaw(t, s.Listener.Addr().String(), "GET "+path, "Authorization: Bearer "+b.keys["GROWTH secret"])
		if r.StatusCode != 404 {
			t.Errorf("GET %s: %d, want 404", path, r.StatusCode)
		}
	}
}

const (
	invalidJSON = `{"sites":[`
	overloaded  = `{"detail":"Service overloaded"}`
	syncPath    = "/locations/referentiels/shops/sites:sync"
)

// padTo is a text of some bytes.
func padTo(text string, bytes int) string { return text + strings.Repeat(" ", bytes-len(text)) }

// TestALargeBodyIsReadOnlyAfterAllChecksBeforeSyntax sends bodies that are no JSON: whether one was read shows in the
// answer, and in what is left of it.
func TestALargeBodyIsReadOnlyAfterAllChecksBeforeSyntax(t *testing.T) {
	t.Parallel()
	const small, large = budget.SmallBody, budget.SmallBody + 1
	spent := &usage.QuotaExceededError{Limit: 1}
	for _, c := range []struct {
		what              string
		method, path, key string
		stale             bool
		room              int64
		refuse            error
		bytes             int
		status            int
		body              string
		told              []string
		unread            bool
	}{
		{"no key", "POST", syncPath, "", false, 1 << 20, nil, large, 401, keyRequired, nil, true},
		{"a stale ring", "POST", syncPath, "GROWTH secret", true, 1 << 20, nil, large, 503, unavailable, nil, true},
		{"out of scope", "POST", syncPath, "GROWTH publishable", false, 1 << 20, nil, large, 403, outOfScope, nil, true},
		{"unknown route", "POST", "/nowhere", "GROWTH secret", false, 1 << 20, nil, large, 404, notFound, []string{"charge 1 POST *", "refund 0"}, true},
		{"wrong method", "POST", "/me", "GROWTH secret", false, 1 << 20, nil, large, 405, wrongMethod, []string{"charge 1 POST *", "refund 0"}, true},
		{"plan", "POST", syncPath, "DISCOVERY secret", false, 1 << 20, nil, large, 403, planInsufficient("DISCOVERY"), []string{"charge 1 POST " + syncRoute, "refund 0"}, true},
		{"at the cap, large", "POST", syncPath, "GROWTH secret", false, 1 << 20, spent, large, 429, "exceeded the rate limit", []string{"check acme POST " + syncRoute}, true},
		{"at the cap, small", "POST", syncPath, "GROWTH secret", false, 1 << 20, spent, small, 400, badRequest, nil, false},
		{"no room", "POST", syncPath, "GROWTH secret", false, small, nil, large, 500, overloaded, []string{"check acme POST " + syncRoute}, true},
		{"no room needed", "POST", syncPath, "GROWTH secret", false, 1, nil, small, 400, badRequest, nil, false},
		{"syntax", "POST", syncPath, "GROWTH secret", false, 1 << 20, nil, large, 400, badRequest, []string{"check acme POST " + syncRoute}, false},
		{"over the limit", "POST", "/address/verify", "GROWTH secret", false, 1 << 21, nil, 1<<20 + 1, 413, "Request body too large",
			[]string{"check acme POST /address/verify", "charge 1 POST /address/verify", "refund 0"}, true},
	} {
		b, meter := newTestAPI(t), &fakeMeter{checkErr: c.refuse}
		b.keyRing.isStale = c.stale
		b.replaceHandler(func(p *fakeParts) {
			p.meter, p.env.Bodies, p.env.Counting = meter, budget.New(c.room, c.room), api.CountAll
		})
		text := strings.NewReader(padTo(invalidJSON, c.bytes))
		w := b.sendBody(c.method, c.path, c.key, text)
		expectResponse(t, c.what, w, c.status, c.body)
		if !slices.Equal(meter.calls, c.told) {
			t.Errorf("%s: the meter was told %q, want %q", c.what, meter.calls, c.told)
		}
		if unread := text.Len() == c.bytes; unread != c.unread {
			t.Errorf("%s: %d of %d bytes were read", c.what, c.bytes-text.Len(), c.bytes)
		}
	}
}

const syncRoute = "/locations/referentiels/{code}/sites:sync"

// sendBody is send with a body.
func (b *testAPI) sendBody(method, path, key string, text io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, api.Base+path, text)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+b.keys[key])
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

// TestExpect100IsAnsweredOnlyOnceTheBodyIsAdmitted has clients that send their bodies only after a 100.
func TestExpect100IsAnsweredOnlyOnceTheBodyIsAdmitted(t *testing.T) {
	t.Parallel()
	b, spent := newTestAPI(t), &usage.QuotaExceededError{Limit: 1}
	for _, c := range []struct {
		key    string
		refuse error
		room   int64
		want   string
	}{
		{"GROWTH publishable", nil, 1 << 20, "HTTP/1.1 403 "},
		{"DISCOVERY secret", nil, 1 << 20, "HTTP/1.1 403 "},
		{"GROWTH secret", spent, 1 << 20, "HTTP/1.1 429 "},
		{"GROWTH secret", nil, 1, "HTTP/1.1 500 "},
		{"GROWTH secret", nil, 1 << 20, "HTTP/1.1 100 "},
	} {
		inner, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		b.replaceHandler(func(p *fakeParts) {
			p.meter, p.env.Bodies = &fakeMeter{checkErr: c.refuse}, budget.New(c.room, c.room)
		})
		s := &http.Server{Handler: b.Handler}
		go connlimit.NewListener(inner, 10, slog.New(slog.DiscardHandler)).Serve(s)
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(conn, "POST %s%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n",
			api.Base, syncPath, b.keys[c.key])
		got := make([]byte, len(c.want))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v; want %q", c.key, got, err, c.want)
		}
		conn.Close()
		s.Close()
	}
}

// budgetRecordingMeter is a meter that records how much of a budget is in use during the work of a request.
type budgetRecordingMeter struct {
	fakeMeter
	*budget.Budget
	used int64
}

func (h *budgetRecordingMeter) Charge(ctx context.Context, wait *waitlimit.Wait, g grant.Grant, endpoint string, n int64) (usage.Charge, error) {
	h.used = h.Status().Used
	return h.fakeMeter.Charge(ctx, wait, g, endpoint, n)
}

func TestTheShareOfABodyIsHeldWhileTheRequestIsAtWork(t *testing.T) {
	t.Parallel()
	b, meter := newTestAPI(t), &budgetRecordingMeter{Budget: budget.New(1<<20, 1<<20)}
	b.replaceHandler(func(p *fakeParts) { p.meter, p.env.Bodies = meter, meter.Budget })
	w := b.sendBody("POST", "/address/verify", "GROWTH secret", strings.NewReader(padTo(`{"q":"x","limit":0}`, 100_000)))
	expectResponse(t, "a rule", w, 422, "greater_than_equal")
	if meter.used != 100_000 || meter.Status().Used != 0 {
		t.Errorf("%d bytes are held at work and %d after it, want 100000 and 0", meter.used, meter.Status().Used)
	}
}
