package esdb_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
)

// serveWith serves a log on a Unix socket until the test ends.
func serveWith(t *testing.T, log node.Log, o node.Options) (connectionString string) {
	t.Helper()
	ln, err := node.Listen(t.Context(), "unix:"+short(t)+"/s")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- node.New(log, o).Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, log.Close()); err != nil {
			t.Error(err)
		}
	})
	return connection(ln.Addr())
}

func openJournal(t *testing.T) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func impatient(t *testing.T, connection string) *esdb.Store {
	t.Helper()
	s := esdb.OpenImpatient(t, connection, 100*time.Millisecond)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// lookups are the two ways to read after a mark, until their first word.
func lookups(s eventstore.Store) map[string]func(context.Context, eventstore.Mark) error {
	first := func(seq iter.Seq2[eventstore.Signal, error]) error {
		for _, err := range seq {
			return err
		}
		return nil
	}
	return map[string]func(context.Context, eventstore.Mark) error{
		"ReadAll":   func(ctx context.Context, m eventstore.Mark) error { return first(s.ReadAll(ctx, m, nil)) },
		"Subscribe": func(ctx context.Context, m eventstore.Mark) error { return first(s.Subscribe(ctx, m, nil)) },
	}
}

func TestAMarkInsideARecordHasDivergedHoweverTheServerSaysIt(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]node.InsideRecord{
		"refused": node.RefusedInside, "failed": node.FailedInside, "silent": node.SilentInside,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := impatient(t, serveWith(t, openJournal(t), node.Options{Faults: node.Faults{InsideRecord: inside}}))
			good := here(t, s)
			land(t, s, "a-1", proposals(3))
			for by := range eventstore.Position(3) {
				inside := good
				inside.Position += by - 1
				for way, look := range lookups(s) {
					err := look(within(t, limit), inside)
					var diverged *eventstore.DivergedError
					if by == 1 && err != nil || by != 1 && (!errors.As(err, &diverged) || diverged.Mark != inside) {
						t.Errorf("%s %d bytes after an event's place: got %v", way, int64(by)-1, err)
					}
				}
			}
		})
	}
}

// moody is a log whose scans fail as long as a test wants it.
type moody struct {
	node.Log
	fail atomic.Pointer[func(from eventstore.Position, dir eventstore.Direction) error]
}

func (m *moody) Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	if fail := m.fail.Load(); fail != nil {
		if err := (*fail)(from, dir); err != nil {
			return func(yield func(eventstore.Recorded, error) bool) { yield(eventstore.Recorded{}, err) }
		}
	}
	return m.Log.Scan(ctx, from, dir)
}

func TestAServerThatFailsToReadItsEndTooHasNotLostAMark(t *testing.T) {
	t.Parallel()
	log := &moody{Log: openJournal(t)}
	s := impatient(t, serveWith(t, log, node.Options{}))
	mark := here(t, s)
	land(t, s, "a-1", proposals(1))
	fail := func(eventstore.Position, eventstore.Direction) error {
		return status.Error(codes.Unknown, "Unexpected ReadAllResult: Error")
	}
	log.fail.Store(&fail)
	ctx, cancel := context.WithCancel(within(t, limit))
	told := make(chan error, 1)
	go func() { told <- lookups(s)["Subscribe"](ctx, mark) }()
	for range 3 {
		if err := lookups(s)["ReadAll"](ctx, mark); !errors.Is(err, eventstore.ErrUnavailable) {
			t.Errorf("got %v, want unavailable", err)
		}
	}
	log.fail.Store(nil)
	if err := <-told; err != nil {
		t.Errorf("a subscription over the trouble ended: %v", err)
	}
	cancel()
}

func TestOneFailureIsNotEnoughToLoseAMark(t *testing.T) {
	t.Parallel()
	log := &moody{Log: openJournal(t)}
	s := impatient(t, serveWith(t, log, node.Options{}))
	mark := here(t, s)
	land(t, s, "a-1", proposals(1))
	for way, look := range lookups(s) {
		var failed atomic.Bool
		fail := func(from eventstore.Position, dir eventstore.Direction) error {
			if dir == eventstore.Forward && from == mark.Position && failed.CompareAndSwap(false, true) {
				return fmt.Errorf("one read of %d fails", from)
			}
			return nil
		}
		log.fail.Store(&fail)
		if err := look(within(t, limit), mark); err != nil || !failed.Load() {
			t.Errorf("%s: got %v after one failure (%t), want the mark to stand", way, err, failed.Load())
		}
	}
}
