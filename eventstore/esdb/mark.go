package esdb

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"lieudit/eventstore"
)

// identityStream holds one event for ever: its id is the log's identity.
const (
	identityStream = "lieudit-log"
	identityType   = "lieudit.log-named.v1"
)

// Identity is the id of the first event of a stream of its own, written once by whichever instance comes first.
func (s *Store) Identity(ctx context.Context) (uuid.UUID, error) {
	c, err := s.link.get(ctx)
	if err != nil {
		return uuid.Nil, err
	}
	id, err := c.identity(ctx)
	if err != nil {
		return uuid.Nil, s.unread(ctx, c, err)
	}
	return id, nil
}

// identity is found once a connection: after the next one the server may hold another log.
func (c *conn) identity(ctx context.Context) (uuid.UUID, error) {
	c.naming.Lock()
	id := c.id
	c.naming.Unlock()
	if id != uuid.Nil {
		return id, nil
	}
	for {
		e, found, err := c.one(ctx, ofStream(identityStream, 0, eventstore.Forward, 1))
		if err != nil {
			return uuid.Nil, err
		}
		if found {
			c.naming.Lock()
			defer c.naming.Unlock()
			c.id = e.ID
			return e.ID, nil
		}
		name := eventstore.Proposed{ID: uuid.New(), Type: identityType, Data: []byte("{}")}
		_, err = c.append(ctx, identityStream, eventstore.NoStream, []eventstore.Proposed{name})
		if err != nil && !errors.Is(err, eventstore.ErrConflict) {
			return uuid.Nil, fmt.Errorf("%w: naming the log: %w", eventstore.ErrUnavailable, err)
		}
	}
}

// lastEvent is the last event of a stream that is not the server's own: one that is never scavenged by itself, so
// that its mark can be checked later.
func (c *conn) lastEvent(ctx context.Context) (eventstore.Recorded, bool, error) {
	return c.lastBefore(ctx, math.MaxUint64)
}

func (c *conn) lastBefore(ctx context.Context, p eventstore.Position) (eventstore.Recorded, bool, error) {
	return c.one(ctx, filtered(ofAll(p, eventstore.Backward, 1), nil))
}

// at is the mark of the last event at or before a position.
func (c *conn) at(ctx context.Context, log uuid.UUID, p eventstore.Position) (eventstore.Mark, error) {
	e, found, err := c.one(ctx, ofAll(p, eventstore.Forward, 1))
	if err == nil && (!found || e.Position != p || !eventstore.Filter(nil).Matches(e.Stream)) {
		e, _, err = c.lastBefore(ctx, p)
	}
	return eventstore.Mark{Log: log, Position: e.Position, Event: e.ID}, err
}

// check says whether a mark stands in the log, and returns it with the log's identity.
func (c *conn) check(ctx context.Context, m eventstore.Mark) (eventstore.Mark, error) {
	id, err := c.identity(ctx)
	if err != nil {
		return m, err
	}
	if m == (eventstore.Mark{}) || m == (eventstore.Mark{Log: id}) {
		return eventstore.Mark{Log: id}, nil
	}
	if m.Log != id {
		return m, &eventstore.DivergedError{Mark: m, Why: fmt.Sprintf("this is log %s, not %s", id, m.Log)}
	}
	e, found, err := c.one(ctx, ofAll(m.Position, eventstore.Forward, 1))
	switch {
	case err != nil && status.Code(err) == codes.InvalidArgument:
		return m, &eventstore.DivergedError{Mark: m, Why: "no event stands there"}
	case err != nil:
		return m, err
	case !found:
		return m, &eventstore.DivergedError{Mark: m, Why: "the log ends before it"}
	case e.Position != m.Position || m.Position == 0:
		return m, &eventstore.DivergedError{Mark: m, Why: "no event stands there"}
	case e.ID != m.Event:
		return m, &eventstore.DivergedError{Mark: m, Why: fmt.Sprintf("event %s stands there, not %s", e.ID, m.Event)}
	}
	return m, nil
}
