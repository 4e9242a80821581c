package main

import (
	"bufio"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/leveltest"
)

//go:embed testdata/browser/page.html
var pageHTML []byte

// browser is a real browser that resolves every host to this machine, behind TLS: api.exemple.fr is the service, all other
// hosts show the page.
type browser struct {
	path, hostRules, profile string
	mu                       sync.Mutex
	preflights               []string // method and headers that preflight requests announced
}

// findChromium is the path of the browser on this machine.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			leveltest.Need(t, leveltest.Usual, "")
			return path
		}
	}
	leveltest.Need(t, leveltest.Usual, "no browser: apt-get install chromium")
	return ""
}

func openBrowser(t *testing.T, api string) *browser {
	t.Helper()
	b := &browser{path: findChromium(t), profile: t.TempDir()}
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
		w.Write(pageHTML)
	}
	atAPI := secure(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			b.mu.Lock()
			b.preflights = append(b.preflights, r.Header.Get("Access-Control-Request-Method")+" "+r.Header.Get("Access-Control-Request-Headers"))
			b.mu.Unlock()
		}
		if r.URL.Path == "/page" { // a page of the API's own origin
			shown(w, r)
			return
		}
		service.ServeHTTP(w, r)
	})
	b.hostRules = fmt.Sprintf("MAP api.exemple.fr:443 %s,MAP *:443 %s", atAPI, secure(shown))
	return b
}

// pageRequest is one request of the page's script, and pageResponse what the script can read of the answer.
type pageRequest struct {
	Name    string            `json:"name"`
	URL     string            `json:"url"`
	Method  string            `json:"method,omitempty"`
	Mode    string            `json:"mode,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
}

type pageResponse struct {
	Name, Type, Body, Error string
	Status                  int
}

var pageOutputPattern = regexp.MustCompile(`SEEN([A-Za-z0-9+/=]*)NEES`)

// openPage opens a page whose script sends the requests, and returns what the script read, by name of the request.
func (b *browser) openPage(t *testing.T, address string, questions ...pageRequest) map[string]pageResponse {
	t.Helper()
	list, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), b.path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--no-proxy-server",
		"--ignore-certificate-errors", "--user-data-dir="+b.profile, "--host-resolver-rules="+b.hostRules,
		"--timeout=30000", "--virtual-time-budget=20000", "--dump-dom", address+"#"+url.PathEscape(string(list)))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("browser: %v\n%s", err, stderr.String())
	}
	found := pageOutputPattern.FindSubmatch(dom)
	if found == nil {
		t.Fatalf("the page at %s saw nothing:\n%s\n%s", address, dom, stderr.String())
	}
	text, err := base64.StdEncoding.DecodeString(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	var all []pageResponse
	if err := json.Unmarshal(text, &all); err != nil || len(all) != len(questions) {
		t.Fatalf("%d answers to %d questions: %v", len(all), len(questions), err)
	}
	seen := map[string]pageResponse{}
	for _, a := range all {
		seen[a.Name] = a
	}
	return seen
}

const searchURL = "https://api.exemple.fr/services/v1/locations/search"

// TestScriptsReadTheSearchFromAllowedOriginsOnly tests CORS with scripts of web pages in a real browser.
func TestScriptsReadTheSearchFromAllowedOriginsOnly(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	b := openBrowser(t, svc.api)
	svc.runCommand(t, "account open Boutiques --plan STARTER --id boutiques")
	key := svc.runCommand(t, "key issue boutiques --kind publishable --label page --origin https://www.exemple.fr --origin https://*.exemple.fr")
	bearer := map[string]string{"Authorization": "Bearer " + strings.TrimSpace(key)}
	waitUntil(t, "the key opens the search", func() bool {
		status, _ := svc.send(t, strings.TrimSpace(key), "GET /locations/search", "", "Origin: https://www.exemple.fr")
		return status == http.StatusOK
	})
	search := pageRequest{Name: "search", URL: searchURL + "?q=mende", Headers: bearer}
	me := pageRequest{Name: "me", URL: "https://api.exemple.fr/services/v1/me", Headers: bearer}
	write := pageRequest{Name: "write", URL: "https://api.exemple.fr/services/v1/locations/referentiels", Method: "POST",
		Headers: map[string]string{"Authorization": bearer["Authorization"], "Content-Type": "application/json"}, Body: `{"code":"a"}`}
	keyless := pageRequest{Name: "keyless", URL: searchURL}
	secret := pageRequest{Name: "secret", URL: me.URL, Headers: map[string]string{
		"Authorization": "Bearer " + strings.TrimSpace(svc.runCommand(t, "key issue boutiques --kind secret --label server")),
	}}

	seen := b.openPage(t, "https://www.exemple.fr/magasins", search, me, write, keyless, secret)
	checkPageResponse(t, seen["search"], 200, "status")
	checkPageResponse(t, seen["me"], 403, "cle_publiable_hors_perimetre")
	checkPageResponse(t, seen["write"], 403, "cle_publiable_hors_perimetre")
	checkPageResponse(t, seen["keyless"], 401, "API key required")
	if a := seen["secret"]; a.Error == "" { // a script gets no answer with a secret key
		t.Errorf("the script reads %+v with a secret key", a)
	}
	checkPageResponse(t, b.openPage(t, "https://lyon.exemple.fr/", search)["search"], 200, "status")
	checkPageResponse(t, b.openPage(t, "https://www.exemple.com/", search)["search"], 403, "origine_non_autorisee")
	checkPageResponse(t, b.openPage(t, "https://api.exemple.fr/page", search)["search"], 403, "origine_absente") // same origin: the browser sends none

	b.mu.Lock()
	defer b.mu.Unlock()
	asked := strings.Join(b.preflights, "\n")
	for _, want := range []string{"GET authorization", "POST authorization,content-type"} {
		if !strings.Contains(asked, want) {
			t.Errorf("the browser sent no preflight for %q: %q", want, asked)
		}
	}
}

// checkPageResponse checks that a script read an answer of a status whose body holds a word.
func checkPageResponse(t *testing.T, a pageResponse, status int, word string) {
	t.Helper()
	if a.Error != "" || a.Status != status || !strings.Contains(a.Body, word) {
		t.Errorf("%s: the script sees %+v, want %d with %q", a.Name, a, status, word)
	}
}

func TestAPreflightOfTheWholeServerIsAnsweredLikeAnyOther(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	address, _, _ := strings.Cut(strings.TrimPrefix(svc.api, "http://"), "/")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Access-Control-Allow-Origin"); resp.StatusCode != http.StatusNoContent || got != "*" {
		t.Errorf("got %d, Access-Control-Allow-Origin %q; want 204, *", resp.StatusCode, got)
	}
}
