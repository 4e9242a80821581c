package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// storeUnderTest is the store under test with the short-hands the rules are written in.
type storeUnderTest struct {
	eventstore.Store
	reopen           func(eventstore.Store) eventstore.Store
	reopenWithoutIDs func(eventstore.Store) eventstore.Store
}

// newCategory is one that nobody else writes to.
func newCategory() string {
	id := uuid.New()
	return fmt.Sprintf("t%x", id[:8])
}

// newEvents makes n newEvents that nobody made before.
func newEvents(n int) []eventstore.ProposedEvent {
	batch := make([]eventstore.ProposedEvent, n)
	for i := range batch {
		id := uuid.New()
		batch[i] = eventstore.ProposedEvent{
			ID: id, Type: "test.happened.v1",
			Data:     fmt.Appendf(nil, `{"n":%d,"id":%q}`, i, id),
			Metadata: []byte(`{"actor":"system"}`),
		}
	}
	return batch
}

// appendEvents appends n single events, in batches of 100, and returns them.
func (l *storeUnderTest) appendEvents(ctx context.Context, stream string, n int) ([]eventstore.ProposedEvent, error) {
	all := newEvents(n)
	for i := 0; i < n; i += 100 {
		if _, err := l.Append(ctx, stream, eventstore.Revision(i-1), all[i:min(i+100, n)]); err != nil {
			return nil, fmt.Errorf("filling %s from %d: %w", stream, i, err)
		}
	}
	return all, nil
}

// appendCheckpoint is a mark at what is the end of the log just now.
func (l *storeUnderTest) appendCheckpoint(ctx context.Context) (eventstore.Checkpoint, error) {
	id, err := l.Identity(ctx)
	if err != nil {
		return eventstore.Checkpoint{}, err
	}
	batch := newEvents(1)
	c, err := l.Append(ctx, newCategory()+"-mark", eventstore.NoStream, batch)
	return eventstore.Checkpoint{Log: id, Position: c.Position, Event: batch[0].ID}, err
}

// readStream reads a whole readStream.
func (l *storeUnderTest) readStream(ctx context.Context, stream string) ([]eventstore.RecordedEvent, error) {
	return collect(l.ReadStream(ctx, stream, 0, eventstore.Forward))
}

// checkStream says whether the stream checkStream exactly want, in that order from revision 0.
func (l *storeUnderTest) checkStream(ctx context.Context, stream string, want []eventstore.ProposedEvent) error {
	got, err := l.readStream(ctx, stream)
	if err != nil {
		return fmt.Errorf("reading %s: %w", stream, err)
	}
	return checkEvents(got, stream, want)
}

func checkEvents(got []eventstore.RecordedEvent, stream string, want []eventstore.ProposedEvent) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s holds %d events, want %d", stream, len(got), len(want))
	}
	for i := range got {
		if err := checkEvent(got[i], stream, eventstore.Revision(i), want[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkEvent(got eventstore.RecordedEvent, stream string, at eventstore.Revision, want eventstore.ProposedEvent) error {
	switch {
	case got.Stream != stream || got.Revision != at:
		return fmt.Errorf("event is at %s@%d, want %s@%d", got.Stream, got.Revision, stream, at)
	case got.ID != want.ID || got.Type != want.Type:
		return fmt.Errorf("%s@%d is %s %s, want %s %s", stream, at, got.Type, got.ID, want.Type, want.ID)
	case !bytes.Equal(got.Data, want.Data) || !bytes.Equal(got.Metadata, want.Metadata):
		return fmt.Errorf("%s@%d came back with other bytes: %.80q %.80q, want %.80q %.80q", stream, at, got.Data, got.Metadata, want.Data, want.Metadata)
	case got.Time.Location() != time.UTC:
		return fmt.Errorf("%s@%d was recorded at %v, not UTC", stream, at, got.Time)
	}
	return nil
}

// collect reads a sequence to its end and checks that an error is its last element.
func collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var all []T
	var failed error
	for v, err := range seq {
		if failed != nil {
			return all, fmt.Errorf("the sequence goes on after its error %v", failed)
		}
		if failed = err; err == nil {
			all = append(all, v)
		}
	}
	return all, failed
}

// checkErrorIs fails unless err is target.
func checkErrorIs(what string, err, target error) error {
	if errors.Is(err, target) {
		return nil
	}
	return fmt.Errorf("%s: got error %v, want %v", what, err, target)
}

// checkConflict fails unless err is a checkConflict of the stream at current.
func checkConflict(what string, err error, stream string, expected, current eventstore.Revision) error {
	var c *eventstore.ConflictError
	if !errors.As(err, &c) {
		return fmt.Errorf("%s: got error %v, want a conflict", what, err)
	}
	if want := (eventstore.ConflictError{Stream: stream, Expected: expected, Current: current}); *c != want {
		return fmt.Errorf("%s: got conflict %+v, want %+v", what, *c, want)
	}
	if !errors.Is(err, eventstore.ErrConflict) {
		return fmt.Errorf("%s: the conflict is not ErrConflict", what)
	}
	return nil
}
