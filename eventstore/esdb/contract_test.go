package esdb_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
	"lieudit/eventstore/node/faulttest"
	"lieudit/eventstore/storetest"
)

// nodeStore is a store over a node over a journal, which can be restarted.
type nodeStore struct {
	*esdb.Store
	node *runningNode
}

// runningNode is a journal served at an address until it is stopped.
type runningNode struct {
	dir              string
	addr             net.Addr
	connectionString string // that esdb.Open takes
	stop             func()
}

const segmentSize = 4 << 20

// serveFolder opens the journal in dir and serves it at an address ("127.0.0.1:0" or "unix:PATH") until the test ends.
func serveFolder(t testing.TB, dir, address string) *runningNode {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{SegmentSize: segmentSize})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := node.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return serveJournal(t, dir, ln, j, faulttest.Faults{})
}

func serveJournal(t testing.TB, dir string, ln net.Listener, j *journal.Journal, faults faulttest.Faults) *runningNode {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- faults.Serve(ctx, j, node.Options{}, ln) }()
	stopped := false
	r := &runningNode{dir: dir, addr: ln.Addr(), connectionString: connectionString(ln.Addr())}
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error("node:", err)
		}
		if err := j.Close(); err != nil {
			t.Error("journal:", err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

func connectionString(a net.Addr) string {
	if a.Network() == "unix" {
		return "esdb+unix://" + a.String()
	}
	return "esdb://" + a.String() + "?tls=false"
}

func dial(t testing.TB, connection string) *esdb.Store {
	t.Helper()
	s, err := esdb.Open(t.Context(), connection, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// connected is a store that has its connection.
func connected(t testing.TB, connection string) *esdb.Store {
	t.Helper()
	s := dial(t, connection)
	eventually(t, "connection", s.Health)
	return s
}

// TestContract runs the contract through a node, and on an EventStoreDB when LIEUDIT_TEST_EVENTSTORE names one
// (docker compose up eventstore gives esdb://localhost:2113?tls=false).
func TestContract(t *testing.T) {
	t.Parallel()
	addresses := map[string]func(dir string) string{
		"node over a Unix socket": func(dir string) string { return "unix:" + filepath.Join(dir, "s") },
	}
	if os.Getenv("LIEUDIT_TEST_LONG") != "" { // the two differ in the transport, which the fault tests use
		addresses["node over TCP"] = func(string) string { return "127.0.0.1:0" }
	}
	for name, address := range addresses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runContractOnNode(t, func(t *testing.T, dir string) *runningNode { return serveFolder(t, dir, address(shortTempDir(t))) })
		})
	}
	t.Run("node that behaves as EventStoreDB does", func(t *testing.T) {
		t.Parallel()
		runContractOnNode(t, serveWithFaults)
	})
	if connection := os.Getenv("LIEUDIT_TEST_EVENTSTORE"); connection != "" {
		t.Run("EventStoreDB", func(t *testing.T) {
			t.Parallel()
			runContractOnServer(t, connection)
		})
	}
}

// runContractOnNode runs the contract on nodes that open serves from a folder.
func runContractOnNode(t *testing.T, open func(t *testing.T, dir string) *runningNode) {
	t.Helper()
	reopen := func(t *testing.T, s eventstore.Store) eventstore.Store {
		t.Helper()
		old := s.(*nodeStore).node
		old.stop()
		r := open(t, old.dir)
		return &nodeStore{connected(t, r.connectionString), r}
	}
	storetest.Run(t, func(t *testing.T) eventstore.Store {
		r := open(t, t.TempDir())
		return &nodeStore{connected(t, r.connectionString), r}
	}, storetest.Options{
		Reopen: reopen,
		ReopenWithoutIDs: func(t *testing.T, s eventstore.Store) eventstore.Store {
			storetest.FillSegment(t, s, segmentSize)
			return reopen(t, s)
		},
	})
}

// serveWithFaults is serve by a node that fails inside a record and drops repeats of appends in flight.
func serveWithFaults(t *testing.T, dir string) *runningNode {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{SegmentSize: segmentSize})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := node.Listen(t.Context(), "unix:"+filepath.Join(shortTempDir(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	return serveJournal(t, dir, ln, j, faulttest.Faults{InsideRecord: faulttest.InsideRecordFailed, RepeatTimeout: 50 * time.Millisecond})
}

// runContractOnServer runs the contract on a foreign server. Its log is shared and its idempotency is EventStoreDB's own.
func runContractOnServer(t *testing.T, connection string) {
	t.Helper()
	open := func(t *testing.T) eventstore.Store { return connected(t, connection) }
	storetest.Run(t, open, storetest.Options{
		ComparesFirstIDOnly: true,
		Reopen: func(t *testing.T, s eventstore.Store) eventstore.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t)
		},
	})
}

// limit bounds every wait of these tests.
const limit = deadlinetest.DefaultLimit

func withTimeout(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadlinetest.Scale(d))
	t.Cleanup(cancel)
	return ctx
}

func proposals(n int) []eventstore.ProposedEvent {
	batch := make([]eventstore.ProposedEvent, n)
	for i := range batch {
		batch[i] = eventstore.ProposedEvent{ID: uuid.New(), Type: "test.happened.v1", Data: []byte(`{}`), Metadata: []byte(`{"actor":"system"}`)}
	}
	return batch
}

// appendUntilKnown sends an append again until its outcome is known.
func appendUntilKnown(ctx context.Context, s eventstore.Store, stream string, expected eventstore.Revision, batch []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	for {
		c, err := s.Append(ctx, stream, expected, batch)
		if ctx.Err() != nil || !errors.Is(err, eventstore.ErrUnknown) && !errors.Is(err, eventstore.ErrUnavailable) {
			return c, err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// eventually tries until it works.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(deadlinetest.Scale(limit))
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func mustAppend(t testing.TB, s eventstore.Store, stream string, batch []eventstore.ProposedEvent) eventstore.AppendResult {
	t.Helper()
	c, err := appendUntilKnown(withTimeout(t, limit), s, stream, eventstore.Any, batch)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func countEvents(t testing.TB, s eventstore.Store, stream string) (n int) {
	t.Helper()
	for _, err := range s.ReadStream(withTimeout(t, limit), stream, 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func appendMany(ctx context.Context, s eventstore.Store, stream string, n int, withRevision bool) error {
	for i := range n {
		expected := eventstore.Any
		if withRevision {
			expected = eventstore.Revision(i - 1)
		}
		c, err := appendUntilKnown(ctx, s, stream, expected, proposals(1))
		if err != nil || c.Revision != eventstore.Revision(i) {
			return fmt.Errorf("event %d of %s went to %+v: %w", i, stream, c, err)
		}
	}
	return nil
}

func mustCheckpoint(t testing.TB, s eventstore.Store) eventstore.Checkpoint {
	t.Helper()
	batch := proposals(1)
	c := mustAppend(t, s, "mark-"+batch[0].ID.String(), batch)
	var id uuid.UUID
	eventually(t, "identity", func() (err error) {
		id, err = s.Identity(withTimeout(t, limit))
		return err
	})
	return eventstore.Checkpoint{Log: id, Position: c.Position, Event: batch[0].ID}
}

// collect subscribes until it has received n events.
func collect(ctx context.Context, s eventstore.Store, after eventstore.Checkpoint, n int, ids *[]uuid.UUID) error {
	for signal, err := range s.Subscribe(ctx, after, eventstore.Filter{"a"}) {
		if err != nil {
			return err
		}
		if signal.Kind == eventstore.EventAppeared {
			*ids = append(*ids, signal.Event.ID)
		}
		if len(*ids) == n {
			return nil
		}
	}
	return errors.New("the subscription ended without an error")
}

// requireSameEvents compares the events of a subscription with a read of the log.
func requireSameEvents(t *testing.T, s eventstore.Store, after eventstore.Checkpoint, collected <-chan error, seen *[]uuid.UUID, n int) {
	t.Helper()
	if err := <-collected; err != nil {
		t.Fatalf("subscription, after %d of %d events: %v", len(*seen), n, err)
	}
	var want []uuid.UUID
	eventually(t, "read of the log", func() error {
		want = want[:0]
		for signal, err := range s.ReadAll(withTimeout(t, limit), after, eventstore.Filter{"a"}) {
			if err != nil {
				return err
			}
			if signal.Kind == eventstore.EventAppeared {
				want = append(want, signal.Event.ID)
			}
		}
		return nil
	})
	if len(want) != n {
		t.Fatalf("the log holds %d events, want %d", len(want), n)
	}
	for i := range want {
		if (*seen)[i] != want[i] {
			t.Fatalf("event %d of the subscription is another than the log's", i)
		}
	}
}

// shortTempDir is a folder with a short path: the path of a socket is limited, and t.TempDir may exceed the limit.
func shortTempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "es")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
