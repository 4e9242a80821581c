package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// reading is what a reader of the whole log was told so far. Every signal of every rule goes through add, so that order,
// marks and filters are checked wherever the log is read.
type reading struct {
	log      uuid.UUID
	want     eventstore.Filter
	last     eventstore.Mark
	events   []eventstore.Recorded
	signals  []eventstore.Signal
	caughtUp int
}

func (r *reading) add(s eventstore.Signal) error {
	switch {
	case s.Mark.Log != r.log:
		return fmt.Errorf("a mark names log %s, want %s", s.Mark.Log, r.log)
	case s.Mark.Position < r.last.Position:
		return fmt.Errorf("mark %d comes after mark %d", s.Mark.Position, r.last.Position)
	}
	switch s.Kind {
	case eventstore.Event:
		if err := r.event(s); err != nil {
			return err
		}
	case eventstore.CaughtUp:
		r.caughtUp++
	case eventstore.Progress:
	default:
		return fmt.Errorf("unknown kind of signal %d", s.Kind)
	}
	r.last = s.Mark
	r.signals = append(r.signals, s)
	return nil
}

func (r *reading) event(s eventstore.Signal) error {
	e := s.Event
	switch {
	case e.Position <= r.last.Position:
		return fmt.Errorf("event at position %d comes after position %d", e.Position, r.last.Position)
	case s.Mark.Position != e.Position || s.Mark.Event != e.ID:
		return fmt.Errorf("event %s at %d carries the mark %+v", e.ID, e.Position, s.Mark)
	case !r.want.Matches(e.Stream):
		return fmt.Errorf("event of %s does not match the filter %v", e.Stream, r.want)
	}
	r.events = append(r.events, e)
	return nil
}

// all reads the log to its end and checks that the one CaughtUp comes last.
func (l *log) all(ctx context.Context, after eventstore.Mark, f eventstore.Filter) (*reading, error) {
	id, err := l.Identity(ctx)
	if err != nil {
		return nil, err
	}
	r := &reading{log: id, want: f, last: after}
	signals, err := collect(l.ReadAll(ctx, after, f))
	if err != nil {
		return nil, fmt.Errorf("reading after %d: %w", after.Position, err)
	}
	for _, s := range signals {
		if r.caughtUp > 0 {
			return nil, errors.New("a read of the log goes on after CaughtUp")
		}
		if err := r.add(s); err != nil {
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
	reading
	next func() (eventstore.Signal, error, bool)
	stop func()
}

func (l *log) subscribe(ctx context.Context, after eventstore.Mark, f eventstore.Filter) (*subscription, error) {
	id, err := l.Identity(ctx)
	if err != nil {
		return nil, err
	}
	s := &subscription{reading: reading{log: id, want: f, last: after}}
	s.next, s.stop = iter.Pull2(l.Subscribe(ctx, after, f))
	return s, nil
}

// until reads on to the first signal that holds says enough of.
func (s *subscription) until(enough func(eventstore.Signal) bool) error {
	for {
		signal, err, ok := s.next()
		if !ok {
			return errors.New("the subscription ended without an error")
		}
		if err != nil {
			return fmt.Errorf("subscription after %d events and position %d: %w", len(s.events), s.last.Position, err)
		}
		if err := s.add(signal); err != nil {
			return err
		}
		if enough(signal) {
			return nil
		}
	}
}

// untilEvents reads on until n events were told in all.
func (s *subscription) untilEvents(n int) error {
	if len(s.events) >= n {
		return nil
	}
	return s.until(func(eventstore.Signal) bool { return len(s.events) >= n })
}

// untilCaughtUp reads on to the next CaughtUp at p or later.
func (s *subscription) untilCaughtUp(p eventstore.Position) error {
	return s.until(func(s eventstore.Signal) bool { return s.Kind == eventstore.CaughtUp && s.Mark.Position >= p })
}
