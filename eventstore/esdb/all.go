package esdb

import (
	"context"
	"iter"

	"lieudit/eventstore"
)

// ReadAll keeps the contract: it looks where the log ends first, and reads up to there.
func (s *Store) ReadAll(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		c, err := s.link.get(ctx)
		if err != nil {
			yield(eventstore.Signal{}, err)
			return
		}
		for signal, err := range c.readAll(ctx, after, want) {
			if err != nil {
				yield(signal, s.unread(ctx, c, err))
				return
			}
			if !yield(signal, nil) {
				return
			}
		}
	}
}

func (c *conn) readAll(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		end, err := c.end(ctx, after)
		if err != nil {
			yield(eventstore.Signal{}, err)
			return
		}
		if end.Position > after.Position {
			for e, err := range c.wanted(ctx, after.Position, end.Position, want) {
				if err != nil {
					yield(eventstore.Signal{}, err)
					return
				}
				if !yield(event(end, e), nil) {
					return
				}
			}
		}
		yield(eventstore.Signal{Kind: eventstore.CaughtUp, Mark: end}, nil)
	}
}

// end checks a mark and returns the one at the log's end.
func (c *conn) end(ctx context.Context, after eventstore.Mark) (eventstore.Mark, error) {
	id, err := c.identity(ctx)
	if err != nil {
		return eventstore.Mark{}, err
	}
	last, found, err := c.lastEvent(ctx)
	if err != nil {
		return eventstore.Mark{}, err
	}
	end := eventstore.Mark{Log: id}
	if found {
		end.Position, end.Event = last.Position, last.ID
	}
	if end == after {
		return end, nil // as good as checked: the usual answer to a reader that looks again and again
	}
	if after, err = c.check(ctx, after); err != nil {
		return eventstore.Mark{}, err
	}
	if end.Position < after.Position {
		return after, nil
	}
	return end, nil
}

// wanted yields the events the filter wants after one position and up to another.
func (c *conn) wanted(ctx context.Context, after, end eventstore.Position, want eventstore.Filter) iter.Seq2[eventstore.Recorded, error] {
	return func(yield func(eventstore.Recorded, error) bool) {
		for e, err := range c.read(ctx, filtered(ofAll(after, eventstore.Forward, unlimited), want)) {
			if err != nil {
				yield(e, err)
				return
			}
			if e.Position > end {
				return
			}
			if e.Position > after && want.Matches(e.Stream) && !yield(e, nil) {
				return
			}
		}
	}
}

// event is the signal of an event of the log a mark stands in.
func event(in eventstore.Mark, e eventstore.Recorded) eventstore.Signal {
	return eventstore.Signal{
		Kind: eventstore.Event, Event: e,
		Mark: eventstore.Mark{Log: in.Log, Position: e.Position, Event: e.ID},
	}
}
