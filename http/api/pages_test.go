package api_test

import (
	"net/http"
	"strings"
	"testing"

	"lieudit/schemas/access"
	"lieudit/schemas/token"
)

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
			b.keyRing.keys[token.HashOf(declared[kept])] = access.Grant{
				Kind: token.Publishable, Account: "acme", Origins: []string{kept}, Terms: access.Terms{Plan: "STARTER"},
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

// TestPagesReadOneSearchPathAndTheirRefusals: the header is on every answer of the search path and on every 403 of a
// publishable key, and on nothing else.
func TestPagesReadOneSearchPathAndTheirRefusals(t *testing.T) {
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
