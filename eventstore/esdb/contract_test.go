package esdb_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
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
	connectionString string // connection string
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
	return serveJournal(t, dir, ln, j, node.Options{})
}

func serveJournal(t testing.TB, dir string, ln net.Listener, j *journal.Journal, o node.Options) *runningNode {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- node.New(j, o).Serve(ctx, ln) }()
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

// connected is a store whose connection is there.
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
	if os.Getenv("LIEUDIT_TEST_LONG") != "" { // what differs between the two is the transport, which the tests of faults use
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

// serveWithFaults is serve by a node that fails inside a record and drops repeats of what is on its way.
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
	return serveJournal(t, dir, ln, j, node.Options{Faults: node.Faults{InsideRecord: node.InsideRecordFailed, RepeatTimeout: 50 * time.Millisecond}})
}

// runContractOnServer runs the contract on a server that is not ours. Its log is shared and its idempotency is EventStoreDB's own.
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
