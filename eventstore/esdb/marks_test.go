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

// serveLog serves a log on a Unix socket until the test ends.
func serveLog(t *testing.T, log node.Log, o node.Options) (address string) {
	t.Helper()
	ln, err := node.Listen(t.Context(), "unix:"+shortTempDir(t)+"/s")
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
	return connectionString(ln.Addr())
}

func openJournal(t *testing.T) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func openWithShortTimeout(t *testing.T, connection string) *esdb.Store {
	t.Helper()
	s := esdb.OpenWithCheckpointTimeout(t, connection, 100*time.Millisecond)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// checkpointReaders are the two ways to read after a mark, until their first word.
func checkpointReaders(s eventstore.Store) map[string]func(context.Context, eventstore.Checkpoint) error {
	first := func(seq iter.Seq2[eventstore.Signal, error]) error {
		for _, err := range seq {
			return err
		}
		return nil
	}
	return map[string]func(context.Context, eventstore.Checkpoint) error{
		"ReadAll":   func(ctx context.Context, m eventstore.Checkpoint) error { return first(s.ReadAll(ctx, m, nil)) },
		"Subscribe": func(ctx context.Context, m eventstore.Checkpoint) error { return first(s.Subscribe(ctx, m, nil)) },
	}
}

func TestACheckpointInsideARecordHasDivergedHoweverTheServerSaysIt(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]node.InsideRecord{
		"refused": node.InsideRecordRefused, "failed": node.InsideRecordFailed, "silent": node.InsideRecordSilent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openWithShortTimeout(t, serveLog(t, openJournal(t), node.Options{Faults: node.Faults{InsideRecord: inside}}))
			good := mustCheckpoint(t, s)
			mustAppend(t, s, "a-1", proposals(3))
			for by := range eventstore.Position(3) {
				inside := good
				inside.Position += by - 1
				for way, look := range checkpointReaders(s) {
					err := look(withTimeout(t, limit), inside)
					var diverged *eventstore.DivergedError
					if by == 1 && err != nil || by != 1 && (!errors.As(err, &diverged) || diverged.Checkpoint != inside) {
						t.Errorf("%s %d bytes after an event's place: got %v", way, int64(by)-1, err)
					}
				}
			}
		})
	}
}

// failingLog is a log whose scans fail as long as a test wants it.
type failingLog struct {
	node.Log
	failure atomic.Pointer[func(from eventstore.Position, dir eventstore.Direction) error]
}

func (m *failingLog) Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	if fail := m.failure.Load(); fail != nil {
		if err := (*fail)(from, dir); err != nil {
			return func(yield func(eventstore.RecordedEvent, error) bool) { yield(eventstore.RecordedEvent{}, err) }
		}
	}
	return m.Log.Scan(ctx, from, dir)
}

func TestAServerThatFailsToReadItsEndTooHasNotLostACheckpoint(t *testing.T) {
	t.Parallel()
	log := &failingLog{Log: openJournal(t)}
	s := openWithShortTimeout(t, serveLog(t, log, node.Options{}))
	checkpoint := mustCheckpoint(t, s)
	mustAppend(t, s, "a-1", proposals(1))
	fail := func(eventstore.Position, eventstore.Direction) error {
		return status.Error(codes.Unknown, "Unexpected ReadAllResult: Error")
	}
	log.failure.Store(&fail)
	ctx, cancel := context.WithCancel(withTimeout(t, limit))
	collected := make(chan error, 1)
	go func() { collected <- checkpointReaders(s)["Subscribe"](ctx, checkpoint) }()
	for range 3 {
		if err := checkpointReaders(s)["ReadAll"](ctx, checkpoint); !errors.Is(err, eventstore.ErrUnavailable) {
			t.Errorf("got %v, want unavailable", err)
		}
	}
	log.failure.Store(nil)
	if err := <-collected; err != nil {
		t.Errorf("a subscription over the trouble ended: %v", err)
	}
	cancel()
}

func TestOneFailureIsNotEnoughToLoseACheckpoint(t *testing.T) {
	t.Parallel()
	log := &failingLog{Log: openJournal(t)}
	s := openWithShortTimeout(t, serveLog(t, log, node.Options{}))
	checkpoint := mustCheckpoint(t, s)
	mustAppend(t, s, "a-1", proposals(1))
	for way, look := range checkpointReaders(s) {
		var failed atomic.Bool
		fail := func(from eventstore.Position, dir eventstore.Direction) error {
			if dir == eventstore.Forward && from == checkpoint.Position && failed.CompareAndSwap(false, true) {
				return fmt.Errorf("one read of %d fails", from)
			}
			return nil
		}
		log.failure.Store(&fail)
		if err := look(withTimeout(t, limit), checkpoint); err != nil || !failed.Load() {
			t.Errorf("%s: got %v after one failure (%t), want the mark to stand", way, err, failed.Load())
		}
	}
}
