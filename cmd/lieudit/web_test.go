package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"lieudit/cmd/lieudit/browsertest"
	"lieudit/cmd/lieudit/service"
)

// web is a browser that resolves every host to this machine, behind TLS: api.exemple.fr is the service, all other hosts show
// an empty page.
type web struct {
	browser    *browsertest.Browser
	mu         sync.Mutex
	preflights []string // method and headers that preflight requests announced
}

func openWeb(t *testing.T, api string) *web {
	t.Helper()
	b := &web{}
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
		io.WriteString(w, `<!doctype html><title>Nos magasins</title><link rel="icon" href="data:,">`)
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
	b.browser = browsertest.Start(t, fmt.Sprintf("--host-resolver-rules=MAP api.exemple.fr:443 %s,MAP *:443 %s", atAPI, secure(shown)))
	return b
}

// pageRequest is one request of the page's script, and pageResponse what the script can read of the answer.
type pageRequest struct {
	Name    string            `json:"-"`
	URL     string            `json:"url"`
	Method  string            `json:"method,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
}

type pageResponse struct {
	Name, Type, Body, Error string
	Status                  int
}

// sendRequest sends a request as the script of a store locator does, and returns what the script gets to see.
const sendRequest = `(q => fetch(q.url, {method: q.method || "GET", headers: q.headers || {}, body: q.body}).then(
	async r => JSON.stringify({type: r.type, status: r.status, body: await r.text()}),
	e => JSON.stringify({error: e.name})))(%s)`

// sendFromPage opens a page whose script sends the requests, and returns what the script read, by name of the request.
func (b *web) sendFromPage(t *testing.T, address string, requests ...pageRequest) map[string]pageResponse {
	t.Helper()
	page := b.browser.NewPage(t, browsertest.Options{})
	page.Open(address)
	seen := map[string]pageResponse{}
	for _, r := range requests {
		encoded, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		response := pageResponse{Name: r.Name}
		if err := json.Unmarshal([]byte(fmt.Sprint(page.Eval(fmt.Sprintf(sendRequest, encoded)))), &response); err != nil {
			t.Fatal(err)
		}
		seen[r.Name] = response
	}
	page.Complaints() // of requests to another origin and refusals, which are meant
	return seen
}

const searchURL = "https://api.exemple.fr/services/v1/locations/search"

// TestScriptsReadTheSearchFromAllowedOriginsOnly tests CORS with scripts of web pages in a real browser.
func TestScriptsReadTheSearchFromAllowedOriginsOnly(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	b := openWeb(t, svc.api)
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

	seen := b.sendFromPage(t, "https://www.exemple.fr/magasins", search, me, write, keyless, secret)
	checkPageResponse(t, seen["search"], 200, "status")
	checkPageResponse(t, seen["me"], 403, "cle_publiable_hors_perimetre")
	checkPageResponse(t, seen["write"], 403, "cle_publiable_hors_perimetre")
	checkPageResponse(t, seen["keyless"], 401, "API key required")
	if a := seen["secret"]; a.Error == "" { // a script gets no answer with a secret key
		t.Errorf("the script reads %+v with a secret key", a)
	}
	checkPageResponse(t, b.sendFromPage(t, "https://lyon.exemple.fr/", search)["search"], 200, "status")
	checkPageResponse(t, b.sendFromPage(t, "https://www.exemple.com/", search)["search"], 403, "origine_non_autorisee")
	checkPageResponse(t, b.sendFromPage(t, "https://api.exemple.fr/page", search)["search"], 403, "origine_absente") // same origin: the browser sends none

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
