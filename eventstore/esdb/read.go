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
func (s *Store) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	return func(yield func(eventstore.Recorded, error) bool) {
		c, err := s.link.get(ctx)
		if err != nil {
			yield(eventstore.Recorded{}, err)
			return
		}
		for e, err := range c.read(ctx, ofStream(stream, from, dir, unlimited)) {
			if err != nil {
				yield(e, s.unread(ctx, c, err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// unread is failed for a read, which follows the leader for the calls to come.
func (s *Store) unread(ctx context.Context, c *conn, err error) error {
	var elsewhere *notLeaderError
	if errors.As(err, &elsewhere) {
		s.link.follow(elsewhere.leader)
		err = errors.Join(eventstore.ErrUnavailable, err)
	}
	return s.failed(ctx, c, err)
}

// read yields the events a question asks for.
func (c *conn) read(ctx context.Context, q *streams.ReadReq_Options) iter.Seq2[eventstore.Recorded, error] {
	return func(yield func(eventstore.Recorded, error) bool) {
		within, cancel := context.WithCancel(timeless{ctx})
		defer cancel()
		call, err := c.streams.Read(leaderOnly(within), &streams.ReadReq{Options: q})
		if err != nil {
			yield(eventstore.Recorded{}, unread(ctx, err, nil))
			return
		}
		for {
			resp, err := call.Recv()
			if errors.Is(err, io.EOF) {
				c.answered()
				return
			}
			if err != nil {
				yield(eventstore.Recorded{}, unread(ctx, err, call.Trailer()))
				return
			}
			c.answered()
			if e := resp.GetEvent().GetEvent(); e != nil && !yield(recorded(e), nil) {
				return
			}
		}
	}
}

// one is the first event a question finds, if any.
func (c *conn) one(ctx context.Context, q *streams.ReadReq_Options) (eventstore.Recorded, bool, error) {
	for e, err := range c.read(ctx, q) {
		return e, err == nil, err
	}
	return eventstore.Recorded{}, false, nil
}
