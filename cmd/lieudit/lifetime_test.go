package main

import (
	"context"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/token"
)

// TestAStoppingInstanceServesOnUntilItsProxyHasNoticed drains for as long as the test takes: only a second signal ends it.
func TestAStoppingInstanceServesOnUntilItsProxyHasNoticed(t *testing.T) {
	t.Parallel()
	p := launchProcess(t, t.TempDir(), "sh", "-c", `exec "$0" "$@" --drain 1h`, os.Args[0]) // the last --drain counts
	p.waitForOutput(t, "demo account was opened")
	svc := p.testService(t)
	waitUntil(t, "the service is ready", func() bool { return svc.isReady(t) })
	if closes := svc.saysItCloses(t); closes {
		t.Error("before the signal, an answer says that the connection is closed")
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it is not ready", func() bool { return !svc.isReady(t) })
	if reason := svc.readiness(t).parts["stop"]; !strings.Contains(reason, "stops") {
		t.Errorf("readiness says %q, want that it stops", reason)
	}
	for range 3 { // each on a connection of its own, since the one before was closed
		if closes := svc.saysItCloses(t); !closes {
			t.Error("an answer keeps its connection open")
		}
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := p.waitForExit(t); got.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v, want by the second signal", got)
	}
}

// saysItCloses requests the version, which must be answered with 200, and reports whether the answer ends the connection.
func (svc *testService) saysItCloses(t *testing.T) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, svc.api+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := svc.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("got %d, want 200", resp.StatusCode)
	}
	return resp.Close
}

// runServiceInBackground starts a service, waits until all but the API is named, and ends it with the test.
func runServiceInBackground(t *testing.T, change func(*service.Config)) *startOutput {
	t.Helper()
	output := &startOutput{ready: make(chan struct{})}
	c := testConfig(t, output, change)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx, c) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the service ended with: %v", err)
		}
	})
	waitUntil(t, "it names its other listeners", func() bool { return strings.Contains(output.text(), "health, metrics") })
	return output
}

func TestTheAPIIsOpenedOnceItCanCheckKeys(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	n.stop()
	output := runServiceInBackground(t, func(c *service.Config) {
		c.EventStore, c.KeyRingTimeout = n.address(), time.Hour
	})
	svc := &testService{ops: output.listenerURL(t, "health, metrics"), client: &http.Client{Transport: &http.Transport{}}}
	if reason := svc.readiness(t).parts["start"]; !strings.Contains(reason, "not open yet") {
		t.Errorf("readiness says %q of the start, want that the API is not open yet", reason)
	}
	if strings.Contains(output.text(), "  API ") {
		t.Error("the API is open while the log is away")
	}
	n.start(t)
	<-output.ready
	svc.api = output.listenerURL(t, "API")
	if got := svc.statusOfMe(t, token.DefaultPrefixes.New(token.Secret)); got != http.StatusUnauthorized {
		t.Errorf("the first request got %d, want 401: its key was checked", got)
	}
}

func TestTheAPIIsOpenedWithoutALogAfterAWhile(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	n.stop()
	output := runServiceInBackground(t, func(c *service.Config) {
		c.EventStore, c.KeyRingTimeout = n.address(), time.Millisecond
	})
	<-output.ready
	svc := &testService{api: output.listenerURL(t, "API"), client: &http.Client{Transport: &http.Transport{}}}
	if got := svc.statusOfMe(t, token.DefaultPrefixes.New(token.Secret)); got != http.StatusServiceUnavailable {
		t.Errorf("got %d, want 503: keys cannot be checked", got)
	}
}

func TestNoAnswerMayBeTakenForAnotherType(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	for _, url := range []string{svc.api + "/version", svc.api + "/me", svc.area + "/accounts", svc.ops + "/healthz", svc.ops + "/nowhere"} {
		resp, err := svc.client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: got X-Content-Type-Options %q, want nosniff", url, got)
		}
	}
}
