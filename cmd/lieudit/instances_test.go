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
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/table/tabletest"
)

// server is a node that can be stopped and started again on the same journal and the same socket.
type server struct {
	dir, socket string
	journal     *journal.Journal
	silence     node.Silence
	stop        func()
	faults      node.Faults
}

func (n *server) address() string { return "esdb+unix://" + n.socket }

func (n *server) start(t *testing.T) {
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
func (n *server) serve(t *testing.T, socket string, silence *node.Silence) (stop func()) {
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
		ended <- node.New(n.journal, node.Options{Grace: 10 * time.Millisecond, Faults: faults}).Serve(ctx, ln)
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func startNode(t *testing.T) *server {
	t.Helper()
	return startNodeWith(t, node.Faults{})
}

func startNodeWith(t *testing.T, faults node.Faults) *server {
	t.Helper()
	n := &server{dir: t.TempDir(), socket: filepath.Join(t.TempDir(), "node.sock"), faults: faults}
	n.start(t)
	t.Cleanup(func() { n.stop() })
	return n
}

// onServers makes a service run on a node and a Postgres database.
func onServers(n *server, postgres string) func(*service.Config) {
	return func(c *service.Config) { c.EventStore, c.Postgres = n.address(), postgres }
}

// me is the status of GET /me with a key.
func (st *stage) me(t *testing.T, key string) int {
	t.Helper()
	return st.answered(t, "/me", key)
}

// checked says whether keys are checked: then an unknown path is a 404, which nobody counts.
func (st *stage) checked(t *testing.T, key string) bool {
	t.Helper()
	return st.answered(t, "/nowhere", key) == http.StatusNotFound
}

func (st *stage) answered(t *testing.T, path, key string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", st.api+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := st.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// within fails the test when a condition does not come to hold in time, and tells how long it took.
func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	began := time.Now()
	deadlinetest.Until(t, limit, what, holds)
	t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
}

func TestInstancesShareKeysAndRevocations(t *testing.T) {
	t.Parallel()
	n, postgres := startNode(t), tabletest.Postgres(t)
	here := raise(t, onServers(n, postgres))
	there := raiseBeside(t, here, onServers(n, postgres))
	here.run(t, `account open "Chez Paul" --id paul --plan STARTER`)
	key := strings.TrimSpace(there.run(t, `key issue paul --label web`))
	if got := there.me(t, key); got != 200 {
		t.Errorf("where the key was issued: got %d, want 200 at once", got)
	}
	within(t, deadlinetest.Hang, "a key issued there works here", func() bool { return here.me(t, key) == 200 })

	var listed struct{ ID string }
	if err := json.Unmarshal([]byte(strings.SplitN(here.run(t, `key list paul --json`), "\n", 2)[0]), &listed); err != nil {
		t.Fatal(err)
	}
	here.run(t, `key revoke paul `+listed.ID+` --reason leak`)
	if got := here.me(t, key); got != 401 {
		t.Errorf("where the key was revoked: got %d, want 401 at once", got)
	}
	within(t, deadlinetest.Hang, "a key revoked here is refused there", func() bool { return there.me(t, key) == 401 })
}

// raiseBeside starts a second instance on the servers of a first, whose operator token it uses.
func raiseBeside(t *testing.T, first *stage, change func(*service.Config)) *stage {
	t.Helper()
	return raise(t, func(c *service.Config) {
		change(c)
		if err := os.WriteFile(filepath.Join(c.Data, "operator-token"), []byte(first.operator+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLogGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	n, postgres := startNode(t), tabletest.Postgres(t)
	st := raise(t, onServers(n, postgres))
	st.run(t, `account open "Chez Paul" --id paul --plan STARTER`)
	key := strings.TrimSpace(st.run(t, `key issue paul --label web`))
	for round := range 3 {
		n.stop()
		within(t, deadlinetest.Hang, "keyed requests get 503", func() bool { return st.me(t, key) == 503 })
		if got := st.status(t, st.api+"/version"); got != 200 {
			t.Errorf("round %d: /version: got %d, want 200", round, got)
		}
		within(t, deadlinetest.Hang, "readiness says so", func() bool { return st.status(t, st.ops+"/readyz") == 503 })
		n.start(t)
		within(t, deadlinetest.Hang, "keyed requests are served again", func() bool { return st.me(t, key) == 200 })
		within(t, deadlinetest.Hang, "it is ready again", func() bool { return st.status(t, st.ops+"/readyz") == 200 })
	}
	second := strings.TrimSpace(st.run(t, `key issue paul --label again`))
	if got := st.me(t, second); got != 200 {
		t.Errorf("a key issued after the outages: got %d, want 200", got)
	}
}

func (st *stage) status(t *testing.T, url string) int {
	t.Helper()
	resp, err := st.client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
