package esdb

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"lieudit/eventstore"
	"lieudit/eventstore/clock"
)

// Subscribe implements eventstore.Store. It continues over any number of connections: on each it verifies the checkpoint that
// it resumes after.
func (s *Store) Subscribe(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		sub := &subscriber{checkpoint: after, filter: filter, yield: yield}
		pauses := newBackoff(minBackoff, maxBackoff)
		for {
			c, err := s.connector.waitForConn(ctx)
			if err != nil {
				yield(eventstore.Signal{}, err)
				return
			}
			before := sub.checkpoint
			err = sub.runOn(ctx, c)
			if sub.hasStopped {
				return
			}
			if err = s.reportReadError(ctx, c, err); isFinal(ctx, err) {
				yield(eventstore.Signal{}, err)
				return
			}
			if sub.checkpoint != before {
				pauses.Reset()
			}
			clock.Sleep(ctx, pauses.NextBackOff())
		}
	}
}

// isFinal reports whether an error ends a subscription for its caller. Other errors are retried.
func isFinal(ctx context.Context, err error) bool {
	var diverged *eventstore.DivergedError
	return ctx.Err() != nil || errors.Is(err, eventstore.ErrClosed) || errors.As(err, &diverged)
}

// The times of the check for missed events.
const (
	missedEventInterval = time.Second            // of silence between two checks for missed events
	arrivalGrace        = 250 * time.Millisecond // for a missed event to arrive after all
)

// errMissedEvent ends a subscription on one connection: the log has an event that the server did not send.
var errMissedEvent = errors.New("the subscription was not told of an event that is in the log")

// subscriber is the state of one Subscribe call: how far its consumer is, over all connections.
type subscriber struct {
	checkpoint     eventstore.Checkpoint // what the next connection resumes after
	filter         eventstore.Filter
	yield          func(eventstore.Signal, error) bool
	hasStopped     bool                // the consumer has stopped
	needsCaughtUp  bool                // events were emitted since the last CaughtUp
	missedPosition eventstore.Position // of an event that the log has and the subscription has not sent
}

// runOn runs the subscription on one connection, until the connection ends or the consumer stops. It yields nothing twice: it
// skips events up to the checkpoint.
func (sub *subscriber) runOn(ctx context.Context, c *conn) error {
	checkpoint, err := c.verifyCheckpoint(ctx, sub.checkpoint)
	if err != nil {
		return err
	}
	sub.checkpoint, sub.needsCaughtUp, sub.missedPosition = checkpoint, true, 0
	stream := c.subscribe(ctx, checkpoint.Position, sub.filter)
	defer stream.stop()
	idle := time.NewTimer(missedEventInterval)
	defer idle.Stop()
	for {
		select {
		case m, ok := <-stream.messages:
			if !ok {
				return stream.err
			}
			err = sub.handleMessage(ctx, c, m)
			idle.Reset(missedEventInterval)
		case <-idle.C:
			err = sub.checkForMissedEvents(ctx, c)
			idle.Reset(sub.nextCheckInterval())
		}
		if err != nil || sub.hasStopped {
			return err
		}
	}
}

// nextCheckInterval is the time until the next check for missed events; it is short while one seems to be missed.
func (sub *subscriber) nextCheckInterval() time.Duration {
	if sub.missedPosition > sub.checkpoint.Position {
		return arrivalGrace
	}
	return missedEventInterval
}

// emit yields a signal and moves to its checkpoint.
func (sub *subscriber) emit(s eventstore.Signal) {
	sub.checkpoint = s.Checkpoint
	sub.hasStopped = !sub.yield(s, nil)
}

// handleMessage emits the signal of one message, if it has one.
func (sub *subscriber) handleMessage(ctx context.Context, c *conn, m subscriptionMessage) error {
	switch m.kind {
	case eventstore.EventAppeared:
		sub.emitEvent(m.event)
	case eventstore.CheckpointReached:
		return sub.emitCheckpoint(ctx, c, m.position)
	case eventstore.CaughtUp:
		sub.needsCaughtUp = false
		sub.emit(eventstore.Signal{Kind: eventstore.CaughtUp, Checkpoint: sub.checkpoint})
	}
	return nil
}

// emitEvent emits an event, unless it was emitted on an earlier connection or does not match the filter: the server filters
// by prefixes only (see withFilter).
func (sub *subscriber) emitEvent(e eventstore.RecordedEvent) {
	if e.Position <= sub.checkpoint.Position {
		return
	}
	s := eventSignal(sub.checkpoint, e)
	if !sub.filter.Matches(e.Stream) {
		sub.checkpoint = s.Checkpoint
		return
	}
	sub.needsCaughtUp = true
	sub.emit(s)
}

// emitCheckpoint emits a checkpoint at a position that the server names, after reading the event there.
func (sub *subscriber) emitCheckpoint(ctx context.Context, c *conn, p eventstore.Position) error {
	if p <= sub.checkpoint.Position {
		return nil
	}
	reached, err := c.checkpointAt(ctx, sub.checkpoint.Log, p)
	if err == nil && reached.Position > sub.checkpoint.Position {
		sub.emit(eventstore.Signal{Kind: eventstore.CheckpointReached, Checkpoint: reached})
	}
	return err
}

// checkForMissedEvents compares the subscription with the log, because a server may stop sending without an error. A matching
// event that the log has and the subscription did not send gets arrivalGrace to arrive; then the subscription is restarted.
// If nothing is missed, the checkpoint moves to the end of the log.
func (sub *subscriber) checkForMissedEvents(ctx context.Context, c *conn) error {
	if sub.missedPosition > sub.checkpoint.Position {
		return errMissedEvent
	}
	end, err := c.resolveEnd(ctx, sub.checkpoint)
	if err != nil {
		return err
	}
	// Remember the first matching event that the subscription has not sent, without emitting it.
	for e, err := range c.readMatching(ctx, sub.checkpoint.Position, end.Position, sub.filter) {
		sub.missedPosition = e.Position
		return err
	}
	switch {
	case sub.needsCaughtUp:
		sub.needsCaughtUp = false
		sub.emit(eventstore.Signal{Kind: eventstore.CaughtUp, Checkpoint: end})
	case end.Position > sub.checkpoint.Position:
		sub.emit(eventstore.Signal{Kind: eventstore.CheckpointReached, Checkpoint: end})
	}
	return nil
}

// subscriptionMessage is one message of a subscription: an event, a position reached, or CaughtUp.
type subscriptionMessage struct {
	kind     eventstore.SignalKind
	event    eventstore.RecordedEvent
	position eventstore.Position
}

// subscription receives the messages of one Read call into a channel, so that the subscriber can also wait for a timer.
type subscription struct {
	messages chan subscriptionMessage // closed at the end
	err      error                    // why it ended; valid once messages is closed
	cancel   context.CancelFunc
}

// messageBuffer is how many messages are received ahead of the subscriber: enough to keep both sides busy.
const messageBuffer = 64

// subscribe starts a subscription on the connection.
func (c *conn) subscribe(ctx context.Context, after eventstore.Position, filter eventstore.Filter) *subscription {
	callCtx, cancel := context.WithCancel(noDeadline{ctx})
	s := &subscription{messages: make(chan subscriptionMessage, messageBuffer), cancel: cancel}
	options := asSubscription(withFilter(allReadOptions(after, eventstore.Forward, 0), filter))
	go func() {
		defer close(s.messages)
		s.err = c.receiveMessages(callCtx, options, s.messages)
	}()
	return s
}

// stop ends the subscription and waits for its goroutine.
func (s *subscription) stop() {
	s.cancel()
	for range s.messages { // until it is closed
	}
}

// receiveMessages receives messages until the call ends, and returns why it ended.
func (c *conn) receiveMessages(ctx context.Context, options *streams.ReadReq_Options, to chan<- subscriptionMessage) error {
	call, err := c.streams.Read(requireLeader(ctx), &streams.ReadReq{Options: options})
	if err != nil {
		return readError(ctx, err, nil)
	}
	for {
		resp, err := call.Recv()
		if err != nil {
			return readError(ctx, err, call.Trailer())
		}
		c.recordResponse()
		m, ok := parseMessage(resp)
		if !ok {
			continue
		}
		select {
		case to <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// parseMessage reads a message; ok is false for one without a meaning here, such as the confirmation.
func parseMessage(resp *streams.ReadResp) (subscriptionMessage, bool) {
	switch {
	case resp.GetEvent().GetEvent() != nil:
		return subscriptionMessage{kind: eventstore.EventAppeared, event: parseRecordedEvent(resp.GetEvent().GetEvent())}, true
	case resp.GetCheckpoint() != nil:
		return subscriptionMessage{kind: eventstore.CheckpointReached, position: eventstore.Position(resp.GetCheckpoint().GetCommitPosition())}, true
	case resp.GetCaughtUp() != nil:
		return subscriptionMessage{kind: eventstore.CaughtUp}, true
	}
	return subscriptionMessage{}, false
}
