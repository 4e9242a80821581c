package server_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"lieudit/http/server"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, plan.Paris)

// ring is a key ring that holds what it was given.
type ring struct {
	keys  map[token.Hash]grant.Grant
	stale bool
}

func (r *ring) Find(h token.Hash, _ time.Time) (grant.Grant, bool) { g, ok := r.keys[h]; return g, ok }
func (r *ring) Fresh(time.Time) bool                               { return !r.stale }

// bench is an API with one key of every plan and kind.
type bench struct {
	http.Handler
	ring *ring
	logs *strings.Builder
	keys map[string]string // "GROWTH secret" -> token
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{ring: &ring{keys: map[token.Hash]grant.Grant{}}, logs: &strings.Builder{}, keys: map[string]string{}}
	for _, p := range plan.All() {
		for _, k := range []token.Kind{token.Secret, token.Publishable} {
			text := token.Default.New(k)
			b.keys[string(p.Name)+" "+string(k)] = text
			b.ring.keys[token.HashOf(text)] = grant.Grant{
				Key: "k-" + string(k), Kind: k, Hint: token.Default.Hint(text), Account: "acme",
				Origins: []string{"https://a.fr", "https://*.b.fr"},
				Terms:   grant.Terms{Plan: p.Name, Quota: p.Requests, Anchor: plan.Date{Year: 2026, Month: 1, Day: 31}},
			}
		}
	}
	b.Handler = server.New(server.Parts{
		Ring: b.ring, Tokens: token.Default, Now: func() time.Time { return noon }, Version: "1.2.3",
		Log: slog.New(slog.NewTextHandler(b.logs, nil)),
	})
	return b
}

// ask sends a request with a key ("" for none), and headers as name, value, name, value…
func (b *bench) ask(method, target, key string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+b.keys[key])
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

func sent(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	text, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestVersionNeedsNoKey(t *testing.T) {
	t.Parallel()
	w := newBench(t).ask("GET", "/services/v1/version", "", "Authorization", "Basic x")
	if got, want := sent(t, w), "{\"version\":\"1.2.3\"}\n"; w.Code != 200 || got != want {
		t.Errorf("got %d %s, want 200 %s", w.Code, got, want)
	}
}

func TestMeTellsWhatTheKeyGives(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	got := sent(t, b.ask("GET", "/services/v1/me", "GROWTH secret"))
	want := `{"client":"acme","plan":"GROWTH","cle":{"id":"k-secret","hint":"` + token.Default.Hint(b.keys["GROWTH secret"]) + `","type":"secret"},` +
		`"quota":{"limite":500000,"utilise":0,"restant":500000,"debut":"2026-10-31T00:00:00+01:00","fin":"2026-11-30T00:00:00+01:00"},` +
		`"sites":{"capacite":2000,"plafond":2200},"referentiels":{"maximum":25}}` + "\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
