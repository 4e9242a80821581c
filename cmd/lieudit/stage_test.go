package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/cmd/lieudit/console"
	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/token"
)

// stage is a running service that scenes are played on.
type stage struct {
	api, area, ops string // where the three listeners begin
	data           string
	operator       string // the first operator's token
	client         *http.Client
	scenes         atomic.Int64
	log            *server // of a scene that plays on a node of its own
	stop           func()  // ends the service and waits for it
}

// raise starts a service on free ports in a folder of its own, and ends it with the test.
func raise(t *testing.T, change func(*service.Config)) *stage {
	t.Helper()
	st := raiseUnready(t, change)
	st.await(t, "the service to be ready", func() bool {
		resp, err := st.client.Get(st.ops + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return st
}

// raiseUnready is raise that does not wait for the service to be ready.
func raiseUnready(t *testing.T, change func(*service.Config)) *stage {
	t.Helper()
	said := &announcement{ready: make(chan struct{})}
	c := service.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", AreaListen: "127.0.0.1:0", OpsListen: "127.0.0.1:0",
		Tokens: token.Default, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Out: said,
		Now: time.Now, DrainTimeout: 5 * time.Second,
	}
	change(&c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx, c) }()
	select {
	case <-said.ready:
	case err := <-ended:
		t.Fatalf("the service ended: %v", err)
	case <-time.After(deadlinetest.Limit(deadlinetest.Hang)):
		cancel()
		t.Fatalf("the service did not start: %s", said.text())
	}
	st := &stage{data: c.Data, client: &http.Client{Timeout: deadlinetest.Limit(deadlinetest.Hang), Transport: &http.Transport{}}}
	st.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	st.api, st.area, st.ops = said.place(t, "API"), said.place(t, "customer area"), said.place(t, "health, metrics")
	st.stop = sync.OnceFunc(func() {
		st.client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the service ended with: %v", err)
		}
	})
	t.Cleanup(st.stop)
	st.await(t, "the operator's token", func() bool {
		text, err := os.ReadFile(filepath.Join(c.Data, "operator-token"))
		st.operator = strings.TrimSpace(string(text))
		return err == nil
	})
	return st
}

// await returns when a condition holds.
func (st *stage) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.After(deadlinetest.Limit(deadlinetest.Hang))
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// base is where the paths of a listener begin.
func (st *stage) base(t *testing.T, listener string) string {
	t.Helper()
	switch listener {
	case "area":
		return st.area
	case "ops":
		return st.ops
	}
	t.Fatalf("there is no listener %q", listener)
	return ""
}

// unique is a word that no other scene on the stage has.
func (st *stage) unique() string { return fmt.Sprintf("scene%04d", st.scenes.Add(1)) }

// run runs a command line of the program against the stage, which must succeed, and returns what it prints.
func (st *stage) run(t *testing.T, line string) string {
	t.Helper()
	code, out, complaints := st.try(t, line)
	for tries := 0; code != 0 && starved([]byte(complaints)) && tries < 20; tries++ {
		time.Sleep(100 * time.Millisecond)
		code, out, complaints = st.try(t, line)
	}
	if code != 0 {
		t.Fatalf("lieudit %s: exit %d: %s", line, code, complaints)
	}
	return out
}

func (st *stage) try(t *testing.T, line string) (code int, printed, complaints string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := map[string]string{
		"LIEUDIT_AREA":  strings.TrimSuffix(st.area, "/customer-area/v1"),
		"LIEUDIT_TOKEN": st.operator,
		"LIEUDIT_URL":   strings.TrimSuffix(st.api, "/services/v1"),
	}
	p := console.Program{
		In: strings.NewReader(""), Out: &out, Err: &errs, Zone: time.UTC, Serve: service.Run,
		Env: func(k string) (string, bool) { v, ok := env[k]; return v, ok },
	}
	code = p.Run(t.Context(), words("lieudit "+line))
	return code, out.String(), errs.String()
}

// words splits a command line at spaces; quotes keep them.
func words(line string) []string {
	var out []string
	for _, found := range regexp.MustCompile(`"([^"]*)"|'([^']*)'|\S+`).FindAllStringSubmatch(line, -1) {
		switch found[0][0] {
		case '"':
			out = append(out, found[1])
		case '\'':
			out = append(out, found[2])
		default:
			out = append(out, found[0])
		}
	}
	return out
}

// announcement is what a service tells at start. It is ready when all listeners are named.
type announcement struct {
	mu    sync.Mutex
	said  strings.Builder
	once  sync.Once
	ready chan struct{}
}

var _ io.Writer = (*announcement)(nil)

func (a *announcement) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said.Write(b)
	if strings.Contains(a.said.String(), "health, metrics") {
		a.once.Do(func() { close(a.ready) })
	}
	return len(b), nil
}

func (a *announcement) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.said.String()
}

// place is the address that was announced for a listener.
func (a *announcement) place(t *testing.T, listener string) string {
	t.Helper()
	found := regexp.MustCompile(listener + `\s+(http://\S+)`).FindStringSubmatch(a.text())
	if found == nil {
		t.Fatalf("no %s in %q", listener, a.text())
	}
	return found[1]
}
