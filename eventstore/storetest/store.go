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

// storeUnderTest is a store with the helpers that the rules are written with.
type storeUnderTest struct {
	eventstore.Store
	reopen           func(eventstore.Store) eventstore.Store
	reopenWithoutIDs func(eventstore.Store) eventstore.Store
}

// newCategory makes a category to which no other writer appends.
func newCategory() string {
	id := uuid.New()
	return fmt.Sprintf("t%x", id[:8])
}

// newEvents makes n events with new ids. Their data differ, so that events that were exchanged are noticed.
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

// appendEvents appends n events to a stream that does not exist yet, in batches of 100, and returns them.
func (l *storeUnderTest) appendEvents(ctx context.Context, stream string, n int) ([]eventstore.ProposedEvent, error) {
	all := newEvents(n)
	for i := 0; i < n; i += 100 {
		if _, err := l.Append(ctx, stream, eventstore.Revision(i-1), all[i:min(i+100, n)]); err != nil {
			return nil, fmt.Errorf("filling %s from %d: %w", stream, i, err)
		}
	}
	return all, nil
}

// appendCheckpoint appends an event to a stream of its own and returns its checkpoint. All that a rule appends afterwards is
// behind it.
func (l *storeUnderTest) appendCheckpoint(ctx context.Context) (eventstore.Checkpoint, error) {
	id, err := l.Identity(ctx)
	if err != nil {
		return eventstore.Checkpoint{}, err
	}
	batch := newEvents(1)
	c, err := l.Append(ctx, newCategory()+"-checkpoint", eventstore.NoStream, batch)
	return eventstore.Checkpoint{Log: id, Position: c.Position, Event: batch[0].ID}, err
}

// reopenedBy reopens the log, by one of the two ways of Options. The old store is closed and must not be used any more.
func (l *storeUnderTest) reopenedBy(reopen func(eventstore.Store) eventstore.Store) *storeUnderTest {
	return &storeUnderTest{Store: reopen(l.Store), reopen: l.reopen, reopenWithoutIDs: l.reopenWithoutIDs}
}

// readStream reads a whole stream.
func (l *storeUnderTest) readStream(ctx context.Context, stream string) ([]eventstore.RecordedEvent, error) {
	return collect(l.ReadStream(ctx, stream, 0, eventstore.Forward))
}

// checkStream fails unless a stream holds exactly the events of want, in that order from revision 0.
func (l *storeUnderTest) checkStream(ctx context.Context, stream string, want []eventstore.ProposedEvent) error {
	got, err := l.readStream(ctx, stream)
	if err != nil {
		return fmt.Errorf("reading %s: %w", stream, err)
	}
	return checkEvents(got, stream, want)
}

// checkEvents fails unless got is exactly the events of want, in that order from revision 0 of the stream.
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

// checkEvent fails unless got is the event want at that revision of the stream, with the same bytes and a time in UTC.
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

// collect reads a sequence to its end. It fails when the sequence continues after an error.
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

// checkConflict fails unless err is a *ConflictError with exactly this stream, expectation and current revision. A command
// handler retries with the revision that it names.
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

// readSignals collects what a reader of the whole log has got so far. Every signal of every rule goes through addSignal, so
// that order, checkpoints and filters are checked wherever a rule reads the log.
type readSignals struct {
	logID    uuid.UUID
	filter   eventstore.Filter
	last     eventstore.Checkpoint // of the last signal, or from which the read began
	events   []eventstore.RecordedEvent
	signals  []eventstore.Signal
	caughtUp int // how many CaughtUp there were
}

// addSignal adds a signal. It fails when the signal names another log, goes back, or is of an unknown kind.
func (r *readSignals) addSignal(s eventstore.Signal) error {
	switch {
	case s.Checkpoint.Log != r.logID:
		return fmt.Errorf("a checkpoint names log %s, want %s", s.Checkpoint.Log, r.logID)
	case s.Checkpoint.Position < r.last.Position:
		return fmt.Errorf("checkpoint %d comes after checkpoint %d", s.Checkpoint.Position, r.last.Position)
	}
	switch s.Kind {
	case eventstore.EventAppeared:
		if err := r.addEvent(s); err != nil {
			return err
		}
	case eventstore.CaughtUp:
		r.caughtUp++
	case eventstore.CheckpointReached:
	default:
		return fmt.Errorf("unknown kind of signal %d", s.Kind)
	}
	r.last = s.Checkpoint
	r.signals = append(r.signals, s)
	return nil
}

// addEvent adds an event. It fails unless the event comes after the last signal, matches the filter, and has the signal's
// checkpoint.
func (r *readSignals) addEvent(s eventstore.Signal) error {
	e := s.Event
	switch {
	case e.Position <= r.last.Position:
		return fmt.Errorf("event at position %d comes after position %d", e.Position, r.last.Position)
	case s.Checkpoint.Position != e.Position || s.Checkpoint.Event != e.ID:
		return fmt.Errorf("event %s at %d carries the checkpoint %+v", e.ID, e.Position, s.Checkpoint)
	case !r.filter.Matches(e.Stream):
		return fmt.Errorf("event of %s does not match the filter %v", e.Stream, r.filter)
	}
	r.events = append(r.events, e)
	return nil
}

// readLog reads the log to its end. It fails unless one CaughtUp comes, as the last signal.
func (l *storeUnderTest) readLog(ctx context.Context, after eventstore.Checkpoint, f eventstore.Filter) (*readSignals, error) {
	id, err := l.Identity(ctx)
	if err != nil {
		return nil, err
	}
	r := &readSignals{logID: id, filter: f, last: after}
	signals, err := collect(l.ReadAll(ctx, after, f))
	if err != nil {
		return nil, fmt.Errorf("reading after %d: %w", after.Position, err)
	}
	for _, s := range signals {
		if r.caughtUp > 0 {
			return nil, errors.New("a read of the log goes on after CaughtUp")
		}
		if err := r.addSignal(s); err != nil {
			return nil, err
		}
	}
	if r.caughtUp != 1 {
		return nil, errors.New("a read of the log ends without CaughtUp")
	}
	return r, nil
}

// subscription is a Subscribe that is read one signal at a time. stop ends it and must be called.
type subscription struct {
	readSignals
	next func() (eventstore.Signal, error, bool)
	stop func()
}

// startSubscription starts a subscription. It begins to run when the first signal is read.
func (l *storeUnderTest) startSubscription(ctx context.Context, after eventstore.Checkpoint, f eventstore.Filter) (*subscription, error) {
	id, err := l.Identity(ctx)
	if err != nil {
		return nil, err
	}
	s := &subscription{readSignals: readSignals{logID: id, filter: f, last: after}}
	s.next, s.stop = iter.Pull2(l.Subscribe(ctx, after, f))
	return s, nil
}

// readUntil reads on to the first signal for which enough is true. It waits as long as the rule's context allows.
func (s *subscription) readUntil(enough func(eventstore.Signal) bool) error {
	for {
		signal, err, ok := s.next()
		if !ok {
			return errors.New("the subscription ended without an error")
		}
		if err != nil {
			return fmt.Errorf("subscription after %d events and position %d: %w", len(s.events), s.last.Position, err)
		}
		if err := s.addSignal(signal); err != nil {
			return err
		}
		if enough(signal) {
			return nil
		}
	}
}

// readUntilEvents reads on until the subscription has yielded n events in all.
func (s *subscription) readUntilEvents(n int) error {
	if len(s.events) >= n {
		return nil
	}
	return s.readUntil(func(eventstore.Signal) bool { return len(s.events) >= n })
}

// readUntilCaughtUp reads on to the next CaughtUp at p or later.
func (s *subscription) readUntilCaughtUp(p eventstore.Position) error {
	return s.readUntil(func(s eventstore.Signal) bool { return s.Kind == eventstore.CaughtUp && s.Checkpoint.Position >= p })
}
