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
const limit = deadlinetest.DefaultLimit

func withTimeout(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadlinetest.Scale(d))
	t.Cleanup(cancel)
	return ctx
}

func proposals(n int) []eventstore.ProposedEvent {
	batch := make([]eventstore.ProposedEvent, n)
	for i := range batch {
		batch[i] = eventstore.ProposedEvent{ID: uuid.New(), Type: "test.happened.v1", Data: []byte(`{}`), Metadata: []byte(`{"actor":"system"}`)}
	}
	return batch
}

// appendUntilKnown sends a batch until its fate is known.
func appendUntilKnown(ctx context.Context, s eventstore.Store, stream string, expected eventstore.Revision, batch []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
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
	deadline := time.Now().Add(deadlinetest.Scale(limit))
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

func mustAppend(t testing.TB, s eventstore.Store, stream string, batch []eventstore.ProposedEvent) eventstore.AppendResult {
	t.Helper()
	c, err := appendUntilKnown(withTimeout(t, limit), s, stream, eventstore.Any, batch)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func countEvents(t testing.TB, s eventstore.Store, stream string) (n int) {
	t.Helper()
	for _, err := range s.ReadStream(withTimeout(t, limit), stream, 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func appendMany(ctx context.Context, s eventstore.Store, stream string, n int, withRevision bool) error {
	for i := range n {
		expected := eventstore.Any
		if withRevision {
			expected = eventstore.Revision(i - 1)
		}
		c, err := appendUntilKnown(ctx, s, stream, expected, proposals(1))
		if err != nil || c.Revision != eventstore.Revision(i) {
			return fmt.Errorf("event %d of %s went to %+v: %w", i, stream, c, err)
		}
	}
	return nil
}

func mustCheckpoint(t testing.TB, s eventstore.Store) eventstore.Checkpoint {
	t.Helper()
	batch := proposals(1)
	c := mustAppend(t, s, "mark-"+batch[0].ID.String(), batch)
	var id uuid.UUID
	eventually(t, "identity", func() (err error) {
		id, err = s.Identity(withTimeout(t, limit))
		return err
	})
	return eventstore.Checkpoint{Log: id, Position: c.Position, Event: batch[0].ID}
}

// collect subscribes until n events were told.
func collect(ctx context.Context, s eventstore.Store, after eventstore.Checkpoint, n int, ids *[]uuid.UUID) error {
	for signal, err := range s.Subscribe(ctx, after, eventstore.Filter{"a"}) {
		if err != nil {
			return err
		}
		if signal.Kind == eventstore.EventAppeared {
			*ids = append(*ids, signal.Event.ID)
		}
		if len(*ids) == n {
			return nil
		}
	}
	return errors.New("the subscription ended without an error")
}

// requireSameEvents compares what a subscription told with a read of the log.
func requireSameEvents(t *testing.T, s eventstore.Store, after eventstore.Checkpoint, collected <-chan error, seen *[]uuid.UUID, n int) {
	t.Helper()
	if err := <-collected; err != nil {
		t.Fatalf("subscription, after %d of %d events: %v", len(*seen), n, err)
	}
	var want []uuid.UUID
	eventually(t, "read of the log", func() error {
		want = want[:0]
		for signal, err := range s.ReadAll(withTimeout(t, limit), after, eventstore.Filter{"a"}) {
			if err != nil {
				return err
			}
			if signal.Kind == eventstore.EventAppeared {
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
