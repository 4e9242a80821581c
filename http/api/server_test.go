package api_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"lieudit/http/api"
	"lieudit/schemas/access"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, plan.Paris)

// fakeKeyRing is a key ring that holds what it was given.
type fakeKeyRing struct {
	keys    map[token.Hash]access.Grant
	isStale bool
}

func (r *fakeKeyRing) FindKey(h token.Hash, _ time.Time) (access.Grant, bool) {
	g, ok := r.keys[h]
	return g, ok
}
func (r *fakeKeyRing) IsFresh(time.Time) bool { return !r.isStale }

// testAPI is an API with one key of every plan and kind.
type testAPI struct {
	http.Handler
	keyRing *fakeKeyRing
	logs    *strings.Builder
	keys    map[string]string // "GROWTH secret" -> token
}

func newTestAPI(t testing.TB) *testAPI {
	t.Helper()
	b := &testAPI{keyRing: &fakeKeyRing{keys: map[token.Hash]access.Grant{}}, logs: &strings.Builder{}, keys: map[string]string{}}
	for _, p := range plan.All() {
		for _, k := range []token.Kind{token.Secret, token.Publishable} {
			text := token.DefaultPrefixes.New(k)
			b.keys[string(p.Name)+" "+string(k)] = text
			b.keyRing.keys[token.HashOf(text)] = access.Grant{
				KeyID: "k-" + string(k), Kind: k, Hint: token.DefaultPrefixes.Hint(text), Account: "acme",
				Origins: []string{"https://a.fr", "https://*.b.fr"},
				Terms:   access.Terms{Plan: p.Name, Quota: p.DefaultQuota, Anchor: plan.Date{Year: 2026, Month: 1, Day: 31}},
			}
		}
	}
	b.Handler = api.New(api.Dependencies{
		KeyRing: b.keyRing, TokenPrefixes: token.DefaultPrefixes, Now: func() time.Time { return noon }, Version: "1.2.3",
		Log: slog.New(slog.NewTextHandler(b.logs, nil)),
	})
	return b
}

// send sends a request with a key ("" for none), and headers as name, value, name, value…
func (b *testAPI) send(method, target, key string, headers ...string) *httptest.ResponseRecorder {
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

func readBody(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	text, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestVersionNeedsNoKey(t *testing.T) {
	t.Parallel()
	w := newTestAPI(t).send("GET", "/services/v1/version", "", "Authorization", "Basic x")
	if got, want := readBody(t, w), "{\"version\":\"1.2.3\"}\n"; w.Code != 200 || got != want {
		t.Errorf("got %d %s, want 200 %s", w.Code, got, want)
	}
}

func TestMeTellsWhatTheKeyGives(t *testing.T) {
	t.Parallel()
	b := newTestAPI(t)
	got := readBody(t, b.send("GET", "/services/v1/me", "GROWTH secret"))
	want := `{"client":"acme","plan":"GROWTH","cle":{"id":"k-secret","hint":"` + token.DefaultPrefixes.Hint(b.keys["GROWTH secret"]) + `","type":"secret"},` +
		`"quota":{"limite":500000,"utilise":0,"restant":500000,"debut":"2026-10-31T00:00:00+01:00","fin":"2026-11-30T00:00:00+01:00"},` +
		`"sites":{"capacite":2000,"plafond":2200},"referentiels":{"maximum":25}}` + "\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
