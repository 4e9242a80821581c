package memory

import (
	"context"
	"iter"
	"sort"

	"lieudit/eventstore"
)

// Scan yields the events of all streams in the order of their positions, or in reverse, as node.Log specifies. Forward it
// begins with the event at a position, backward with the event before it. A position inside the log at which no event begins
// is a *DivergedError, as in a journal.
func (l *Log) Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		v, err := l.view()
		at, step := sort.Search(len(v.events), func(i int) bool { return v.events[i].Position >= from }), 1
		if err == nil && from > 0 && at < len(v.events) && v.events[at].Position != from {
			err = &eventstore.DivergedError{Checkpoint: eventstore.Checkpoint{Log: l.id, Position: from}, Reason: "no event begins there"}
		}
		if dir == eventstore.Backward {
			at, step = at-1, -1
		}
		for ; err == nil && at >= 0 && at < len(v.events); at += step {
			if err = ctx.Err(); err == nil && !yield(v.events[at], nil) {
				return
			}
		}
		if err != nil {
			yield(eventstore.RecordedEvent{}, err)
		}
	}
}

// Wait returns the position of the last event as soon as it is greater than after. It returns ctx's error if ctx ends first.
func (l *Log) Wait(ctx context.Context, after eventstore.Position) (eventstore.Position, error) {
	for {
		v, err := l.view()
		if last := lastPosition(v.events); err != nil || last > after {
			return last, err
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
