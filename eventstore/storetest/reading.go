package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// readSignals is what a reader of the whole log was told so far. Every signal of every rule goes through add, so that order,
// marks and filters are checked wherever the log is read.
type readSignals struct {
	logID    uuid.UUID
	filter   eventstore.Filter
	last     eventstore.Checkpoint
	events   []eventstore.RecordedEvent
	signals  []eventstore.Signal
	caughtUp int
}

func (r *readSignals) addSignal(s eventstore.Signal) error {
	switch {
	case s.Checkpoint.Log != r.logID:
		return fmt.Errorf("a mark names log %s, want %s", s.Checkpoint.Log, r.logID)
	case s.Checkpoint.Position < r.last.Position:
		return fmt.Errorf("mark %d comes after mark %d", s.Checkpoint.Position, r.last.Position)
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

func (r *readSignals) addEvent(s eventstore.Signal) error {
	e := s.Event
	switch {
	case e.Position <= r.last.Position:
		return fmt.Errorf("event at position %d comes after position %d", e.Position, r.last.Position)
	case s.Checkpoint.Position != e.Position || s.Checkpoint.Event != e.ID:
		return fmt.Errorf("event %s at %d carries the mark %+v", e.ID, e.Position, s.Checkpoint)
	case !r.filter.Matches(e.Stream):
		return fmt.Errorf("event of %s does not match the filter %v", e.Stream, r.filter)
	}
	r.events = append(r.events, e)
	return nil
}

// readLog reads the log to its end and checks that the one CaughtUp comes last.
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

// subscription is a Subscribe read one signal at a time.
type subscription struct {
	readSignals
	next func() (eventstore.Signal, error, bool)
	stop func()
}

func (l *storeUnderTest) subscribe(ctx context.Context, after eventstore.Checkpoint, f eventstore.Filter) (*subscription, error) {
	id, err := l.Identity(ctx)
	if err != nil {
		return nil, err
	}
	s := &subscription{readSignals: readSignals{logID: id, filter: f, last: after}}
	s.next, s.stop = iter.Pull2(l.Subscribe(ctx, after, f))
	return s, nil
}

// readUntil reads on to the first signal that holds says enough of.
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

// readUntilEvents reads on until n events were told in all.
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
