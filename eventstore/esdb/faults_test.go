package esdb_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
)

// limit bounds every wait of these tests.
const limit = 30 * time.Second

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func proposals(n int) []eventstore.Proposed {
	batch := make([]eventstore.Proposed, n)
	for i := range batch {
		batch[i] = eventstore.Proposed{ID: uuid.New(), Type: "test.happened.v1", Data: []byte(`{}`), Metadata: []byte(`{"actor":"system"}`)}
	}
	return batch
}

// settle sends a batch until its fate is known.
func settle(ctx context.Context, s eventstore.Store, stream string, expected eventstore.Revision, batch []eventstore.Proposed) (eventstore.Committed, error) {
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
	deadline := time.Now().Add(limit)
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

func land(t testing.TB, s eventstore.Store, stream string, batch []eventstore.Proposed) eventstore.Committed {
	t.Helper()
	c, err := settle(within(t, limit), s, stream, eventstore.Any, batch)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCallsFailAtOnceWhileTheServerIsDown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(short(t), "s")
	s := dial(t, "esdb+unix://"+path)
	for name, call := range calls(s) {
		for i, most := range []time.Duration{time.Second, 100 * time.Millisecond} {
			began := time.Now()
			if err := call(t.Context()); !errors.Is(err, eventstore.ErrUnavailable) {
				t.Errorf("%s: got %v, want unavailable", name, err)
			}
			if took := time.Since(began); took > most {
				t.Errorf("%s, time %d, took %v, want at most %v", name, i+1, took, most)
			}
		}
	}
	if s.Health() == nil {
		t.Error("healthy without a server")
	}
	serve(t, t.TempDir(), "unix:"+path)
	land(t, s, "a-1", proposals(1))
	eventually(t, "health", s.Health)
}

// calls are all the calls that ask the server once.
func calls(s *esdb.Store) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"identity": func(ctx context.Context) error { _, err := s.Identity(ctx); return err },
		"append": func(ctx context.Context) error {
			_, err := s.Append(ctx, "a-1", eventstore.Any, proposals(1))
			return err
		},
		"read of a stream": func(ctx context.Context) error {
			for _, err := range s.ReadStream(ctx, "a-1", 0, eventstore.Forward) {
				return err
			}
			return nil
		},
		"read of the log": func(ctx context.Context) error {
			for _, err := range s.ReadAll(ctx, eventstore.Mark{}, nil) {
				return err
			}
			return nil
		},
	}
}

func TestNoCallOutlivesItsContextOnAStalledServer(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serve(t, t.TempDir(), "127.0.0.1:0").at)
	s := dial(t, p.connection())
	land(t, s, "a-1", proposals(1))
	p.stall()
	for name, call := range calls(s) {
		began := time.Now()
		err := call(within(t, 200*time.Millisecond))
		if err == nil {
			t.Errorf("%s succeeded on a stalled server", name)
		}
		if took := time.Since(began); took > 700*time.Millisecond {
			t.Errorf("%s outlived its context: %v", name, took)
		}
	}
	eventually(t, "a stall is noticed", func() error {
		if s.Health() == nil {
			return errors.New("still healthy")
		}
		return nil
	})
	p.flow()
	land(t, s, "a-1", proposals(1))
	eventually(t, "health", s.Health)
}

func TestACallWithoutDeadlineEndsSoonAfterTheServerStalls(t *testing.T) {
	t.Parallel()
	p := newProxy(t, serve(t, t.TempDir(), "127.0.0.1:0").at)
	s := dial(t, p.connection())
	land(t, s, "a-1", proposals(1))
	p.mute.Store(true) // the server gets the append, its answer is lost
	batch := proposals(2)
	began := time.Now()
	if _, err := s.Append(t.Context(), "a-1", 0, batch); !errors.Is(err, eventstore.ErrUnknown) {
		t.Fatalf("got %v, want unknown", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	p.flow()
	c, err := settle(within(t, limit), s, "a-1", 0, batch)
	if err != nil || c.Revision != 2 {
		t.Errorf("sent again: %+v, %v, want revision 2", c, err)
	}
	if n := count(t, s, "a-1"); n != 3 {
		t.Errorf("stream holds %d events, want 3", n)
	}
}

func count(t testing.TB, s eventstore.Store, stream string) (n int) {
	t.Helper()
	for _, err := range s.ReadStream(within(t, limit), stream, 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestAppendsLandOnceThroughCutsAndRestarts(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 40
	ctx := within(t, limit)
	r := serve(t, t.TempDir(), "127.0.0.1:0")
	p := newProxy(t, r.at)
	s := dial(t, p.connection())
	mark := here(t, s)
	told := make(chan error, 1)
	var seen []uuid.UUID
	go func() { told <- collect(ctx, s, mark, writers*each, &seen) }()
	var writing errgroup.Group
	for w := range writers {
		writing.Go(func() error { return write(ctx, s, fmt.Sprintf("a-%d", w), each, w%2 == 0) })
	}
	done := make(chan error, 1)
	go func() { done <- writing.Wait() }()
	for i := 0; ; i++ {
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("after %d faults: %v", i, err)
			}
			check(t, s, mark, told, &seen, writers*each)
			return
		case <-time.After(40 * time.Millisecond):
			r = misbehave(t, p, r, i)
		}
	}
}

// misbehave does the i-th bad thing to the server.
func misbehave(t *testing.T, p *proxy, r *running, i int) *running {
	t.Helper()
	switch i % 5 {
	case 0, 2:
		p.cut()
	case 1: // what was asked is done, the answers are lost
		p.mute.Store(true)
		time.Sleep(5 * time.Millisecond)
		p.cut()
		p.flow()
	case 3: // nothing that was asked arrives
		p.deaf.Store(true)
		time.Sleep(5 * time.Millisecond)
		p.cut()
		p.flow()
	case 4:
		r.stop()
		r = serve(t, r.dir, "127.0.0.1:0")
		up := r.at
		p.upstream.Store(&up)
		p.cut()
	}
	return r
}

func write(ctx context.Context, s eventstore.Store, stream string, n int, exact bool) error {
	for i := range n {
		expected := eventstore.Any
		if exact {
			expected = eventstore.Revision(i - 1)
		}
		c, err := settle(ctx, s, stream, expected, proposals(1))
		if err != nil || c.Revision != eventstore.Revision(i) {
			return fmt.Errorf("event %d of %s went to %+v: %w", i, stream, c, err)
		}
	}
	return nil
}

func here(t testing.TB, s eventstore.Store) eventstore.Mark {
	t.Helper()
	batch := proposals(1)
	c := land(t, s, "mark-"+batch[0].ID.String(), batch)
	var id uuid.UUID
	eventually(t, "identity", func() (err error) {
		id, err = s.Identity(within(t, limit))
		return err
	})
	return eventstore.Mark{Log: id, Position: c.Position, Event: batch[0].ID}
}

// collect subscribes until n events were told.
func collect(ctx context.Context, s eventstore.Store, after eventstore.Mark, n int, ids *[]uuid.UUID) error {
	for signal, err := range s.Subscribe(ctx, after, eventstore.Filter{"a"}) {
		if err != nil {
			return err
		}
		if signal.Kind == eventstore.Event {
			*ids = append(*ids, signal.Event.ID)
		}
		if len(*ids) == n {
			return nil
		}
	}
	return errors.New("the subscription ended without an error")
}

// check compares what a subscription told with a read of the log.
func check(t *testing.T, s eventstore.Store, after eventstore.Mark, told <-chan error, seen *[]uuid.UUID, n int) {
	t.Helper()
	if err := <-told; err != nil {
		t.Fatalf("subscription, after %d of %d events: %v", len(*seen), n, err)
	}
	var want []uuid.UUID
	eventually(t, "read of the log", func() error {
		want = want[:0]
		for signal, err := range s.ReadAll(within(t, limit), after, eventstore.Filter{"a"}) {
			if err != nil {
				return err
			}
			if signal.Kind == eventstore.Event {
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
