package esdb_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

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
	mustAppend(t, s, "b-1", proposals(40)) // grows past the marks of the other copy
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
	mustAppend(t, other, "a-1", proposals(10)) // the log goes on meanwhile
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
