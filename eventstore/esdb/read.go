package esdb

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"lieudit/eventstore"
)

// ReadStream keeps the contract. A connection lost on the way ends the sequence with ErrUnavailable.
func (s *Store) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		c, err := s.connector.currentConn(ctx)
		if err != nil {
			yield(eventstore.RecordedEvent{}, err)
			return
		}
		for e, err := range c.readEvents(ctx, streamReadOptions(stream, from, dir, noCountLimit)) {
			if err != nil {
				yield(e, s.reportReadError(ctx, c, err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// reportReadError is failed for a read, which follows the leader for the calls to come.
func (s *Store) reportReadError(ctx context.Context, c *conn, err error) error {
	var notLeader *notLeaderError
	if errors.As(err, &notLeader) {
		s.connector.setLeaderHint(notLeader.leader)
		err = errors.Join(eventstore.ErrUnavailable, err)
	}
	return s.reportError(ctx, c, err)
}

// readEvents yields the events a question asks for.
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

// readFirst is the first event a question finds, if any.
func (c *conn) readFirst(ctx context.Context, options *streams.ReadReq_Options) (eventstore.RecordedEvent, bool, error) {
	for e, err := range c.readEvents(ctx, options) {
		return e, err == nil, err
	}
	return eventstore.RecordedEvent{}, false, nil
}
