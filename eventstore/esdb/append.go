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
func (s *Store) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if err := validateEvents(events); err != nil {
		return eventstore.AppendResult{}, err
	}
	for redirects := 0; ; redirects++ {
		c, err := s.connector.currentConn(ctx)
		if ctx.Err() != nil {
			return eventstore.AppendResult{}, fmt.Errorf("%w: %w", eventstore.ErrUnknown, ctx.Err())
		}
		if err != nil {
			return eventstore.AppendResult{}, err
		}
		result, err := c.append(ctx, stream, expected, events)
		if err == nil {
			s.connector.recordAppendResult(nil)
			return result, nil
		}
		if redirects == maxRedirects || !s.followLeader(ctx, c, err) {
			return result, s.reportAppendError(ctx, c, err)
		}
	}
}

var errInvalidAppend = errors.New("not an append")

// validateEvents refuses what could never be sent, before it harms the appends it would travel with.
func validateEvents(events []eventstore.ProposedEvent) error {
	if len(events) == 0 {
		return fmt.Errorf("%w: no events", errInvalidAppend)
	}
	for _, e := range events {
		if !utf8.ValidString(e.Type) {
			return fmt.Errorf("%w: %q is not text", errInvalidAppend, e.Type)
		}
	}
	if eventsSize(events) > eventstore.MaxAppendBytes {
		return eventstore.ErrTooLarge
	}
	return nil
}

// followLeader follows the leader to another node and waits, within reason, until the connection is another one.
func (s *Store) followLeader(ctx context.Context, c *conn, err error) bool {
	var notLeader *notLeaderError
	if !errors.As(err, &notLeader) {
		return false
	}
	s.connector.setLeaderHint(notLeader.leader)
	s.connector.requestProbe(c)
	return s.connector.waitForReplacement(ctx, c)
}

func eventsSize(events []eventstore.ProposedEvent) (n int) {
	for _, e := range events {
		n += len(e.Type) + len(e.Data) + len(e.Metadata)
	}
	return n
}

func (c *conn) append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	p, err := c.acquirePipeline(ctx)
	if err != nil {
		return eventstore.AppendResult{}, err
	}
	resp, err := p.roundTrip(ctx, newAppendRequest(stream, expected, events))
	if err != nil {
		return eventstore.AppendResult{}, err
	}
	if success := resp.GetSuccess(); success != nil {
		return c.appendResult(ctx, stream, success)
	}
	err = appendError(resp.GetError(), stream, expected)
	var conflict *eventstore.ConflictError
	if errors.As(err, &conflict) {
		err = c.classifyConflict(ctx, conflict, events)
	}
	return eventstore.AppendResult{}, err
}

// appendResult is where a successful append went. The answer to a repeated one may leave the position out.
func (c *conn) appendResult(ctx context.Context, stream string, success *streams.BatchAppendResp_Success) (eventstore.AppendResult, error) {
	result := eventstore.AppendResult{Revision: eventstore.Revision(success.GetCurrentRevision()), Position: eventstore.Position(success.GetPosition().GetCommitPosition())}
	if success.GetPosition() != nil {
		return result, nil
	}
	e, found, err := c.readFirst(ctx, streamReadOptions(stream, result.Revision, eventstore.Forward, 1))
	if err != nil || !found || e.Revision != result.Revision {
		return eventstore.AppendResult{}, fmt.Errorf("%w: made, but its position cannot be read: %w", eventstore.ErrUnknown, err)
	}
	result.Position = e.Position
	return result, nil
}

// classifyConflict tells what a server means by a wrong revision: a conflict, or ids that came back in another batch, which is
// the only thing it can mean with Any. It knows the very same batch by itself.
func (c *conn) classifyConflict(ctx context.Context, conflict *eventstore.ConflictError, events []eventstore.ProposedEvent) error {
	if conflict.Expected == eventstore.Any {
		return eventstore.ErrIDReused
	}
	if conflict.Current <= conflict.Expected {
		return conflict
	}
	e, _, err := c.readFirst(ctx, streamReadOptions(conflict.Stream, conflict.Expected+1, eventstore.Forward, 1))
	if err == nil && e.ID == events[0].ID {
		return eventstore.ErrIDReused
	}
	return conflict // the truth, whether or not the read succeeded
}
