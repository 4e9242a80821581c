package esdb_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
	"lieudit/eventstore/storetest"
)

// served is a store over a node over a journal, which can be restarted.
type served struct {
	*esdb.Store
	node *running
}

// running is a journal served at an address until it is stopped.
type running struct {
	dir     string
	at      net.Addr
	address string // connection string
	stop    func()
}

// serve opens the journal in dir and serves it at an address ("127.0.0.1:0" or "unix:PATH") until the test ends.
func serve(t testing.TB, dir, address string) *running {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := node.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, dir, ln, j, node.Options{})
}

func start(t testing.TB, dir string, ln net.Listener, j *journal.Journal, o node.Options) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- node.New(j, o).Serve(ctx, ln) }()
	stopped := false
	r := &running{dir: dir, at: ln.Addr(), address: connection(ln.Addr())}
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

func connection(a net.Addr) string {
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
			storetest.RunWith(t, func(t *testing.T) eventstore.Store {
				r := serve(t, t.TempDir(), address(short(t)))
				return &served{connected(t, r.address), r}
			}, storetest.Options{Reopen: func(t *testing.T, s eventstore.Store) eventstore.Store {
				old := s.(*served).node
				old.stop()
				r := serve(t, old.dir, address(short(t)))
				return &served{connected(t, r.address), r}
			}})
		})
	}
	if connection := os.Getenv("LIEUDIT_TEST_EVENTSTORE"); connection != "" {
		t.Run("EventStoreDB", func(t *testing.T) {
			t.Parallel()
			foreign(t, connection)
		})
	}
}

// foreign runs the contract on a server that is not ours. Its log is shared and its idempotency is EventStoreDB's own.
func foreign(t *testing.T, connection string) {
	t.Helper()
	open := func(t *testing.T) eventstore.Store { return connected(t, connection) }
	storetest.RunWith(t, open, storetest.Options{
		FirstIDOnly: true,
		Reopen: func(t *testing.T, s eventstore.Store) eventstore.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t)
		},
	})
}
