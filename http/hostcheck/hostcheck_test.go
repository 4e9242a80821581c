package hostcheck_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"lieudit/http/hostcheck"
)

// answer says "served" for a request that is passed on.
var answer = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") })

func newChecker(log io.Writer) *hostcheck.Checker {
	return hostcheck.New(slog.New(slog.NewTextHandler(log, nil)), "--ops-hosts", "ops.example.org:8082", "0.0.0.0:8082", ":8082", "Machine-7", "")
}

func TestOnlyRequestsForTheListenerAreServed(t *testing.T) {
	t.Parallel()
	handler := newChecker(io.Discard).Handler(answer)
	for host, want := range map[string]bool{
		"ops.example.org:8082": true, "ops.example.org": true, "OPS.Example.ORG.:9000": true, "machine-7:8082": true, "MACHINE-7": true,
		"localhost:8082": true, "localhost": true, "LOCALHOST.:1": true,
		"127.0.0.1:8082": true, "127.9.9.9": true, "10.0.0.7:8082": true, "203.0.113.9": true, // no name, so nobody has rebound it
		"[::1]:8082": true, "[::1]": true, "[2001:db8::7]:8082": true, "[fe80::1%25eth0]:8082": true,
		"": true, // HTTP/1.0

		"evil.example:8082": false, "evil.example": false, "ops.example.org.evil.example": false, "localhost.evil.example:8082": false,
		"evil.localhost": false, "example.org": false, "machine-7.evil.example": false,
		"127.0.0.1.evil.example:8082": false, "127.1:8082": false, "0x7f000001": false, "2130706433:8082": false,
		":8082": false, "[]": false, ".": false, "localhost:8082:8082": false, "[evil.example]:8082": false,
	} {
		r := httptest.NewRequest("GET", "/debug/pprof/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if got := w.Body.String() == "served"; got != want {
			t.Errorf("Host %q: got %d %s, want that it is served: %t", host, w.Code, w.Body, want)
		}
		if want {
			continue
		}
		if got, text := w.Code, strings.TrimSpace(w.Body.String()); got != http.StatusMisdirectedRequest || text != `{"detail":"Misdirected Request"}` {
			t.Errorf("Host %q: got %d %s, want 421 in the form of every error", host, got, text)
		}
	}
}

// A health check of HTTP/1.0 sends no Host, and the server of net/http passes it on.
func TestAHealthCheckWithoutAHostIsServed(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(newChecker(io.Discard).Handler(answer))
	t.Cleanup(s.Close)
	for request, want := range map[string]int{
		"GET / HTTP/1.0\r\n\r\n":                               http.StatusOK,
		"GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n":         http.StatusMisdirectedRequest,
		"GET http://evil.example/ HTTP/1.0\r\n\r\n":            http.StatusMisdirectedRequest,
		"GET / HTTP/1.1\r\nConnection: close\r\n\r\n":          http.StatusBadRequest, // by net/http
		"GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n": http.StatusOK,
	} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%q: got %d, want %d", request, response.StatusCode, want)
		}
	}
}

func TestEachRefusedNameIsLoggedOnceAndStrangersCannotFillTheLog(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	handler := newChecker(&log).Handler(answer)
	for i := range 1000 {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = fmt.Sprintf("evil-%d.example", i/2)
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := strings.Count(log.String(), "\n"); n != 16 {
		t.Errorf("got %d lines, want 16", n)
	}
	if n := strings.Count(log.String(), "host=evil-3.example hint=--ops-hosts"); n != 1 {
		t.Errorf("a name is in %d lines, want 1:\n%s", n, log.String())
	}
}

func TestNamesAreSeparatedByCommas(t *testing.T) {
	t.Parallel()
	got, err := hostcheck.ParseNames(" a.example, b.example:8082,, ")
	if want := []string{"a.example", "b.example:8082"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, text := range []string{"http://a.example", "*.example", "a.example b.example", "user@a.example"} {
		if got, err := hostcheck.ParseNames(text); err == nil {
			t.Errorf("%q: got %q, want an error", text, got)
		}
	}
}
