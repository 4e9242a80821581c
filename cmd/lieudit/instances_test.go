package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/deadlinetest"
)

// testNode is a node that can be stopped and started again on the same journal and the same socket.
type testNode struct {
	dir, socket string
	journal     *journal.Journal
	silence     node.Silence
	stop        func()
	faults      node.Faults
}

func (n *testNode) address() string { return "esdb+unix://" + n.socket }

func (n *testNode) start(t *testing.T) {
	t.Helper()
	j, err := journal.Open(n.dir, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	n.journal = j
	end := n.serve(t, n.socket, &n.silence)
	n.stop = func() {
		n.stop = func() {} // a test that fails while it is stopped stops it again
		end()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// serve serves the journal at a socket, until it is told to stop.
func (n *testNode) serve(t *testing.T, socket string, silence *node.Silence) (stop func()) {
	t.Helper()
	ln, err := node.Listen(t.Context(), "unix:"+socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		faults := n.faults
		faults.Silence = silence
		ended <- node.New(n.journal, node.Options{StopTimeout: 10 * time.Millisecond, Faults: faults}).Serve(ctx, ln)
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func startNode(t *testing.T) *testNode {
	t.Helper()
	return startNodeWithFaults(t, node.Faults{})
}

func startNodeWithFaults(t *testing.T, faults node.Faults) *testNode {
	t.Helper()
	n := &testNode{dir: t.TempDir(), socket: filepath.Join(t.TempDir(), "node.sock"), faults: faults}
	n.start(t)
	t.Cleanup(func() { n.stop() })
	return n
}

// withServers makes a service run on a node and a Postgres database.
func withServers(n *testNode, postgres string) func(*service.Config) {
	return func(c *service.Config) { c.EventStore, c.Postgres = n.address(), postgres }
}

// statusOfMe is the status of GET /me with a key.
func (svc *testService) statusOfMe(t *testing.T, key string) int {
	t.Helper()
	return svc.getStatus(t, "/me", key)
}

// areKeysChecked says whether keys are areKeysChecked: then an unknown path is a 404, which nobody counts.
func (svc *testService) areKeysChecked(t *testing.T, key string) bool {
	t.Helper()
	return svc.getStatus(t, "/nowhere", key) == http.StatusNotFound
}

func (svc *testService) getStatus(t *testing.T, path, key string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", svc.api+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := svc.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// waitWithin fails the test when a condition does not come to hold in time, and tells how long it took.
func waitWithin(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	began := time.Now()
	deadlinetest.WaitUntil(t, limit, what, holds)
	t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
}

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
	waitWithin(t, deadlinetest.DefaultLimit, "a key issued there works here", func() bool { return here.statusOfMe(t, key) == 200 })

	var listed struct{ ID string }
	if err := json.Unmarshal([]byte(strings.SplitN(here.runCommand(t, `key list paul --json`), "\n", 2)[0]), &listed); err != nil {
		t.Fatal(err)
	}
	here.runCommand(t, `key revoke paul `+listed.ID+` --reason leak`)
	if got := here.statusOfMe(t, key); got != 401 {
		t.Errorf("where the key was revoked: got %d, want 401 at once", got)
	}
	waitWithin(t, deadlinetest.DefaultLimit, "a key revoked here is refused there", func() bool { return there.statusOfMe(t, key) == 401 })
}

// startSecondInstance starts a second instance on the servers of a first, whose operator token it uses.
func startSecondInstance(t *testing.T, first *testService, change func(*service.Config)) *testService {
	t.Helper()
	return startService(t, func(c *service.Config) {
		change(c)
		if err := os.WriteFile(filepath.Join(c.Data, "operator-token"), []byte(first.operator+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLogGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	n, postgres := startNode(t), sqldbtest.NewPostgresDatabase(t)
	svc := startService(t, withServers(n, postgres))
	svc.runCommand(t, `account open "Chez Paul" --id paul --plan STARTER`)
	key := strings.TrimSpace(svc.runCommand(t, `key issue paul --label web`))
	for round := range 3 {
		n.stop()
		waitWithin(t, deadlinetest.DefaultLimit, "keyed requests get 503", func() bool { return svc.statusOfMe(t, key) == 503 })
		if got := svc.statusOfURL(t, svc.api+"/version"); got != 200 {
			t.Errorf("round %d: /version: got %d, want 200", round, got)
		}
		waitWithin(t, deadlinetest.DefaultLimit, "readiness says so", func() bool { return svc.statusOfURL(t, svc.ops+"/readyz") == 503 })
		n.start(t)
		waitWithin(t, deadlinetest.DefaultLimit, "keyed requests are served again", func() bool { return svc.statusOfMe(t, key) == 200 })
		waitWithin(t, deadlinetest.DefaultLimit, "it is ready again", func() bool { return svc.statusOfURL(t, svc.ops+"/readyz") == 200 })
	}
	second := strings.TrimSpace(svc.runCommand(t, `key issue paul --label again`))
	if got := svc.statusOfMe(t, second); got != 200 {
		t.Errorf("a key issued after the outages: got %d, want 200", got)
	}
}

func (svc *testService) statusOfURL(t *testing.T, url string) int {
	t.Helper()
	resp, err := svc.client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
