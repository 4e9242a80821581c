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

// The log's identity is the id of the one event of identityStream. It is part of the log, so a copy of the log has it
// too.
const (
	identityStream = "lieudit-log"
	identityType   = "lieudit.log-named.v1"
)

// Identity implements eventstore.Store. The first instance writes the event; the others read it.
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

// resolveIdentity reads or creates the identity once per connection: after a reconnection the server may have another log.
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
		// Another instance may write it at the same time: then this append conflicts, and the next read finds the event.
		naming := eventstore.ProposedEvent{ID: uuid.New(), Type: identityType, Data: []byte("{}")}
		_, err = c.append(ctx, identityStream, eventstore.NoStream, []eventstore.ProposedEvent{naming})
		if err != nil && !errors.Is(err, eventstore.ErrConflict) {
			return uuid.Nil, fmt.Errorf("%w: naming the log: %w", eventstore.ErrUnavailable, err)
		}
	}
}

// readLastEvent reads the last event that is not in a system stream. Servers scavenge their system streams, so a
// checkpoint at one of their events could not be verified later.
func (c *conn) readLastEvent(ctx context.Context) (eventstore.RecordedEvent, bool, error) {
	return c.readLastBefore(ctx, math.MaxUint64)
}

// readLastBefore reads the last event before a position that is not in a system stream.
func (c *conn) readLastBefore(ctx context.Context, p eventstore.Position) (eventstore.RecordedEvent, bool, error) {
	return c.readFirst(ctx, withFilter(allReadOptions(p, eventstore.Backward, 1), nil))
}

// checkpointAt returns the checkpoint of the last event at or before a position that is not in a system stream.
func (c *conn) checkpointAt(ctx context.Context, log uuid.UUID, p eventstore.Position) (eventstore.Checkpoint, error) {
	e, found, err := c.readFirst(ctx, allReadOptions(p, eventstore.Forward, 1))
	if err == nil && (!found || e.Position != p || !eventstore.Filter(nil).Matches(e.Stream)) {
		e, _, err = c.readLastBefore(ctx, p)
	}
	return eventstore.Checkpoint{Log: log, Position: e.Position, Event: e.ID}, err
}

// errInsideRecord: the server can read the log, but not from that position.
var errInsideRecord = errors.New("no event begins there")

// readAtCheckpoint reads the event at a position, or the next one. EventStoreDB has no specific error for a position inside a
// record: it fails, or is silent for a minute. A server in trouble does the same. A second read distinguishes the two: the
// position is inside a record if a read from there fails or is silent twice on one connection, and each time a read of the
// log's end that is sent after it succeeds.
func (c *conn) readAtCheckpoint(ctx context.Context, p eventstore.Position) (eventstore.RecordedEvent, bool, error) {
	e, found, err := c.readAtCheckpointOnce(ctx, p)
	if errors.Is(err, errInsideRecord) {
		e, found, err = c.readAtCheckpointOnce(ctx, p)
	}
	return e, found, err
}

// checkpointRead is the result of a read from a checkpoint's position.
type checkpointRead struct {
	event eventstore.RecordedEvent
	found bool
	err   error
}

// isConclusive reports whether the result needs no second read: a success, or an error with only one meaning.
func (r checkpointRead) isConclusive(ctx context.Context) bool {
	_, redirected := leaderFrom(r.err)
	return r.err == nil || ctx.Err() != nil || status.Code(r.err) == codes.InvalidArgument || redirected
}

// readAtCheckpointOnce fails with errInsideRecord if the read fails or is silent although the log's end can be read.
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
		r = awaitRead(answer, 0) // it may have arrived while the end was read
	}
	switch {
	case r == nil:
		return eventstore.RecordedEvent{}, false, fmt.Errorf("%w: the server is silent when asked", errInsideRecord)
	case !r.isConclusive(ctx):
		return eventstore.RecordedEvent{}, false, fmt.Errorf("%w: the server says %v", errInsideRecord, r.err)
	}
	return r.event, r.found, r.err
}

// awaitRead returns nil if there is no result in time.
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

// verifyCheckpoint returns the checkpoint with the log's identity, or a *DivergedError if it is not on this log. The zero
// checkpoint and one at the beginning of this log are always valid.
func (c *conn) verifyCheckpoint(ctx context.Context, checkpoint eventstore.Checkpoint) (eventstore.Checkpoint, error) {
	id, err := c.resolveIdentity(ctx)
	if err != nil {
		return checkpoint, err
	}
	if checkpoint == (eventstore.Checkpoint{}) || checkpoint == (eventstore.Checkpoint{Log: id}) {
		return eventstore.Checkpoint{Log: id}, nil
	}
	if checkpoint.Log != id {
		return checkpoint, &eventstore.DivergedError{Checkpoint: checkpoint, Reason: fmt.Sprintf("this is log %s, not %s", id, checkpoint.Log), IsOtherLog: true}
	}
	e, found, err := c.readAtCheckpoint(ctx, checkpoint.Position)
	switch {
	case errors.Is(err, errInsideRecord) || status.Code(err) == codes.InvalidArgument: // the second is a node's own answer
		return checkpoint, &eventstore.DivergedError{Checkpoint: checkpoint, Reason: err.Error()}
	case err != nil:
		return checkpoint, err
	case !found:
		return checkpoint, &eventstore.DivergedError{Checkpoint: checkpoint, Reason: "the log ends before it"}
	case e.Position != checkpoint.Position || checkpoint.Position == 0:
		return checkpoint, &eventstore.DivergedError{Checkpoint: checkpoint, Reason: "no event stands there"}
	case e.ID != checkpoint.Event:
		return checkpoint, &eventstore.DivergedError{Checkpoint: checkpoint, Reason: fmt.Sprintf("event %s stands there, not %s", e.ID, checkpoint.Event)}
	}
	return checkpoint, nil
}
