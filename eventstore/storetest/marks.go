package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

func marks() []rule {
	return []rule{
		{name: "the zero mark is the beginning of the log", check: zeroIsBeginning},
		{name: "position 0 of this log is its beginning too", check: positionZero},
		{name: "a mark of another log has diverged", check: otherLog},
		{name: "a mark with another event's id has diverged", check: otherEvent},
		{name: "a mark beyond the end has diverged", check: beyondEnd},
		{name: "a mark between two events has diverged", check: betweenEvents},
		{name: "the mark of every signal is one to resume after", check: everyMarkResumes, own: true}, // it reads on to the end from each
	}
}

func zeroIsBeginning(ctx context.Context, l *log) error {
	c := category()
	all, err := l.fill(ctx, c+"-1", 3)
	if err != nil {
		return err
	}
	return l.tells(ctx, eventstore.Mark{}, eventstore.Filter{c}, ids(all, proposedID))
}

func positionZero(ctx context.Context, l *log) error {
	id, err := l.Identity(ctx)
	if err != nil {
		return err
	}
	c := category()
	all, err := l.fill(ctx, c+"-1", 3)
	if err != nil {
		return err
	}
	return l.tells(ctx, eventstore.Mark{Log: id}, eventstore.Filter{c}, ids(all, proposedID))
}

// diverges says whether both ways to read refuse the mark, before they yield anything.
func (l *log) diverges(ctx context.Context, what string, m eventstore.Mark) error {
	for name, seq := range map[string]iter.Seq2[eventstore.Signal, error]{
		"ReadAll": l.ReadAll(ctx, m, nil), "Subscribe": l.Subscribe(ctx, m, nil),
	} {
		for s, err := range seq {
			var d *eventstore.DivergedError
			if !errors.As(err, &d) {
				return fmt.Errorf("%s after %s: got %+v, %v, want it to have diverged", name, what, s, err)
			}
			if d.Mark != m {
				return fmt.Errorf("%s after %s: the error names mark %+v, want %+v", name, what, d.Mark, m)
			}
		}
	}
	return nil
}

func otherLog(ctx context.Context, l *log) error {
	m, err := l.here(ctx)
	if err != nil {
		return err
	}
	m.Log = uuid.New()
	if err := l.diverges(ctx, "a mark of another log", m); err != nil {
		return err
	}
	return l.diverges(ctx, "the beginning of another log", eventstore.Mark{Log: m.Log})
}

func otherEvent(ctx context.Context, l *log) error {
	m, err := l.here(ctx)
	if err != nil {
		return err
	}
	if _, err := l.here(ctx); err != nil {
		return err
	}
	for _, id := range []uuid.UUID{uuid.New(), uuid.Nil} {
		m.Event = id
		if err := l.diverges(ctx, "a mark with the id "+id.String(), m); err != nil {
			return err
		}
	}
	return nil
}

func beyondEnd(ctx context.Context, l *log) error {
	m, err := l.here(ctx)
	if err != nil {
		return err
	}
	for _, by := range []eventstore.Position{1 << 20, 1 << 40} {
		m.Position += by
		if err := l.diverges(ctx, fmt.Sprintf("a mark %d beyond an event", by), m); err != nil {
			return err
		}
	}
	return nil
}

func betweenEvents(ctx context.Context, l *log) error {
	m, err := l.here(ctx)
	if err != nil {
		return err
	}
	if _, err := l.here(ctx); err != nil {
		return err
	}
	m.Position--
	if err := l.diverges(ctx, "a mark just before an event", m); err != nil {
		return err
	}
	m.Position += 2
	return l.diverges(ctx, "a mark just after an event", m)
}

// fewMarks are tried between two events: what others append meanwhile may make thousands.
const fewMarks = 3

func everyMarkResumes(ctx context.Context, l *log) error {
	from, err := l.here(ctx)
	if err != nil {
		return err
	}
	cats, _, err := l.mixed(ctx, 10)
	if err != nil {
		return err
	}
	f := cats[:1]
	s, err := l.subscribe(ctx, from, f)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.untilCaughtUp(0); err != nil {
		return err
	}
	seen, between := 0, 0
	for _, signal := range s.signals {
		between++
		if signal.Kind == eventstore.Event {
			seen, between = seen+1, 0
		}
		if between > fewMarks {
			continue
		}
		if err := l.tells(ctx, signal.Mark, f, ids(s.events[seen:], recordedID)); err != nil {
			return fmt.Errorf("after signal of kind %d at %d: %w", signal.Kind, signal.Mark.Position, err)
		}
	}
	return nil
}
