package esdb

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"lieudit/eventstore"
)

// ReadStream implements eventstore.Store. If the connection is lost on the way, the sequence ends with ErrUnavailable.
func (s *Store) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return readOnCurrentConn(ctx, s, func(c *conn) iter.Seq2[eventstore.RecordedEvent, error] {
		return c.readEvents(ctx, streamReadOptions(stream, from, dir, noCountLimit))
	})
}

// ReadAll implements eventstore.Store. It determines the end of the log first and reads up to it. It yields no
// CheckpointReached: the checkpoint of the final CaughtUp is the end of the log.
func (s *Store) ReadAll(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return readOnCurrentConn(ctx, s, func(c *conn) iter.Seq2[eventstore.Signal, error] { return c.readAll(ctx, after, filter) })
}

// readOnCurrentConn yields what read yields on the current connection, and reports the error that ends it.
func readOnCurrentConn[T any](ctx context.Context, s *Store, read func(*conn) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		c, err := s.connector.currentConn(ctx)
		if err != nil {
			yield(none, err)
			return
		}
		for v, err := range read(c) {
			if err != nil {
				yield(none, s.reportReadError(ctx, c, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// readEvents yields the events of one Read call. The call ends when the consumer stops.
func (c *conn) readEvents(ctx context.Context, options *streams.ReadReq_Options) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		callCtx, cancel := context.WithCancel(noDeadline{ctx})
		defer cancel()
		call, err := c.streams.Read(requireLeader(callCtx), &streams.ReadReq{Options: options})
		if err != nil {
			yield(eventstore.RecordedEvent{}, readError(ctx, err, nil))
			return
		}
		for {
			resp, err := call.Recv()
			if errors.Is(err, io.EOF) {
				c.recordResponse()
				return
			}
			if err != nil {
				yield(eventstore.RecordedEvent{}, readError(ctx, err, call.Trailer()))
				return
			}
			c.recordResponse()
			if e := resp.GetEvent().GetEvent(); e != nil && !yield(parseRecordedEvent(e), nil) {
				return
			}
		}
	}
}

// readFirst returns the first event of a read; found is false if there is none.
func (c *conn) readFirst(ctx context.Context, options *streams.ReadReq_Options) (eventstore.RecordedEvent, bool, error) {
	for e, err := range c.readEvents(ctx, options) {
		return e, err == nil, err
	}
	return eventstore.RecordedEvent{}, false, nil
}

// readAll is ReadAll on one connection.
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

// resolveEnd verifies a checkpoint and returns that of the log's last event, or the given one if that is later.
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
		return end, nil // verified by this comparison; the usual case of a reader that polls
	}
	if after, err = c.verifyCheckpoint(ctx, after); err != nil {
		return eventstore.Checkpoint{}, err
	}
	if end.Position < after.Position {
		return after, nil
	}
	return end, nil
}

// readMatching yields the events that match the filter after one position and up to another, both as the server counts them:
// a read from a position begins with the event at that position.
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

// eventSignal is the signal of an event. The log's identity comes from a checkpoint of it.
func eventSignal(log eventstore.Checkpoint, e eventstore.RecordedEvent) eventstore.Signal {
	return eventstore.Signal{
		Kind: eventstore.EventAppeared, Event: e,
		Checkpoint: eventstore.Checkpoint{Log: log.Log, Position: e.Position, Event: e.ID},
	}
}
