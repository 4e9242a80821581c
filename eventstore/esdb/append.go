package esdb

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"lieudit/eventstore"
)

// Append keeps the contract. An event's id is compared, never its bytes; with Any the server looks among the ids
// it remembers.
func (s *Store) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	if err := admit(events); err != nil {
		return eventstore.Committed{}, err
	}
	for hops := 0; ; hops++ {
		c, err := s.link.get(ctx)
		if ctx.Err() != nil {
			return eventstore.Committed{}, fmt.Errorf("%w: %w", eventstore.ErrUnknown, ctx.Err())
		}
		if err != nil {
			return eventstore.Committed{}, err
		}
		done, err := c.append(ctx, stream, expected, events)
		if err == nil {
			s.link.writes(nil)
			return done, nil
		}
		if hops == leaderHints || !s.moved(ctx, c, err) {
			return done, s.unwritten(ctx, c, err)
		}
	}
}

var errBatch = errors.New("not an append")

// admit refuses what could never be sent, before it harms the appends it would travel with.
func admit(events []eventstore.Proposed) error {
	if len(events) == 0 {
		return fmt.Errorf("%w: no events", errBatch)
	}
	for _, e := range events {
		if !utf8.ValidString(e.Type) {
			return fmt.Errorf("%w: %q is not text", errBatch, e.Type)
		}
	}
	if size(events) > eventstore.MaxAppend {
		return eventstore.ErrTooLarge
	}
	return nil
}

// moved follows the leader to another node and waits, within reason, until the connection is another one.
func (s *Store) moved(ctx context.Context, c *conn, err error) bool {
	var elsewhere *notLeaderError
	if !errors.As(err, &elsewhere) {
		return false
	}
	s.link.follow(elsewhere.leader)
	s.link.suspect(c)
	return s.link.replaced(ctx, c)
}

// unwritten is the error of an append as its caller sees it.
func (s *Store) unwritten(ctx context.Context, c *conn, err error) error {
	var elsewhere *notLeaderError
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w: %w", eventstore.ErrUnknown, ctx.Err())
	case errors.As(err, &elsewhere):
		err = errors.Join(eventstore.ErrUnavailable, err)
	}
	if err = s.failed(ctx, c, err); errors.Is(err, eventstore.ErrUnavailable) || errors.Is(err, eventstore.ErrUnknown) {
		s.link.writes(err)
	}
	return err
}

// failed reports what a call tells of the connection, and says ErrClosed for what Close did.
func (s *Store) failed(ctx context.Context, c *conn, err error) error {
	unknown, unavailable := errors.Is(err, eventstore.ErrUnknown), errors.Is(err, eventstore.ErrUnavailable)
	switch {
	case ctx.Err() != nil:
		return err
	case s.link.ctx.Err() != nil && unavailable:
		return eventstore.ErrClosed
	case unknown || unavailable:
		s.link.suspect(c)
	}
	return err
}

func size(events []eventstore.Proposed) (n int) {
	for _, e := range events {
		n += len(e.Type) + len(e.Data) + len(e.Metadata)
	}
	return n
}

func (c *conn) append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	p, err := c.pipe(ctx)
	if err != nil {
		return eventstore.Committed{}, err
	}
	resp, err := p.do(ctx, appending(stream, expected, events))
	if err != nil {
		return eventstore.Committed{}, err
	}
	if ok := resp.GetSuccess(); ok != nil {
		return c.place(ctx, stream, ok)
	}
	err = verdict(resp.GetError(), stream, expected)
	var conflict *eventstore.ConflictError
	if errors.As(err, &conflict) {
		err = c.refused(ctx, conflict, events)
	}
	return eventstore.Committed{}, err
}

// place is where a successful append went. The answer to a repeated one may leave the position out.
func (c *conn) place(ctx context.Context, stream string, ok *streams.BatchAppendResp_Success) (eventstore.Committed, error) {
	done := eventstore.Committed{Revision: eventstore.Revision(ok.GetCurrentRevision()), Position: eventstore.Position(ok.GetPosition().GetCommitPosition())}
	if ok.GetPosition() != nil {
		return done, nil
	}
	e, found, err := c.one(ctx, ofStream(stream, done.Revision, eventstore.Forward, 1))
	if err != nil || !found || e.Revision != done.Revision {
		return eventstore.Committed{}, fmt.Errorf("%w: made, but its position cannot be read: %w", eventstore.ErrUnknown, err)
	}
	done.Position = e.Position
	return done, nil
}

// refused tells what a server means by a wrong revision: a conflict, or ids that came back in another batch, which is
// the only thing it can mean with Any. It knows the very same batch by itself.
func (c *conn) refused(ctx context.Context, conflict *eventstore.ConflictError, events []eventstore.Proposed) error {
	if conflict.Expected == eventstore.Any {
		return eventstore.ErrMismatch
	}
	if conflict.Current <= conflict.Expected {
		return conflict
	}
	e, _, err := c.one(ctx, ofStream(conflict.Stream, conflict.Expected+1, eventstore.Forward, 1))
	if err == nil && e.ID == events[0].ID {
		return eventstore.ErrMismatch
	}
	return conflict // the truth, whether or not the read succeeded
}
