package esdb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

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

// errInsideRecord: the server can read the log, but not from there.
var errInsideRecord = errors.New("no event begins there")

// readMark reads the event at a position, or the next one. EventStoreDB has no word of its own for a position inside a
// record: it fails, or says nothing for a minute. So that is what is told from a server in trouble: on one connection
// the read from there fails, or stays silent, twice, and each time a read of the log's end that is asked after it
// succeeds.
func (c *conn) readMark(ctx context.Context, p eventstore.Position) (eventstore.Recorded, bool, error) {
	e, found, err := c.readMarkOnce(ctx, p)
	if errors.Is(err, errInsideRecord) {
		e, found, err = c.readMarkOnce(ctx, p)
	}
	return e, found, err
}

// markRead is what a read from a mark's position gave.
type markRead struct {
	event eventstore.Recorded
	found bool
	err   error
}

// isClear says whether the answer needs no second look: it is one, or the server says what is wrong.
func (r markRead) isClear(ctx context.Context) bool {
	var elsewhere *notLeaderError
	return r.err == nil || ctx.Err() != nil || status.Code(r.err) == codes.InvalidArgument || errors.As(r.err, &elsewhere)
}

// readMarkOnce is errInsideRecord when the read fails or is silent while the log's end can be read.
func (c *conn) readMarkOnce(ctx context.Context, p eventstore.Position) (eventstore.Recorded, bool, error) {
	within, cancel := context.WithCancel(ctx)
	answer, ended := make(chan markRead, 1), make(chan struct{})
	go func() {
		defer close(ended)
		e, found, err := c.one(within, ofAll(p, eventstore.Forward, 1))
		answer <- markRead{e, found, err}
	}()
	defer func() {
		cancel()
		<-ended
	}()
	r := awaitMark(answer, c.markPatience)
	if r != nil && r.isClear(ctx) {
		return r.event, r.found, r.err
	}
	if _, _, err := c.lastEvent(ctx); err != nil {
		return eventstore.Recorded{}, false, err
	}
	if r == nil {
		r = awaitMark(answer, 0) // the answer may have come while the end was asked for
	}
	switch {
	case r == nil:
		return eventstore.Recorded{}, false, fmt.Errorf("%w: the server is silent when asked", errInsideRecord)
	case !r.isClear(ctx):
		return eventstore.Recorded{}, false, fmt.Errorf("%w: the server says %v", errInsideRecord, r.err)
	}
	return r.event, r.found, r.err
}

// awaitMark is nil when there is no answer in time.
func awaitMark(answer <-chan markRead, patience time.Duration) *markRead {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case r := <-answer:
		return &r
	case <-late.C:
	}
	select {
	case r := <-answer:
		return &r
	default:
		return nil
	}
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
		return m, &eventstore.DivergedError{Mark: m, Why: fmt.Sprintf("this is log %s, not %s", id, m.Log), Other: true}
	}
	e, found, err := c.readMark(ctx, m.Position)
	switch {
	case errors.Is(err, errInsideRecord) || status.Code(err) == codes.InvalidArgument: // the second is a node's own word
		return m, &eventstore.DivergedError{Mark: m, Why: err.Error()}
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
