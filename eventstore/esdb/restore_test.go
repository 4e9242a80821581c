package esdb_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

func TestALogRestoredFromAnOlderCopyHasDiverged(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, r.at)
	s := dial(t, p.connection())
	mark := here(t, s)
	land(t, s, "a-1", proposals(5))
	r.stop()
	copied := copyFolder(t, r.dir)
	r = serve(t, r.dir, "127.0.0.1:0")
	p.upstream.Store(&r.at)
	later := here(t, s)
	land(t, s, "a-1", proposals(5))
	told, reached := make(chan error, 1), make(chan struct{})
	go func() {
		events := 0
		for signal, err := range s.Subscribe(within(t, limit), mark, eventstore.Filter{"a"}) {
			if err != nil {
				told <- err
			}
			if signal.Kind == eventstore.Event && err == nil {
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
	r = serve(t, copied, "127.0.0.1:0")
	p.upstream.Store(&r.at)
	p.cut()
	var diverged *eventstore.DivergedError
	if err := <-told; !errors.As(err, &diverged) {
		t.Errorf("subscription: got %v, want it to have diverged", err)
	}
	land(t, s, "b-1", proposals(40)) // grows past the marks of the other copy
	if err := calls(s)["read of the log"](t.Context()); err != nil {
		t.Errorf("read of the restored log: %v", err)
	}
	for _, err := range s.ReadAll(within(t, limit), later, nil) {
		if !errors.As(err, &diverged) {
			t.Errorf("read after a mark that was lost: got %v, want it to have diverged", err)
		}
	}
}

func TestInstancesAgreeOnTheIdentityOfANewLog(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	ids := make(chan uuid.UUID, 10)
	for range cap(ids) {
		s := dial(t, r.address)
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
	p := newProxy(t, serve(t, t.TempDir(), "127.0.0.1:0").at)
	s, other := dial(t, p.connection()), dial(t, connection(*p.upstream.Load()))
	mark := here(t, s)
	told := make(chan error, 1)
	var seen []uuid.UUID
	go func() { told <- collect(within(t, limit), s, mark, 30, &seen) }()
	land(t, s, "a-1", proposals(10))
	p.stall()
	land(t, other, "a-1", proposals(10)) // the log goes on meanwhile
	eventually(t, "the stall is noticed", func() error {
		if s.Health() == nil {
			return errors.New("still healthy")
		}
		return nil
	})
	p.flow()
	land(t, s, "a-1", proposals(10))
	check(t, other, mark, told, &seen, 30)
}

func TestAnotherLogAtTheSameAddressHasDiverged(t *testing.T) {
	t.Parallel()
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, r.at)
	s := dial(t, p.connection())
	mark := here(t, s)
	told := make(chan error, 1)
	var seen []uuid.UUID
	go func() { told <- collect(within(t, limit), s, mark, 1000, &seen) }()
	fresh := serve(t, t.TempDir(), "127.0.0.1:0")
	p.upstream.Store(&fresh.at)
	r.stop()
	var diverged *eventstore.DivergedError
	if err := <-told; !errors.As(err, &diverged) || diverged.Mark.Log != mark.Log {
		t.Errorf("got %v, want it to have diverged", err)
	}
	if now := here(t, s); now.Log == mark.Log {
		t.Error("another log has the same identity")
	}
}
