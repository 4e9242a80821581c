package main

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/deadlinetest"
)

//go:embed testdata/browser/page.html
var page []byte

// browser is a real one, which finds the hosts of exemple.fr here, behind TLS: the service at api, the page at all others.
type browser struct {
	path, rules, profile string
	mu                   sync.Mutex
	preflights           []string // what browsers asked before: method, headers
}

// chromium is the browser on this machine.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("LIEUDIT_CHECK") == "1" {
		t.Fatal("no browser: apt-get install chromium")
	}
	t.Skip("no browser: install Chromium")
	return ""
}

func openBrowser(t *testing.T, api string) *browser {
	t.Helper()
	b := &browser{path: chromium(t), profile: t.TempDir()}
	target, err := url.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	service := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	secure := func(h http.HandlerFunc) string {
		s := httptest.NewTLSServer(h)
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	shown := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(page)
	}
	atAPI := secure(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			b.mu.Lock()
			b.preflights = append(b.preflights, r.Header.Get("Access-Control-Request-Method")+" "+r.Header.Get("Access-Control-Request-Headers"))
			b.mu.Unlock()
		}
		if r.URL.Path == "/page" { // the one page that is of the API's own origin
			shown(w, r)
			return
		}
		service.ServeHTTP(w, r)
	})
	b.rules = fmt.Sprintf("MAP api.exemple.fr:443 %s,MAP *:443 %s", atAPI, secure(shown))
	return b
}

// question is one request of the page's script, and answer what the script gets to see.
type question struct {
	Name    string            `json:"name"`
	URL     string            `json:"url"`
	Method  string            `json:"method,omitempty"`
	Mode    string            `json:"mode,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
}

type answer struct {
	Name, Type, Body, Error string
	Status                  int
}

var written = regexp.MustCompile(`SEEN([A-Za-z0-9+/=]*)NEES`)

// visit opens a page and returns what its script saw, by question.
func (b *browser) visit(t *testing.T, address string, questions ...question) map[string]answer {
	t.Helper()
	list, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), b.path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--no-proxy-server",
		"--ignore-certificate-errors", "--user-data-dir="+b.profile, "--host-resolver-rules="+b.rules,
		"--timeout=30000", "--virtual-time-budget=20000", "--dump-dom", address+"#"+url.PathEscape(string(list)))
	var complaints strings.Builder
	cmd.Stderr = &complaints
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("browser: %v\n%s", err, complaints.String())
	}
	found := written.FindSubmatch(dom)
	if found == nil {
		t.Fatalf("the page at %s saw nothing:\n%s\n%s", address, dom, complaints.String())
	}
	text, err := base64.StdEncoding.DecodeString(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	var all []answer
	if err := json.Unmarshal(text, &all); err != nil || len(all) != len(questions) {
		t.Fatalf("%d answers to %d questions: %v", len(all), len(questions), err)
	}
	seen := map[string]answer{}
	for _, a := range all {
		seen[a.Name] = a
	}
	return seen
}

const searched = "https://api.exemple.fr/services/v1/locations/search"

// TestPagesInABrowser holds the service to what scripts of web pages get to see in a real browser.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a browser takes its time")
	}
	st := raise(t, func(*service.Config) {})
	b := openBrowser(t, st.api)
	st.run(t, "account open Boutiques --plan STARTER --id boutiques")
	key := st.run(t, "key issue boutiques --kind publishable --label page --origin https://www.exemple.fr --origin https://*.exemple.fr")
	bearer := map[string]string{"Authorization": "Bearer " + strings.TrimSpace(key)}
	within(t, deadlinetest.Hang, "the key opens the search", func() bool {
		resp := st.search(t, bearer["Authorization"], "https://www.exemple.fr")
		return resp == http.StatusOK
	})
	search := question{Name: "search", URL: searched + "?q=mende", Headers: bearer}
	me := question{Name: "me", URL: "https://api.exemple.fr/services/v1/me", Headers: bearer}
	write := question{Name: "write", URL: "https://api.exemple.fr/services/v1/locations/referentiels", Method: "POST",
		Headers: map[string]string{"Authorization": bearer["Authorization"], "Content-Type": "application/json"}, Body: `{"code":"a"}`}
	keyless := question{Name: "keyless", URL: searched}
	secret := question{Name: "secret", URL: me.URL, Headers: map[string]string{
		"Authorization": "Bearer " + strings.TrimSpace(st.run(t, "key issue boutiques --kind secret --label server")),
	}}

	seen := b.visit(t, "https://www.exemple.fr/magasins", search, me, write, keyless, secret)
	sees(t, seen["search"], 200, "status")
	sees(t, seen["me"], 403, "cle_publiable_hors_perimetre")
	sees(t, seen["write"], 403, "cle_publiable_hors_perimetre")
	sees(t, seen["keyless"], 401, "API key required")
	if a := seen["secret"]; a.Error == "" { // a secret key has no business in a page, and gets nothing there
		t.Errorf("the script reads %+v with a secret key", a)
	}
	sees(t, b.visit(t, "https://lyon.exemple.fr/", search)["search"], 200, "status")
	sees(t, b.visit(t, "https://www.exemple.com/", search)["search"], 403, "origine_non_autorisee")
	sees(t, b.visit(t, "https://api.exemple.fr/page", search)["search"], 403, "origine_absente") // a page of the API's own origin sends none

	b.mu.Lock()
	defer b.mu.Unlock()
	asked := strings.Join(b.preflights, "\n")
	for _, want := range []string{"GET authorization", "POST authorization,content-type"} {
		if !strings.Contains(asked, want) {
			t.Errorf("the browser never asked before %q: %q", want, asked)
		}
	}
}

// sees checks that a script read an answer of a status whose body holds a word.
func sees(t *testing.T, a answer, status int, word string) {
	t.Helper()
	if a.Error != "" || a.Status != status || !strings.Contains(a.Body, word) {
		t.Errorf("%s: the script sees %+v, want %d with %q", a.Name, a, status, word)
	}
}

// search is the status of a search with a key from an origin.
func (st *stage) search(t *testing.T, authorization, origin string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, st.api+"/locations/search", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", authorization)
	req.Header.Set("Origin", origin)
	resp, err := st.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
