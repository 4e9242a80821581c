package esdb_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/schemas/deadlinetest"
)

// limit bounds every wait of these tests.
const limit = deadlinetest.Hang

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadlinetest.Limit(d))
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
	deadline := time.Now().Add(deadlinetest.Limit(limit))
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
