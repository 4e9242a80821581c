package server_test

import (
	"net/http"
	"strings"
	"testing"

	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

const search = "/services/v1/locations/search"

// origins is the table of requests, with the key declaring one origin.
var origins = []struct {
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
	b := newBench(t)
	declared := map[string]string{}
	declare := func(kept string) string {
		if declared[kept] == "" {
			declared[kept] = token.Default.New(token.Publishable)
			b.ring.keys[token.HashOf(declared[kept])] = grant.Grant{
				Kind: token.Publishable, Account: "acme", Origins: []string{kept}, Terms: grant.Terms{Plan: "STARTER"},
			}
		}
		return declared[kept]
	}
	for _, c := range origins {
		headers := []string{"Authorization", "Bearer " + declare(c.kept)}
		for _, o := range c.sent {
			headers = append(headers, "Origin", o)
		}
		w := b.ask("GET", search, "", headers...)
		if c.want == "" {
			expect(t, strings.Join(c.sent, ","), w, 200, nothingFound)
		} else {
			expect(t, strings.Join(c.sent, ","), w, 403, `"code":"`+c.want+`"`)
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
	b := newBench(t)
	expect(t, "none", b.ask("GET", search, "GROWTH secret"), 200, nothingFound)
	expect(t, "any", b.ask("GET", search, "GROWTH secret", "Origin", "https://nowhere.fr"), 200, nothingFound)
}

func TestPreflightIsAnsweredOnEveryPath(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, target := range []string{search, "/services/v1/me", "/services/v1/version", "/services/v1/nowhere", "/", "//x", search + "/"} {
		w := b.ask("OPTIONS", target, "", "Origin", "https://x.fr", "Access-Control-Request-Method", "GET")
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
	b, stale := newBench(t), newBench(t)
	stale.ring.stale = true
	for _, c := range []struct {
		b                   *bench
		method, target, key string
		status              int
		open                bool
	}{
		{b, "GET", search, "", 401, true},
		{b, "GET", search, "DISCOVERY secret", 403, true},
		{b, "GET", search, "GROWTH secret", 200, true},
		{b, "GET", search + "?x=1", "GROWTH secret", 422, true},
		{b, "GET", search + "?q=%zz", "GROWTH secret", 400, true},
		{b, "POST", search, "GROWTH secret", 405, true},
		{b, "HEAD", search, "GROWTH secret", 405, true},
		{stale, "GET", search, "GROWTH secret", 503, true},
		{b, "GET", "/services/v1/me", "GROWTH publishable", 403, true},
		{b, "GET", "/services/v1/nowhere", "GROWTH publishable", 403, true},
		{stale, "GET", "/services/v1/me", "GROWTH publishable", 503, false},
		{b, "GET", "/services/v1/me", "GROWTH secret", 200, false},
		{b, "GET", "/services/v1/me", "", 401, false},
		{b, "GET", "/services/v1/version", "", 200, false},
		{b, "GET", "/services/v1/route/compute", "GROWTH secret", 403, false},
		{b, "GET", "/services/v1/nowhere", "GROWTH secret", 404, false},
		{b, "GET", search + "/", "GROWTH secret", 404, false},
		{b, "GET", "/services/v1/locations%2Fsearch", "GROWTH secret", 404, false},
	} {
		w := c.b.ask(c.method, c.target, c.key, "Origin", "https://nowhere.fr")
		if got := w.Header().Get("Access-Control-Allow-Origin") == "*"; w.Code != c.status || got != c.open {
			t.Errorf("%s %s with %s: %d and readable by pages %v, want %d and %v", c.method, c.target, c.key, w.Code, got, c.status, c.open)
		}
	}
}
