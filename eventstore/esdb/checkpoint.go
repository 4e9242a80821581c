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
	c, err := s.connector.currentConn(ctx)
	if err != nil {
		return uuid.Nil, err
	}
	id, err := c.resolveIdentity(ctx)
	if err != nil {
		return uuid.Nil, s.reportReadError(ctx, c, err)
	}
	return id, nil
}

// resolveIdentity is found once a connection: after the next one the server may hold another log.
func (c *conn) resolveIdentity(ctx context.Context) (uuid.UUID, error) {
	c.identityMu.Lock()
	id := c.logID
	c.identityMu.Unlock()
	if id != uuid.Nil {
		return id, nil
	}
	for {
		e, found, err := c.readFirst(ctx, streamReadOptions(identityStream, 0, eventstore.Forward, 1))
		if err != nil {
			return uuid.Nil, err
		}
		if found {
			c.identityMu.Lock()
			defer c.identityMu.Unlock()
			c.logID = e.ID
			return e.ID, nil
		}
		naming := eventstore.ProposedEvent{ID: uuid.New(), Type: identityType, Data: []byte("{}")}
		_, err = c.append(ctx, identityStream, eventstore.NoStream, []eventstore.ProposedEvent{naming})
		if err != nil && !errors.Is(err, eventstore.ErrConflict) {
			return uuid.Nil, fmt.Errorf("%w: naming the log: %w", eventstore.ErrUnavailable, err)
		}
	}
}

// readLastEvent is the last event of a stream that is not the server's own: one that is never scavenged by itself, so
// that its mark can be checked later.
func (c *conn) readLastEvent(ctx context.Context) (eventstore.RecordedEvent, bool, error) {
	return c.readLastBefore(ctx, math.MaxUint64)
}

func (c *conn) readLastBefore(ctx context.Context, p eventstore.Position) (eventstore.RecordedEvent, bool, error) {
	return c.readFirst(ctx, withFilter(allReadOptions(p, eventstore.Backward, 1), nil))
}

// checkpointAt is the mark of the last event at or before a position.
func (c *conn) checkpointAt(ctx context.Context, log uuid.UUID, p eventstore.Position) (eventstore.Checkpoint, error) {
	e, found, err := c.readFirst(ctx, allReadOptions(p, eventstore.Forward, 1))
	if err == nil && (!found || e.Position != p || !eventstore.Filter(nil).Matches(e.Stream)) {
		e, _, err = c.readLastBefore(ctx, p)
	}
	return eventstore.Checkpoint{Log: log, Position: e.Position, Event: e.ID}, err
}

// errInsideRecord: the server can read the log, but not from there.
var errInsideRecord = errors.New("no event begins there")

// readAtCheckpoint reads the event at a position, or the next one. EventStoreDB has no word of its own for a position inside a
// record: it fails, or says nothing for a minute. So that is what is told from a server in trouble: on one connection
// the read from there fails, or stays silent, twice, and each time a read of the log's end that is asked after it
// succeeds.
func (c *conn) readAtCheckpoint(ctx context.Context, p eventstore.Position) (eventstore.RecordedEvent, bool, error) {
	e, found, err := c.readAtCheckpointOnce(ctx, p)
	if errors.Is(err, errInsideRecord) {
		e, found, err = c.readAtCheckpointOnce(ctx, p)
	}
	return e, found, err
}

// checkpointRead is what a read from a mark's position gave.
type checkpointRead struct {
	event eventstore.RecordedEvent
	found bool
	err   error
}

// isConclusive says whether the answer needs no second look: it is one, or the server says what is wrong.
func (r checkpointRead) isConclusive(ctx context.Context) bool {
	var notLeader *notLeaderError
	return r.err == nil || ctx.Err() != nil || status.Code(r.err) == codes.InvalidArgument || errors.As(r.err, &notLeader)
}

// readAtCheckpointOnce is errInsideRecord when the read fails or is silent while the log's end can be read.
func (c *conn) readAtCheckpointOnce(ctx context.Context, p eventstore.Position) (eventstore.RecordedEvent, bool, error) {
	callCtx, cancel := context.WithCancel(ctx)
	answer, ended := make(chan checkpointRead, 1), make(chan struct{})
	go func() {
		defer close(ended)
		e, found, err := c.readFirst(callCtx, allReadOptions(p, eventstore.Forward, 1))
		answer <- checkpointRead{e, found, err}
	}()
	defer func() {
		cancel()
		<-ended
	}()
	r := awaitRead(answer, c.checkpointTimeout)
	if r != nil && r.isConclusive(ctx) {
		return r.event, r.found, r.err
	}
	if _, _, err := c.readLastEvent(ctx); err != nil {
		return eventstore.RecordedEvent{}, false, err
	}
	if r == nil {
		r = awaitRead(answer, 0) // the answer may have come while the end was asked for
	}
	switch {
	case r == nil:
		return eventstore.RecordedEvent{}, false, fmt.Errorf("%w: the server is silent when asked", errInsideRecord)
	case !r.isConclusive(ctx):
		return eventstore.RecordedEvent{}, false, fmt.Errorf("%w: the server says %v", errInsideRecord, r.err)
	}
	return r.event, r.found, r.err
}

// awaitRead is nil when there is no answer in time.
func awaitRead(answer <-chan checkpointRead, timeout time.Duration) *checkpointRead {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case r := <-answer:
		return &r
	case <-timer.C:
	}
	select {
	case r := <-answer:
		return &r
	default:
		return nil
	}
}

// verifyCheckpoint says whether a mark stands in the log, and returns it with the log's identity.
func (c *conn) verifyCheckpoint(ctx context.Context, m eventstore.Checkpoint) (eventstore.Checkpoint, error) {
	id, err := c.resolveIdentity(ctx)
	if err != nil {
		return m, err
	}
	if m == (eventstore.Checkpoint{}) || m == (eventstore.Checkpoint{Log: id}) {
		return eventstore.Checkpoint{Log: id}, nil
	}
	if m.Log != id {
		return m, &eventstore.DivergedError{Checkpoint: m, Reason: fmt.Sprintf("this is log %s, not %s", id, m.Log), IsOtherLog: true}
	}
	e, found, err := c.readAtCheckpoint(ctx, m.Position)
	switch {
	case errors.Is(err, errInsideRecord) || status.Code(err) == codes.InvalidArgument: // the second is a node's own word
		return m, &eventstore.DivergedError{Checkpoint: m, Reason: err.Error()}
	case err != nil:
		return m, err
	case !found:
		return m, &eventstore.DivergedError{Checkpoint: m, Reason: "the log ends before it"}
	case e.Position != m.Position || m.Position == 0:
		return m, &eventstore.DivergedError{Checkpoint: m, Reason: "no event stands there"}
	case e.ID != m.Event:
		return m, &eventstore.DivergedError{Checkpoint: m, Reason: fmt.Sprintf("event %s stands there, not %s", e.ID, m.Event)}
	}
	return m, nil
}
