package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/clock/clocktest"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/token"
)

func TestInstancesShareKeysAndRevocations(t *testing.T) {
	t.Parallel()
	n, postgres := startNode(t), sqldbtest.NewPostgresDatabase(t)
	here := startService(t, withServers(n, postgres))
	there := startSecondInstance(t, here, withServers(n, postgres))
	here.runCommand(t, `account open "Chez Paul" --id paul --plan STARTER`)
	key := strings.TrimSpace(there.runCommand(t, `key issue paul --label web`))
	if got := there.statusOfMe(t, key); got != 200 {
		t.Errorf("where the key was issued: got %d, want 200 at once", got)
	}
	waitUntil(t, "a key issued there works here", func() bool { return here.statusOfMe(t, key) == 200 })

	var listed struct{ ID string }
	if err := json.Unmarshal([]byte(strings.SplitN(here.runCommand(t, `key list paul --json`), "\n", 2)[0]), &listed); err != nil {
		t.Fatal(err)
	}
	here.runCommand(t, `key revoke paul `+listed.ID+` --reason leak`)
	if got := here.statusOfMe(t, key); got != 401 {
		t.Errorf("where the key was revoked: got %d, want 401 at once", got)
	}
	waitUntil(t, "a key revoked here is refused there", func() bool { return there.statusOfMe(t, key) == 401 })
}

// startSecondInstance starts another instance on the servers of the first, with the first one's operator token.
func startSecondInstance(t *testing.T, first *testService, change func(*service.Config)) *testService {
	t.Helper()
	return startService(t, func(c *service.Config) {
		change(c)
		if err := os.WriteFile(filepath.Join(c.Data, "operator-token"), []byte(first.operator+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAnInstanceRecoversFromOutagesOfTheLog(t *testing.T) {
	t.Parallel()
	n, postgres := startNode(t), sqldbtest.NewPostgresDatabase(t)
	svc := startService(t, withServers(n, postgres))
	svc.runCommand(t, `account open "Chez Paul" --id paul --plan STARTER`)
	key := strings.TrimSpace(svc.runCommand(t, `key issue paul --label web`))
	for round := range 3 {
		n.stop()
		waitUntil(t, "keyed requests get 503", func() bool { return svc.statusOfMe(t, key) == 503 })
		if got := svc.statusOf(t, "", "GET /version", ""); got != 200 {
			t.Errorf("round %d: /version: got %d, want 200", round, got)
		}
		waitUntil(t, "it is not ready", func() bool { return svc.readiness(t).status == 503 })
		n.start(t)
		waitUntil(t, "keyed requests are served again", func() bool { return svc.statusOfMe(t, key) == 200 })
		waitUntil(t, "it is ready again", func() bool { return svc.isReady(t) })
	}
	second := strings.TrimSpace(svc.runCommand(t, `key issue paul --label again`))
	if got := svc.statusOfMe(t, second); got != 200 {
		t.Errorf("a key issued after the outages: got %d, want 200", got)
	}
}

// loadClients are clients that send reads and writes without a pause, and the answers that they got.
type loadClients struct {
	*testService
	keys []string

	mu        sync.Mutex
	responses []timedResponse
	running   sync.WaitGroup
	cancel    context.CancelFunc
}

// timedResponse is one request with the times of its start and end and the status of the answer, 0 without one.
type timedResponse struct {
	line               string
	key                int
	startedAt, endedAt time.Time
	status             int
}

func (a timedResponse) duration() time.Duration { return a.endedAt.Sub(a.startedAt) }

// startLoadClients opens accounts on a service and starts clients that use their keys in turn.
func startLoadClients(t *testing.T, svc *testService, accounts, clients int) *loadClients {
	t.Helper()
	c := &loadClients{testService: svc}
	for i := range accounts {
		svc.runCommand(t, fmt.Sprintf("account open Mairie --plan BUSINESS --id town-%d", i))
		c.keys = append(c.keys, strings.TrimSpace(svc.runCommand(t, fmt.Sprintf("key issue town-%d", i))))
		c.sendOnce(t.Context(), i, http.MethodPost, "/locations/referentiels", `{"code":"shops"}`)
	}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(t.Context())
	t.Cleanup(c.stopAndWait)
	for n := range clients {
		c.running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if n%4 == 0 {
					site := fmt.Sprintf(`{"nom":"%d","lon":3.5,"lat":44.5}`, i)
					c.sendOnce(t.Context(), n%accounts, http.MethodPut, fmt.Sprintf("/locations/referentiels/shops/sites/s-%d", n), site)
				} else {
					c.sendOnce(t.Context(), n%accounts, http.MethodGet, "/me", "")
				}
			}
		})
	}
	return c
}

// stopAndWait ends the clients after the answers they wait for.
func (c *loadClients) stopAndWait() {
	c.cancel()
	c.running.Wait()
}

// sendOnce sends one request and records the answer.
func (c *loadClients) sendOnce(ctx context.Context, key int, method, path, body string) timedResponse {
	a := timedResponse{line: method + " " + path, key: key, startedAt: time.Now()}
	a.status, _, _ = c.do(ctx, request{target: a.line, key: c.keys[key], body: strings.NewReader(body)})
	a.endedAt = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.responses = append(c.responses, a)
	return a
}

// countServed counts the answers that are billed, and fails the test for each other one that is not allowed.
func (c *loadClients) countServed(t *testing.T, allowed func(timedResponse) bool) (n int) {
	t.Helper()
	refused := 0
	for _, a := range c.responses {
		switch {
		case a.status >= 200 && a.status < 300:
			n++
		case !allowed(a):
			t.Errorf("%s: status %d after %v", a.line, a.status, a.duration())
		default:
			refused++
		}
	}
	t.Logf("%d served, %d refused", n, refused)
	return n
}

// waitUntilBilled waits until refunds are written and the log and the read model agree on the wanted number of requests.
func (c *loadClients) waitUntilBilled(t *testing.T, want int) {
	t.Helper()
	got := int64(-1)
	waitUntil(t, fmt.Sprintf("the log to bill %d requests", want), func() bool {
		code, found := c.reconcileUsage(t)
		if code != 0 || len(found.Differences) > 0 {
			t.Logf("reconcile: exit %d, %v", code, found.Differences)
		}
		if found.Requests != got {
			got = found.Requests
			t.Logf("billed %d of %d", got, want)
		}
		return code == 0 && len(found.Differences) == 0 && got == int64(want)
	})
}

// sleepFor lets time pass: a silence is defined by its length.
func sleepFor(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func allowNone(timedResponse) bool { return false }

// TestNoClientNoticesAShortSilence uses silences of half the three seconds that a request may wait, and on a slower
// machine still accepts refusals after three; with LIEUDIT_TEST_LONG it uses 2.5 seconds and accepts none. The packages
// that wait test that bound to the second on a clock of their own.
func TestNoClientNoticesAShortSilence(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	c := startLoadClients(t, startService(t, withNode(n)), 4, 24)
	longest, allowed := 1500*time.Millisecond, isLongestWait
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		longest, allowed = 2500*time.Millisecond, allowNone
	}
	for _, length := range []time.Duration{longest, longest / 5, longest / 2} {
		sleepFor(t, 500*time.Millisecond)
		n.silenceFor(t, length)
	}
	sleepFor(t, 500*time.Millisecond)
	c.stopAndWait()
	c.waitUntilBilled(t, c.countServed(t, allowed))
}

// isLongestWait reports whether an answer is the 503 of a request that waited as long as a request may.
func isLongestWait(a timedResponse) bool {
	return a.status == 503 && a.duration() >= waitlimit.MaxWait-waitlimit.UncountedWait
}

func TestASilenceOf3500MillisecondsRefusesOnlyRequestsThatWaited3000(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	c := startLoadClients(t, startService(t, withNode(n)), 4, 24)
	for range 2 {
		sleepFor(t, 500*time.Millisecond)
		n.silenceFor(t, 3500*time.Millisecond)
	}
	sleepFor(t, 500*time.Millisecond)
	c.stopAndWait()
	served := c.countServed(t, isLongestWait)
	for _, a := range c.responses {
		if a.status == 503 && a.duration() > deadlinetest.Scale(deadlinetest.DefaultLimit) {
			t.Errorf("%s: refused after %v, want %v", a.line, a.duration(), waitlimit.MaxWait)
		}
	}
	c.waitUntilBilled(t, served)
}

func TestASilenceOverTenSecondsRefusesAtOnceAndMakesUnready(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	c := startLoadClients(t, startService(t, withNode(n)), 2, 8)
	sleepFor(t, 500*time.Millisecond)
	began := time.Now()
	n.silence.Begin()
	defer n.silence.End()
	sleepFor(t, 2*time.Second)
	c.keys = append(c.keys, token.DefaultPrefixes.New(token.Secret), "ld_sk_wrong")
	if a := c.sendOnce(t.Context(), 2, http.MethodGet, "/me", ""); a.status != 503 || a.duration() >= waitlimit.MaxWait {
		t.Errorf("a key that the stale ring does not know: %d after %v, want 503 at once", a.status, a.duration())
	}
	if a := c.sendOnce(t.Context(), 3, http.MethodGet, "/me", ""); a.status != 401 || a.duration() >= waitlimit.MaxWait {
		t.Errorf("a key that is none: %d after %v, want 401 at once", a.status, a.duration())
	}
	if r := c.readiness(t); r.status != 200 || !strings.Contains(r.parts["log"]+r.parts["key ring"], "stalls") {
		t.Errorf("readiness in the stall: %d %v, want 200 and the stall named", r.status, r.parts)
	}
	sleepFor(t, waitlimit.MaxSilence+500*time.Millisecond-time.Since(began))
	if r := c.readiness(t); r.status != 503 {
		t.Errorf("readiness after %v: %d %v, want 503", time.Since(began), r.status, r.parts)
	}
	for range 5 {
		if a := c.sendOnce(t.Context(), 0, http.MethodGet, "/me", ""); a.status != 503 || a.duration() >= waitlimit.MaxWait {
			t.Errorf("after %v of silence: %d after %v, want 503 at once", time.Since(began), a.status, a.duration())
		}
	}
	c.cancel()
	n.silence.End()
	c.stopAndWait()
	waitUntil(t, "requests to be served again", func() bool {
		return c.sendOnce(t.Context(), 0, http.MethodGet, "/me", "").status == 200
	})
	c.waitUntilBilled(t, c.countServed(t, func(a timedResponse) bool { return a.status == 503 || a.status == 401 && a.key == 3 }))
}

// TestARevocationMadeInASilenceHoldsWithinASecond revokes a key at another instance, whose node is not silent. A second
// later the silent instance answers no read of that key with 200, whatever the request waited for.
func TestARevocationMadeInASilenceHoldsWithinASecond(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	other := filepath.Join(t.TempDir(), "other.sock")
	t.Cleanup(n.serve(t, other, nil))
	postgres := sqldbtest.NewPostgresDatabase(t)
	here := startService(t, withServers(n, postgres))
	there := startSecondInstance(t, here, func(c *service.Config) { c.EventStore, c.Postgres = "esdb+unix://"+other, postgres })
	c := startLoadClients(t, here, 2, 16)
	var listed struct{ ID string }
	if err := json.Unmarshal([]byte(strings.SplitN(there.runCommand(t, `key list town-0 --json`), "\n", 2)[0]), &listed); err != nil {
		t.Fatal(err)
	}
	n.silence.Begin()
	sleepFor(t, 300*time.Millisecond) // the key ring is still fresh: requests are admitted and wait for their tick
	there.runCommand(t, "key revoke town-0 "+listed.ID+" --reason leak")
	at := time.Now() // the command has waited until its time limit for read models that the silent instance fills
	sleepFor(t, 1200*time.Millisecond)
	n.silence.End()
	sleepFor(t, 500*time.Millisecond)
	c.stopAndWait()
	late := 0
	for _, a := range c.responses {
		if a.key != 0 || a.endedAt.Before(at.Add(time.Second)) || isLongestWait(a) {
			continue
		}
		if late++; a.status != 401 && (a.status/100 != 2 || strings.HasPrefix(a.line, "GET")) { // a write under way is completed
			t.Errorf("%s: %d at %v after the revocation", a.line, a.status, a.endedAt.Sub(at))
		}
	}
	if late == 0 {
		t.Error("nobody asked with the revoked key")
	}
	c.waitUntilBilled(t, c.countServed(t, func(a timedResponse) bool { return a.status == 401 && a.key == 0 || isLongestWait(a) }))
}

func TestTheStateNowIncludesEventsFromAClockThatIsAhead(t *testing.T) {
	t.Parallel()
	var behind atomic.Int64
	svc := startService(t, func(c *service.Config) {
		c.Now = func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) }
		c.Elapsed = clocktest.ElapsedOf(c.Now)
	})
	svc.runCommand(t, `account open "Chez Paul" --id paul --plan STARTER`)
	behind.Store(int64(2 * time.Hour))
	svc.runCommand(t, `key issue paul --label late`)
	if got := svc.runCommand(t, "audit state paul --json"); !strings.Contains(got, `"late"`) {
		t.Errorf("got %s, want the key that was issued", got)
	}
}
