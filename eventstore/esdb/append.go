package esdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/metadata"

	"lieudit/eventstore"
)

// Append keeps the contract. An event's id is compared, never its bytes; with Any the server looks among the ids
// it remembers.
func (s *Store) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	if size(events) > eventstore.MaxAppend {
		return eventstore.Committed{}, eventstore.ErrTooLarge
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

// failed reports what calls tell of the connection, and says ErrClosed for what Close did.
func (s *Store) failed(ctx context.Context, c *conn, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if s.link.ctx.Err() != nil {
		if errors.Is(err, eventstore.ErrUnknown) {
			return err
		}
		return eventstore.ErrClosed
	}
	if errors.Is(err, eventstore.ErrUnavailable) || errors.Is(err, eventstore.ErrUnknown) {
		s.link.suspect(c)
	}
	return err
}

// unwritten is failed for an append, which tells whether the server takes any.
func (s *Store) unwritten(ctx context.Context, c *conn, err error) error {
	err = s.failed(ctx, c, err)
	if ctx.Err() == nil && (errors.Is(err, eventstore.ErrUnavailable) || errors.Is(err, eventstore.ErrUnknown)) {
		s.link.writes(err)
	}
	return err
}

// moved follows the leader to another node and waits, within reason, until the connection is another one.
func (s *Store) moved(ctx context.Context, c *conn, err error) bool {
	var elsewhere *notLeaderError
	if !asNotLeader(err, &elsewhere) {
		return false
	}
	s.link.follow(elsewhere.leader)
	s.link.suspect(c)
	return s.link.replaced(ctx, c)
}

func size(events []eventstore.Proposed) (n int) {
	for _, e := range events {
		n += len(e.Type) + len(e.Data) + len(e.Metadata)
	}
	return n
}

// timeless hides a deadline from the server, so that what ends a call in time is always its own context, which can be
// told from a server's own timeout.
type timeless struct{ context.Context }

func (timeless) Deadline() (time.Time, bool) { return time.Time{}, false }

// leaderOnly makes a node that does not lead refuse the call instead of answering late or passing it on.
func leaderOnly(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "requires-leader", "true")
}

func (c *conn) append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	within, cancel := context.WithCancel(timeless{ctx})
	defer cancel()
	resp, err := c.send(within, ctx, stream, expected, events)
	if err != nil {
		return eventstore.Committed{}, err
	}
	c.answered()
	if w := resp.GetWrongExpectedVersion(); w != nil {
		current := eventstore.Revision(w.GetCurrentRevision())
		if _, none := w.GetCurrentRevisionOption().(*streams.AppendResp_WrongExpectedVersion_CurrentNoStream); none {
			current = eventstore.NoStream
		}
		return eventstore.Committed{}, c.refused(ctx, stream, expected, current, events)
	}
	return c.place(ctx, stream, resp.GetSuccess())
}

// send makes the call. Until it has said that the request is complete the server cannot have made the append.
func (c *conn) send(within, ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (*streams.AppendResp, error) {
	call, err := c.streams.Append(leaderOnly(within))
	if err != nil {
		return nil, unappended(ctx, err, nil, false)
	}
	err = call.Send(appendTo(stream, expected))
	for i := 0; i < len(events) && err == nil; i++ {
		err = call.Send(proposal(events[i]))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, unappended(ctx, err, nil, false)
	}
	complete := err == nil
	resp, err := call.CloseAndRecv() // when the server ended the call early this gives the reason
	if err != nil {
		return nil, unappended(ctx, err, call.Trailer(), complete)
	}
	return resp, nil
}

// place is where a successful append went. The answer to a repeated one may leave the position out.
func (c *conn) place(ctx context.Context, stream string, ok *streams.AppendResp_Success) (eventstore.Committed, error) {
	done := eventstore.Committed{Revision: eventstore.Revision(ok.GetCurrentRevision()), Position: eventstore.Position(ok.GetPosition().GetCommitPosition())}
	if ok.GetPosition() != nil {
		return done, nil
	}
	for e, err := range c.read(ctx, ofStream(stream, done.Revision, eventstore.Forward, 1)) {
		if err != nil {
			return eventstore.Committed{}, fmt.Errorf("%w: made, but its position cannot be read: %w", eventstore.ErrUnknown, err)
		}
		done.Position = e.Position
	}
	return done, nil
}

// refused tells what a server means by a wrong revision: a conflict, or ids that came back in another batch, which is
// the only thing it can mean with Any. It knows the very same batch by itself.
func (c *conn) refused(ctx context.Context, stream string, expected, current eventstore.Revision, events []eventstore.Proposed) error {
	if expected == eventstore.Any {
		return eventstore.ErrMismatch
	}
	conflict := &eventstore.ConflictError{Stream: stream, Expected: expected, Current: current}
	if current <= expected {
		return conflict
	}
	e, _, err := c.one(ctx, ofStream(stream, expected+1, eventstore.Forward, 1))
	if err == nil && e.ID == events[0].ID {
		return eventstore.ErrMismatch
	}
	return conflict // the truth, whether or not the read succeeded
}
