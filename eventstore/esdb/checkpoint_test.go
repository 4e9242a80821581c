package esdb_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
	"lieudit/eventstore/node/faulttest"
)

// serveLog serves a log on a Unix socket until the test ends.
func serveLog(t *testing.T, log node.Log, faults faulttest.Faults) (address string) {
	t.Helper()
	ln, err := node.Listen(t.Context(), "unix:"+shortTempDir(t)+"/s")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- faults.Serve(ctx, log, node.Options{}, ln) }()
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

// checkpointReaders are the two ways to read after a checkpoint, each up to its first signal or error.
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
	for name, inside := range map[string]faulttest.InsideRecord{
		"refused": faulttest.InsideRecordRefused, "failed": faulttest.InsideRecordFailed, "silent": faulttest.InsideRecordSilent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openWithShortTimeout(t, serveLog(t, openJournal(t), faulttest.Faults{InsideRecord: inside}))
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

// failingLog is a log whose scans fail while a test wants them to.
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
	s := openWithShortTimeout(t, serveLog(t, log, faulttest.Faults{}))
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
	s := openWithShortTimeout(t, serveLog(t, log, faulttest.Faults{}))
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

func TestALogRestoredFromAnOlderCopyHasDiverged(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, r.addr)
	s := dial(t, p.connection())
	checkpoint := mustCheckpoint(t, s)
	mustAppend(t, s, "a-1", proposals(5))
	r.stop()
	copied := copyFolder(t, r.dir)
	r = serveFolder(t, r.dir, "127.0.0.1:0")
	p.upstream.Store(&r.addr)
	later := mustCheckpoint(t, s)
	mustAppend(t, s, "a-1", proposals(5))
	collected, reached := make(chan error, 1), make(chan struct{})
	go func() {
		events := 0
		for signal, err := range s.Subscribe(withTimeout(t, limit), checkpoint, eventstore.Filter{"a"}) {
			if err != nil {
				collected <- err
			}
			if signal.Kind == eventstore.EventAppeared && err == nil {
				events++
			}
			if events == 10 && err == nil {
				events++
				close(reached)
			}
		}
	}()
	<-reached
	r.stop()
	r = serveFolder(t, copied, "127.0.0.1:0")
	p.upstream.Store(&r.addr)
	p.closeAll()
	var diverged *eventstore.DivergedError
	if err := <-collected; !errors.As(err, &diverged) {
		t.Errorf("subscription: got %v, want it to have diverged", err)
	}
	mustAppend(t, s, "b-1", proposals(40)) // grows past the checkpoints of the other copy
	if err := serverCalls(s)["read of the log"](t.Context()); err != nil {
		t.Errorf("read of the restored log: %v", err)
	}
	for _, err := range s.ReadAll(withTimeout(t, limit), later, nil) {
		if !errors.As(err, &diverged) {
			t.Errorf("read after a mark that was lost: got %v, want it to have diverged", err)
		}
	}
}

func TestInstancesAgreeOnTheIdentityOfANewLog(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	ids := make(chan uuid.UUID, 10)
	for range cap(ids) {
		s := dial(t, r.connectionString)
		go func() {
			id, err := s.Identity(t.Context())
			if err != nil {
				t.Error(err)
			}
			ids <- id
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first || id == uuid.Nil {
			t.Errorf("got %s and %s", first, id)
		}
	}
}

func TestASubscriptionOutlivesAServerThatStalls(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serveFolder(t, t.TempDir(), "127.0.0.1:0").addr)
	s, other := dial(t, p.connection()), dial(t, connectionString(*p.upstream.Load()))
	checkpoint := mustCheckpoint(t, s)
	collected := make(chan error, 1)
	var seen []uuid.UUID
	go func() { collected <- collect(withTimeout(t, limit), s, checkpoint, 30, &seen) }()
	mustAppend(t, s, "a-1", proposals(10))
	p.holdAll()
	mustAppend(t, other, "a-1", proposals(10)) // the log continues meanwhile
	eventually(t, "the stall is noticed", func() error {
		if s.Health() == nil {
			return errors.New("still healthy")
		}
		return nil
	})
	p.releaseAll()
	mustAppend(t, s, "a-1", proposals(10))
	requireSameEvents(t, other, checkpoint, collected, &seen, 30)
}

func TestAnotherLogAtTheSameAddressHasDiverged(t *testing.T) {
	t.Parallel()
	r := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, r.addr)
	s := dial(t, p.connection())
	checkpoint := mustCheckpoint(t, s)
	collected := make(chan error, 1)
	var seen []uuid.UUID
	go func() { collected <- collect(withTimeout(t, limit), s, checkpoint, 1000, &seen) }()
	fresh := serveFolder(t, t.TempDir(), "127.0.0.1:0")
	p.upstream.Store(&fresh.addr)
	r.stop()
	var diverged *eventstore.DivergedError
	if err := <-collected; !errors.As(err, &diverged) || diverged.Checkpoint.Log != checkpoint.Log {
		t.Errorf("got %v, want it to have diverged", err)
	}
	if now := mustCheckpoint(t, s); now.Log == checkpoint.Log {
		t.Error("another log has the same identity")
	}
}
