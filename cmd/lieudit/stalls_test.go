package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/waiting"
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/table/tabletest"
	"lieudit/schemas/token"
)

// crowd is clients that ask without a pause, reads and writes, and what they were reply.
type crowd struct {
	*stage
	keys []string

	mu      sync.Mutex
	answers []reply
	work    sync.WaitGroup
	stop    context.CancelFunc
}

// reply is one answer: what was asked and when, and when which status came.
type reply struct {
	line       string
	key        int
	came, went time.Time
	status     int
}

func (a reply) took() time.Duration { return a.went.Sub(a.came) }

// crowded opens accounts on a service and lets clients ask for each.
func crowded(t *testing.T, st *stage, accounts, clients int) *crowd {
	t.Helper()
	c := &crowd{stage: st}
	for i := range accounts {
		st.run(t, fmt.Sprintf("account open Mairie --plan BUSINESS --id town-%d", i))
		c.keys = append(c.keys, strings.TrimSpace(st.run(t, fmt.Sprintf("key issue town-%d", i))))
		c.ask(t.Context(), i, http.MethodPost, "/locations/referentiels", `{"code":"shops"}`)
	}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(t.Context())
	t.Cleanup(c.end)
	for n := range clients {
		c.work.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if n%4 == 0 {
					site := fmt.Sprintf(`{"nom":"%d","lon":3.5,"lat":44.5}`, i)
					c.ask(t.Context(), n%accounts, http.MethodPut, fmt.Sprintf("/locations/referentiels/shops/sites/s-%d", n), site)
				} else {
					c.ask(t.Context(), n%accounts, http.MethodGet, "/me", "")
				}
			}
		})
	}
	return c
}

// end lets the clients hear their last answers.
func (c *crowd) end() {
	c.stop()
	c.work.Wait()
}

// ask asks once and notes the answer.
func (c *crowd) ask(ctx context.Context, key int, method, path, body string) reply {
	a := reply{line: method + " " + path, key: key, came: time.Now()}
	r, err := http.NewRequestWithContext(ctx, method, c.api+path, strings.NewReader(body))
	if err == nil {
		r.Header.Set("Authorization", "Bearer "+c.keys[key])
		r.Header.Set("Content-Type", "application/json")
		var resp *http.Response
		if resp, err = c.client.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			a.status = resp.StatusCode
		}
	}
	a.went = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, a)
	return a
}

// served counts the answers that were billed, and names all others but those that are allowed.
func (c *crowd) served(t *testing.T, allowed func(reply) bool) (n int) {
	t.Helper()
	refused := 0
	for _, a := range c.answers {
		switch {
		case a.status >= 200 && a.status < 300:
			n++
		case !allowed(a):
			t.Errorf("%s: status %d after %v", a.line, a.status, a.took())
		default:
			refused++
		}
	}
	t.Logf("%d served, %d refused", n, refused)
	return n
}

// billed waits until the refunds are through, and fails unless log and read model agree on so many requests.
func (c *crowd) billed(t *testing.T, want int) {
	t.Helper()
	got := int64(-1)
	c.await(t, fmt.Sprintf("the log to bill %d requests", want), func() bool {
		code, found := c.reconcile(t)
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

// onNode makes a service run on a node, with its read models in its folder.
func onNode(n *server) func(*service.Config) {
	return func(c *service.Config) { c.EventStore = n.address() }
}

// silent keeps the node silent for so long.
func (n *server) silent(t *testing.T, d time.Duration) {
	t.Helper()
	n.silence.Begin()
	defer n.silence.End()
	pass(t, d)
}

// pass lets time go by: a silence is a time, nothing else tells its end.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

func never(reply) bool { return false }

// TestSilencesAreSeenByNoClient leaves a busy machine half of the three seconds, and on one that is slower still it lets
// those be refused who waited three; with LIEUDIT_TEST_LONG it does neither. What a silence of two and a half seconds does to
// the second is tested in time of its own, by the parts.
func TestSilencesAreSeenByNoClient(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	c := crowded(t, raise(t, onNode(n)), 4, 24)
	longest, allowed := 1500*time.Millisecond, waitedLongest
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		longest, allowed = 2500*time.Millisecond, never
	}
	for _, length := range []time.Duration{longest, longest / 5, longest / 2} {
		pass(t, 500*time.Millisecond)
		n.silent(t, length)
	}
	pass(t, 500*time.Millisecond)
	c.end()
	c.billed(t, c.served(t, allowed))
}

// waitedLongest says whether an answer is the 503 of a request that waited as long as one may.
func waitedLongest(a reply) bool {
	return a.status == 503 && a.took() >= waiting.Longest-waiting.Brief
}

func TestASilenceOfThreeAndAHalfSecondsRefusesThoseAloneWhoWaitedThree(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	c := crowded(t, raise(t, onNode(n)), 4, 24)
	for range 2 {
		pass(t, 500*time.Millisecond)
		n.silent(t, 3500*time.Millisecond)
	}
	pass(t, 500*time.Millisecond)
	c.end()
	served := c.served(t, waitedLongest)
	for _, a := range c.answers {
		if a.status == 503 && a.took() > deadlinetest.Limit(deadlinetest.Hang) {
			t.Errorf("%s: refused after %v, want %v", a.line, a.took(), waiting.Longest)
		}
	}
	c.billed(t, served)
}

func TestASilenceOverTenSecondsRefusesAtOnceAndIsTold(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	c := crowded(t, raise(t, onNode(n)), 2, 8)
	pass(t, 500*time.Millisecond)
	began := time.Now()
	n.silence.Begin()
	defer n.silence.End()
	pass(t, 2*time.Second)
	c.keys = append(c.keys, token.Default.New(token.Secret), "ld_sk_wrong")
	if a := c.ask(t.Context(), 2, http.MethodGet, "/me", ""); a.status != 503 || a.took() >= waiting.Longest {
		t.Errorf("a key that the stale ring does not know: %d after %v, want 503 at once", a.status, a.took())
	}
	if a := c.ask(t.Context(), 3, http.MethodGet, "/me", ""); a.status != 401 || a.took() >= waiting.Longest {
		t.Errorf("a key that is none: %d after %v, want 401 at once", a.status, a.took())
	}
	if status, parts := c.readiness(t); status != 200 || !strings.Contains(parts["log"]+parts["key ring"], "stalls") {
		t.Errorf("readiness in the stall: %d %v, want 200 and the stall named", status, parts)
	}
	pass(t, waiting.Lost+500*time.Millisecond-time.Since(began))
	if status, parts := c.readiness(t); status != 503 {
		t.Errorf("readiness after %v: %d %v, want 503", time.Since(began), status, parts)
	}
	for range 5 {
		if a := c.ask(t.Context(), 0, http.MethodGet, "/me", ""); a.status != 503 || a.took() >= waiting.Longest {
			t.Errorf("after %v of silence: %d after %v, want 503 at once", time.Since(began), a.status, a.took())
		}
	}
	c.stop()
	n.silence.End()
	c.end()
	c.await(t, "requests to be served again", func() bool {
		return c.ask(t.Context(), 0, http.MethodGet, "/me", "").status == 200
	})
	c.billed(t, c.served(t, func(a reply) bool { return a.status == 503 || a.status == 401 && a.key == 3 }))
}

// readiness is the status of the service's readiness and what each part says of itself.
func (st *stage) readiness(t *testing.T) (status int, parts map[string]string) {
	t.Helper()
	resp, err := st.client.Get(st.ops + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var report struct{ Parts map[string]string }
	if err := json.NewDecoder(resp.Body).Decode(&report); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, report.Parts
}

// TestARevocationMadeInASilenceHoldsWithinASecond: made at another instance, whose node speaks. What the silent one
// answers a second later is no 200 any more, whatever it waited for.
func TestARevocationMadeInASilenceHoldsWithinASecond(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	other := filepath.Join(t.TempDir(), "other.sock")
	t.Cleanup(n.serve(t, other, nil))
	postgres := tabletest.Postgres(t)
	here := raise(t, onServers(n, postgres))
	there := raiseBeside(t, here, func(c *service.Config) { c.EventStore, c.Postgres = "esdb+unix://"+other, postgres })
	c := crowded(t, here, 2, 16)
	var listed struct{ ID string }
	if err := json.Unmarshal([]byte(strings.SplitN(there.run(t, `key list town-0 --json`), "\n", 2)[0]), &listed); err != nil {
		t.Fatal(err)
	}
	n.silence.Begin()
	pass(t, 300*time.Millisecond) // before the ring is stale: what is admitted now waits for its tick
	there.run(t, "key revoke town-0 "+listed.ID+" --reason leak")
	at := time.Now() // the command has waited for read models that the silent instance fills
	pass(t, 1200*time.Millisecond)
	n.silence.End()
	pass(t, 500*time.Millisecond)
	c.end()
	late := 0
	for _, a := range c.answers {
		if a.key != 0 || a.went.Before(at.Add(time.Second)) || waitedLongest(a) {
			continue
		}
		if late++; a.status != 401 && (a.status/100 != 2 || strings.HasPrefix(a.line, "GET")) { // a write that was begun is answered
			t.Errorf("%s: %d at %v after the revocation", a.line, a.status, a.went.Sub(at))
		}
	}
	if late == 0 {
		t.Error("nobody asked with the revoked key")
	}
	c.billed(t, c.served(t, func(a reply) bool { return a.status == 401 && a.key == 0 || waitedLongest(a) }))
}
