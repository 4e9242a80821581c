package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lieudit/cmd/lieudit/service"
)

// The first link is shown on a terminal, otherwise it is in a file: many people read what a service prints.
func TestTheFirstStartMakesALinkForTheOperator(t *testing.T) {
	t.Parallel()
	for name, isTerminal := range map[string]bool{"a terminal": true, "no terminal": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, printed, logged := t.TempDir(), &startOutput{ready: make(chan struct{})}, &startOutput{ready: make(chan struct{})}
			start := func(c *service.Config) {
				c.Data, c.IsTerminal, c.Out, c.Log = data, isTerminal, io.MultiWriter(c.Out, printed), slog.New(slog.NewTextHandler(logged, nil))
			}
			svc := startService(t, start)
			waitUntil(t, "the link is shown", func() bool { return strings.Contains(printed.text(), "lieudit login") })
			file := filepath.Join(data, "login-link")
			content, err := os.ReadFile(file)
			if isTerminal != os.IsNotExist(err) {
				t.Fatalf("the file: %v", err)
			}
			link := regexp.MustCompile(`http://localhost:\d+/entree/\S+`).FindString(printed.text() + string(content))
			if !isTerminal {
				if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 || strings.Contains(printed.text(), "ld_ln_") {
					t.Errorf("mode %v, %v; printed: %s", info.Mode(), err, printed.text())
				}
			}
			if !strings.HasPrefix(link, strings.Replace(strings.TrimSuffix(svc.area, "/customer-area/v1"), "127.0.0.1", "localhost", 1)+"/entree/") {
				t.Fatalf("the link is %q, the customer area at %s", link, svc.area)
			}
			cookie := svc.openSession(t, link)
			if status, _ := svc.tryLink(t, link); status != http.StatusUnauthorized {
				t.Errorf("the second time: %d, want 401", status)
			}
			svc.stop()
			svc = startService(t, start)
			if got := svc.statusWithCookie(t, cookie); got != http.StatusOK {
				t.Errorf("the session after a restart: %d, want 200", got)
			}
			if n := strings.Count(printed.text(), "lieudit login"); n != 1 {
				t.Errorf("%d links were shown, want 1: %s", n, printed.text())
			}
			if text := logged.text(); strings.Contains(text, "ld_ln_") || strings.Contains(text, "ld_se_") {
				t.Errorf("the log holds a secret: %s", text)
			}
		})
	}
}

func TestOneOfSeveralInstancesMakesTheFirstLink(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	all := make(chan *testService)
	for range 3 {
		go func() {
			svc, err := tryStartService(t, withNode(n))
			if err != nil {
				t.Error(err)
			}
			all <- svc
		}()
	}
	links, tokens := 0, 0
	for range 3 {
		svc := <-all
		if svc == nil {
			continue
		}
		waitUntil(t, "the instance is ready", func() bool { return svc.isReady(t) })
		svc.stop() // it has written what it writes
		for name, count := range map[string]*int{"login-link": &links, "operator-token": &tokens} {
			if _, err := os.Stat(filepath.Join(svc.data, name)); err == nil {
				*count++
			}
		}
	}
	if links != 1 || tokens != 1 {
		t.Errorf("%d links and %d tokens, want one of each", links, tokens)
	}
}

// A session holds on every instance, and while the log is silent nobody is told that it is invalid.
func TestASessionHoldsOnAllInstances(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	first := startService(t, withNode(n))
	second, err := tryStartService(t, withNode(n))
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the other instance is ready", func() bool { return second.isReady(t) })
	cookie := first.openSession(t, strings.TrimSpace(first.runCommand(t, "login")))
	waitUntil(t, "the other instance knows the session", func() bool { return second.statusWithCookie(t, cookie) == http.StatusOK })
	n.silence.Begin()
	waitUntil(t, "the log is missed", func() bool {
		status, _ := second.send(t, "", "GET "+second.area+"/sessions", "", "Cookie: "+cookie)
		if status == http.StatusUnauthorized {
			t.Fatal("the session is said to be invalid")
		}
		return status == http.StatusServiceUnavailable
	})
	if status, _ := second.tryLink(t, "ld_ln_00000000000000000000000000000000003nuSIV"); status == http.StatusCreated {
		t.Errorf("a link while the log is silent: %d", status)
	}
	n.silence.End()
	if got := second.statusWithCookie(t, cookie); got != http.StatusOK {
		t.Errorf("after the silence: %d, want 200", got)
	}
	second.operator = first.operator
	second.runCommand(t, "session end --all")
	waitUntil(t, "the session has ended at the first instance", func() bool { return first.statusWithCookie(t, cookie) == http.StatusUnauthorized })
}

// An older program that runs next to this one would pass over sessions on the log, so there are none.
func TestALogOfAnOlderFormatHasNoSessions(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	writeAsOlderProgram(t, n.journal)
	svc := startService(t, withNode(n))
	for _, line := range []string{"login", "invite --role auditor"} {
		if code, _, stderr := svc.tryCommand(t, line); code != 1 || !strings.Contains(stderr, "mise_a_niveau_inachevee") || !strings.Contains(stderr, "lieudit upgrade finish") {
			t.Errorf("%s: exit %d, %s; want what to do", line, code, stderr)
		}
	}
	if status, cookie := svc.tryLink(t, svc.operator); status != http.StatusConflict || cookie != "" {
		t.Errorf("the token: %d %s, want 409", status, cookie)
	}
	if _, err := os.Stat(filepath.Join(svc.data, "login-link")); err == nil {
		t.Error("a link was made")
	}
	svc.runCommand(t, "upgrade finish --yes")
	svc.openSession(t, strings.TrimSpace(svc.runCommand(t, "login")))
}

// With DNS rebinding a web page would act in the session of its visitor: the Host header has the name of the page.
func TestTheCustomerAreaAnswersToItsOwnNamesAlone(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(c *service.Config) {
		c.AreaURL, c.PeerURL = &url.URL{Scheme: "https", Host: "espace.exemple.fr"}, "http://lieudit-a:8081"
	})
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"espace.exemple.fr": 401, "ESPACE.exemple.fr:443": 401, "lieudit-a:8081": 401, "127.0.0.1": 401, "localhost:1": 401, "[::1]:8081": 401, machine: 401,
		"evil.example": 421, "espace.exemple.fr.evil.example": 421, "exemple.fr": 421,
	} {
		for _, path := range []string{"/customer-area/v1/sessions", "/peer/v1/vintage/x"} { // the pages have one name alone
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(svc.area, "/customer-area/v1")+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			resp, err := svc.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := resp.StatusCode; (got == 421) != (want == 421) {
				t.Errorf("%s of %s: %d, want %d", path, host, got, want)
			}
		}
	}
	if link := svc.runCommand(t, "login"); !strings.HasPrefix(link, "https://espace.exemple.fr/entree/ld_ln_") {
		t.Errorf("the link is %s", link)
	}
}

// tryLink opens a session with a link or a token, and returns the status and, after 201, the cookie as a browser sends it.
func (svc *testService) tryLink(t *testing.T, proof string, headers ...string) (status int, cookie string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, svc.area+"/sessions", strings.NewReader(fmt.Sprintf(`{"preuve":%q}`, path.Base(proof))))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	resp, err := svc.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for _, c := range resp.Cookies() {
		cookie = c.Name + "=" + c.Value
	}
	return resp.StatusCode, cookie
}

// openSession opens a session, which must succeed, and returns its cookie.
func (svc *testService) openSession(t *testing.T, proof string) string {
	t.Helper()
	var cookie string
	waitUntil(t, "the link opens a session", func() bool {
		status, got := svc.tryLink(t, proof)
		cookie = got
		if status != http.StatusCreated && status != http.StatusServiceUnavailable {
			t.Fatalf("a session with a valid link: %d", status)
		}
		return status == http.StatusCreated
	})
	return cookie
}

// statusWithCookie is the status of GET /sessions with a cookie. It asks again while the instance cannot check it.
func (svc *testService) statusWithCookie(t *testing.T, cookie string) (status int) {
	t.Helper()
	waitUntil(t, "sessions are checked", func() bool {
		status, _ = svc.send(t, "", "GET "+svc.area+"/sessions", "", "Cookie: "+cookie)
		return status != http.StatusServiceUnavailable
	})
	return status
}
