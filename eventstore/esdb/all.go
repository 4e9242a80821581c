package esdb

import (
	"context"
	"iter"

	"lieudit/eventstore"
)

// ReadAll keeps the contract: it looks where the log ends first, and reads up to there.
func (s *Store) ReadAll(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		c, err := s.connector.currentConn(ctx)
		if err != nil {
			yield(eventstore.Signal{}, err)
			return
		}
		for signal, err := range c.readAll(ctx, after, filter) {
			if err != nil {
				yield(signal, s.reportReadError(ctx, c, err))
				return
			}
			if !yield(signal, nil) {
				return
			}
		}
	}
}

func (c *conn) readAll(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		end, err := c.resolveEnd(ctx, after)
		if err != nil {
			yield(eventstore.Signal{}, err)
			return
		}
		if end.Position > after.Position {
			for e, err := range c.readMatching(ctx, after.Position, end.Position, filter) {
				if err != nil {
					yield(eventstore.Signal{}, err)
					return
				}
				if !yield(eventSignal(end, e), nil) {
					return
				}
			}
		}
		yield(eventstore.Signal{Kind: eventstore.CaughtUp, Checkpoint: end}, nil)
	}
}

// resolveEnd checks a mark and returns the one at the log's end.
func (c *conn) resolveEnd(ctx context.Context, after eventstore.Checkpoint) (eventstore.Checkpoint, error) {
	id, err := c.resolveIdentity(ctx)
	if err != nil {
		return eventstore.Checkpoint{}, err
	}
	last, found, err := c.readLastEvent(ctx)
	if err != nil {
		return eventstore.Checkpoint{}, err
	}
	end := eventstore.Checkpoint{Log: id}
	if found {
		end.Position, end.Event = last.Position, last.ID
	}
	if end == after {
		return end, nil // as good as checked: the usual answer to a reader that looks again and again
	}
	if after, err = c.verifyCheckpoint(ctx, after); err != nil {
		return eventstore.Checkpoint{}, err
	}
	if end.Position < after.Position {
		return after, nil
	}
	return end, nil
}

// readMatching yields the events the filter wants after one position and up to another.
func (c *conn) readMatching(ctx context.Context, after, end eventstore.Position, filter eventstore.Filter) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		for e, err := range c.readEvents(ctx, withFilter(allReadOptions(after, eventstore.Forward, noCountLimit), filter)) {
			if err != nil {
				yield(e, err)
				return
			}
			if e.Position > end {
				return
			}
			if e.Position > after && filter.Matches(e.Stream) && !yield(e, nil) {
				return
			}
		}
	}
}

// eventSignal is the signal of an eventSignal of the log a mark stands in.
func eventSignal(log eventstore.Checkpoint, e eventstore.RecordedEvent) eventstore.Signal {
	return eventstore.Signal{
		Kind: eventstore.EventAppeared, Event: e,
		Checkpoint: eventstore.Checkpoint{Log: log.Log, Position: e.Position, Event: e.ID},
	}
}
