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

// server is a node that can be stopped and started on the same journal.
type server struct {
	folder, socket string
	stop           func()
}

func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{folder: t.TempDir(), socket: filepath.Join(t.TempDir(), "s")}
	s.start(t)
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *server) start(t *testing.T) {
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
	n := node.New(j, node.Options{Grace: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	go func() { ended <- n.Serve(ctx, ln) }()
	s.stop = func() {
		cancel()
		if err := errors.Join(<-ended, j.Close()); err != nil {
			t.Error(err)
		}
	}
}

func (s *server) connect(t *testing.T) eventstore.Store {
	t.Helper()
	store, err := esdb.Open(t.Context(), "esdb+unix://"+s.socket, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// tally is what clients were told.
type tally struct{ served, spent, refused atomic.Int64 }

func (y *tally) note(err error) {
	switch capped := new(usage.SpentError); {
	case err == nil:
		y.served.Add(1)
	case errors.As(err, &capped):
		y.spent.Add(1)
	default:
		y.refused.Add(1)
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
			s := startServer(t)
			terms := &volumes{caps: map[string]int64{"a": limit}}
			var told tally
			var clients sync.WaitGroup
			for range 3 {
				store := s.connect(t)
				l := instance(t, store, store, terms, time.Now)
				for range 16 {
					clients.Go(func() {
						for answered := 0; answered < 18; {
							_, err := l.Count(t.Context(), holder("a", limit), "GET /me")
							if told.note(err); !errors.Is(err, usage.ErrUnavailable) {
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
			stream := ledger.Stream("a", plan.PeriodAt(anchor, time.Now()).First)
			settled := func() bool { f, _ := refold(t, store, stream); return f.Lines.Total() == told.served.Load() }
			until(t, settled) // refunds of what was refused while its fate was unknown come behind
			_, events := refold(t, store, stream)
			t.Logf("served %d, spent %d, refused %d, %d events", told.served.Load(), told.spent.Load(), told.refused.Load(), events)
			if told.served.Load() > limit || restarts == 0 && told.served.Load() != limit {
				t.Errorf("%d served, want %d", told.served.Load(), limit)
			}
		})
	}
}
