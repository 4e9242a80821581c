package esdb

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"lieudit/eventstore"
)

// Append implements eventstore.Store. The server recognizes a repeated append by the ids of its events, never by their bytes;
// with Any it searches the recent ids that it remembers. A node that does not lead refuses an append without making it, so
// Append follows the leader and sends it again.
func (s *Store) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if err := validateEvents(events); err != nil {
		return eventstore.AppendResult{}, err
	}
	for redirects := 0; ; redirects++ { // a node that redirects has done nothing, so the append is sent again
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

// errInvalidAppend is a mistake of the caller: no server could accept these events.
var errInvalidAppend = errors.New("not an append")

// validateEvents refuses an append that could never be sent. In a pipeline it would end the call, and with it the appends of
// other callers.
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

// followLeader makes the connector follow the leader that err names, and waits for that connection. It reports false if err
// names no leader or the connection fails.
func (s *Store) followLeader(ctx context.Context, c *conn, err error) bool {
	leader, redirected := leaderFrom(err)
	if !redirected {
		return false
	}
	s.connector.setLeaderHint(leader)
	s.connector.requestProbe(c)
	return s.connector.waitForReplacement(ctx, c)
}

// eventsSize is how many bytes events count toward eventstore.MaxAppendBytes.
func eventsSize(events []eventstore.ProposedEvent) (n int) {
	for _, e := range events {
		n += len(e.Type) + len(e.Data) + len(e.Metadata)
	}
	return n
}

// append makes one append through a pipeline, and reads more if the answer alone does not give the result. Its error may also
// be a *notLeaderError or the context's own: Store.Append turns them into those of its contract.
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

// appendResult returns the revision and position of an append. The answer to a repeated append may lack the position, which
// is then read.
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

// classifyConflict distinguishes the two meanings of a wrong version: the stream moved on (a conflict), or the first event is
// on the stream as part of another append (ErrIDReused). With Any only the second is possible. The very same append sent
// again is a success, which the server recognizes itself.
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
	return conflict // which is true even if the read failed
}
