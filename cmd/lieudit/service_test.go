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

	"lieudit/cmd/lieudit/cli"
	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/terminal"
	"lieudit/eventstore/deadlinetest"
	"lieudit/schemas/token"
)

// testService is a running service and a client of it.
type testService struct {
	api, area, ops string // base URLs of the three listeners
	host           string // that the pages answer to; "": localhost with the port of the customer area
	data           string
	operator       string // the first operator's token
	client         *http.Client
	nameCount      atomic.Int64
	hasRoads       bool      // a road network was imported
	node           *testNode // of a scenario that runs on a node of its own; otherwise nil
	stop           func()    // ends the service and waits for its end
}

// startService starts a service on free ports in a folder of its own, waits until it is ready and ends it with the test.
func startService(t *testing.T, change func(*service.Config)) *testService {
	t.Helper()
	svc := startServiceUnready(t, change)
	waitUntil(t, "the service is ready", func() bool { return svc.isReady(t) })
	return svc
}

// startServiceUnready is startService for a service that does not become ready.
func startServiceUnready(t *testing.T, change func(*service.Config)) *testService {
	t.Helper()
	svc, err := tryStartService(t, change)
	if err != nil {
		t.Fatalf("the service ended: %v", err)
	}
	waitUntil(t, "the operator's token", func() bool {
		text, err := os.ReadFile(filepath.Join(svc.data, "operator-token"))
		svc.operator = strings.TrimSpace(string(text))
		return err == nil
	})
	return svc
}

// tryStartService starts a service that may refuse to: then it returns the error. It does not wait for readiness, and does
// not read the operator's token. The service ends with the test.
func tryStartService(t *testing.T, change func(*service.Config)) (*testService, error) {
	t.Helper()
	output := &startOutput{ready: make(chan struct{})}
	c := testConfig(t, output, change)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx, c) }()
	select {
	case <-output.ready:
	case err := <-ended:
		cancel()
		return nil, err
	case <-time.After(deadlinetest.Scale(deadlinetest.DefaultLimit)):
		cancel()
		t.Fatalf("the service did not start: %s", output.text())
	}
	svc := &testService{data: c.Data, client: &http.Client{Timeout: deadlinetest.Scale(deadlinetest.DefaultLimit), Transport: &http.Transport{}}}
	svc.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	svc.api, svc.area, svc.ops = output.listenerURL(t, "API"), output.listenerURL(t, "customer area"), output.listenerURL(t, "health, metrics")
	svc.stop = sync.OnceFunc(func() {
		svc.client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the service ended with: %v", err)
		}
	})
	t.Cleanup(svc.stop)
	return svc, nil
}

// listenerURL is the base URL of a listener that a scenario names.
func (svc *testService) listenerURL(t *testing.T, listener string) string {
	t.Helper()
	switch listener {
	case "area":
		return svc.area
	case "ops":
		return svc.ops
	}
	t.Fatalf("there is no listener %q", listener)
	return ""
}

// testConfig is the configuration of an embedded service on free ports, changed as a test wants it.
func testConfig(t *testing.T, out io.Writer, change func(*service.Config)) service.Config {
	t.Helper()
	c := service.Config{
		Data: t.TempDir(), Listen: "127.0.0.1:0", AreaListen: "127.0.0.1:0", OpsListen: "127.0.0.1:0",
		TokenPrefixes: token.DefaultPrefixes, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Out: out,
		Now: time.Now, FinishTimeout: 5 * time.Second, KeyRingTimeout: time.Second,
	}
	change(&c)
	return c
}

// uniqueName is a name that no other scenario on this service gets.
func (svc *testService) uniqueName() string { return fmt.Sprintf("scene%04d", svc.nameCount.Add(1)) }

// openAccount opens an account with a referential and returns a secret key.
func (svc *testService) openAccount(t *testing.T, id, referential string) string {
	t.Helper()
	svc.runCommand(t, "account open Boutiques --plan BUSINESS --id "+id)
	key := strings.TrimSpace(svc.runCommand(t, "key issue "+id))
	svc.mustSend(t, key, "POST /locations/referentiels", fmt.Sprintf(`{"code":%q}`, referential))
	return key
}

// runCommand runs a command line against the service, which must succeed, and returns what it prints. It tries again while
// the service has no time to check tokens.
func (svc *testService) runCommand(t *testing.T, line string) string {
	t.Helper()
	code, out, stderr := svc.tryCommand(t, line)
	for tries := 0; code != 0 && isKeyRingUnavailable([]byte(stderr)) && tries < 20; tries++ {
		time.Sleep(100 * time.Millisecond)
		code, out, stderr = svc.tryCommand(t, line)
	}
	if code != 0 {
		t.Fatalf("lieudit %s: exit %d: %s", line, code, stderr)
	}
	return out
}

// tryCommand runs a command line against the service once.
func (svc *testService) tryCommand(t *testing.T, line string) (code int, printed, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := map[string]string{
		"LIEUDIT_AREA":  strings.TrimSuffix(svc.area, "/customer-area/v1"),
		"LIEUDIT_TOKEN": svc.operator,
		"LIEUDIT_URL":   strings.TrimSuffix(svc.api, "/services/v1"),
	}
	p := cli.Program{Serve: service.Run, Terminal: terminal.Terminal{
		Name: "lieudit", In: strings.NewReader(""), Out: &out, Err: &errs, TimeZone: time.UTC,
		LookupEnv: func(k string) (string, bool) { v, ok := env[k]; return v, ok },
	}}
	code = p.Run(t.Context(), splitWords("lieudit "+line))
	return code, out.String(), errs.String()
}

// splitWords splits a command line at spaces outside quotes.
func splitWords(line string) []string {
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

// startOutput collects what a service prints at start. Ready is closed when all listeners are named.
type startOutput struct {
	mu      sync.Mutex
	written strings.Builder
	once    sync.Once
	ready   chan struct{}
}

var _ io.Writer = (*startOutput)(nil)

func (a *startOutput) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.written.Write(b)
	if strings.Contains(a.written.String(), "  API ") { // the last
		a.once.Do(func() { close(a.ready) })
	}
	return len(b), nil
}

func (a *startOutput) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.written.String()
}

// listenerURL is the URL that the service printed for a listener.
func (a *startOutput) listenerURL(t *testing.T, listener string) string {
	t.Helper()
	found := regexp.MustCompile(listener + `\s+(http://\S+)`).FindStringSubmatch(a.text())
	if found == nil {
		t.Fatalf("no %s in %q", listener, a.text())
	}
	return found[1]
}
