package usage_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// testNode is a node that can be stopped and started on the same journal.
type testNode struct {
	folder, socket string
	stop           func()
}

func startTestNode(t *testing.T) *testNode {
	t.Helper()
	s := &testNode{folder: t.TempDir(), socket: filepath.Join(t.TempDir(), "s")}
	s.start(t)
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *testNode) start(t *testing.T) {
	t.Helper()
	j, err := journal.Open(s.folder, journal.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	n := node.New(j, node.Options{StopTimeout: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	go func() { ended <- n.Serve(ctx, ln) }()
	s.stop = func() {
		cancel()
		if err := errors.Join(<-ended, j.Close()); err != nil {
			t.Error(err)
		}
	}
}

func (s *testNode) connect(t *testing.T) eventstore.Store {
	t.Helper()
	store, err := esdb.Open(t.Context(), "esdb+unix://"+s.socket, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// clientCounts is what clients were told.
type clientCounts struct{ served, spent, refused atomic.Int64 }

func (c *clientCounts) record(err error) {
	switch capped := new(usage.QuotaExceededError); {
	case err == nil:
		c.served.Add(1)
	case errors.As(err, &capped):
		c.spent.Add(1)
	default:
		c.refused.Add(1)
		time.Sleep(time.Millisecond) // as a client does before it tries again
	}
}

// TestACapIsExactOnInstancesThatShareANode: with a node that only serves, and with one that is restarted in the middle.
func TestACapIsExactOnInstancesThatShareANode(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]int{"a node that stays": 0, "a node that is restarted": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit = 600
			s := startTestNode(t)
			terms := &fakeQuotas{caps: map[string]int64{"a": limit}}
			var clientsCounted clientCounts
			var clients sync.WaitGroup
			for range 3 {
				store := s.connect(t)
				m := startMeter(t, store, store, terms, time.Now)
				for range 16 {
					clients.Go(func() {
						for answered := 0; answered < 18; {
							_, err := m.CountRequest(t.Context(), grantOf("a", limit), "GET /me")
							if clientsCounted.record(err); !errors.Is(err, usage.ErrUnavailable) {
								answered++
							}
						}
					})
				}
			}
			for range restarts {
				time.Sleep(20 * time.Millisecond) // not synchronisation: the middle of whatever is going on
				s.stop()
				s.start(t)
			}
			clients.Wait()
			store := s.connect(t)
			stream := ledger.StreamName("a", plan.PeriodAt(anchor, time.Now()).First)
			settled := func() bool {
				f, _ := foldStream(t, store, stream)
				return f.Lines.Total() == clientsCounted.served.Load()
			}
			waitUntil(t, settled) // refunds of what was refused while its fate was unknown come behind
			_, events := foldStream(t, store, stream)
			t.Logf("served %d, spent %d, refused %d, %d events", clientsCounted.served.Load(), clientsCounted.spent.Load(), clientsCounted.refused.Load(), events)
			if clientsCounted.served.Load() > limit || restarts == 0 && clientsCounted.served.Load() != limit {
				t.Errorf("%d served, want %d", clientsCounted.served.Load(), limit)
			}
		})
	}
}
