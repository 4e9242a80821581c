package esdb

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"lieudit/eventstore"
)

// Subscribe keeps the contract over any number of connections: each begins by checking the mark it resumes after.
func (s *Store) Subscribe(ctx context.Context, after eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		sub := &subscriber{checkpoint: after, filter: filter, yield: yield}
		backoff := minBackoff
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
				backoff = minBackoff
			}
			sleep(ctx, backoff/2+rand.N(backoff))
			backoff = min(2*backoff, maxBackoff)
		}
	}
}

// isFinal says whether a subscription ends with the error instead of trying again.
func isFinal(ctx context.Context, err error) bool {
	var diverged *eventstore.DivergedError
	return ctx.Err() != nil || errors.Is(err, eventstore.ErrClosed) || errors.As(err, &diverged)
}

const (
	missedEventInterval = time.Second            // after which a subscription looks whether it missed something
	arrivalGrace        = 250 * time.Millisecond // for what it seems to have missed to arrive after all
)

var errMissedEvent = errors.New("the subscription was not told of an event that is in the log")

// subscriber is a subscriber: how far it was told, and what it still has to be told.
type subscriber struct {
	checkpoint     eventstore.Checkpoint
	filter         eventstore.Filter
	yield          func(eventstore.Signal, error) bool
	hasStopped     bool
	needsCaughtUp  bool                // events were told since the last CaughtUp
	missedPosition eventstore.Position // of an event found in the log and not told yet
}

// runOn is one subscription on one connection. It ends when that does, or when the subscriber stops.
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

func (sub *subscriber) nextCheckInterval() time.Duration {
	if sub.missedPosition > sub.checkpoint.Position {
		return arrivalGrace
	}
	return missedEventInterval
}

// emit passes a signal on, at the mark where it stands.
func (sub *subscriber) emit(s eventstore.Signal) {
	sub.checkpoint = s.Checkpoint
	sub.hasStopped = !sub.yield(s, nil)
}

// handleMessage deals with one message of the subscription.
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

// emitCheckpoint tells of a checkpoint, once the event that stands there is known.
func (sub *subscriber) emitCheckpoint(ctx context.Context, c *conn, p eventstore.Position) error {
	if p <= sub.checkpoint.Position {
		return nil
	}
	m, err := c.checkpointAt(ctx, sub.checkpoint.Log, p)
	if err == nil && m.Position > sub.checkpoint.Position {
		sub.emit(eventstore.Signal{Kind: eventstore.CheckpointReached, Checkpoint: m})
	}
	return err
}

// checkForMissedEvents compares what was told with the log, because a server may stop telling without a word.
func (sub *subscriber) checkForMissedEvents(ctx context.Context, c *conn) error {
	if sub.missedPosition > sub.checkpoint.Position {
		return errMissedEvent
	}
	end, err := c.resolveEnd(ctx, sub.checkpoint)
	if err != nil {
		return err
	}
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

// subscriptionMessage is what a subscription says: an event, a checkpoint (Progress) or that it has caught up.
type subscriptionMessage struct {
	kind     eventstore.SignalKind
	event    eventstore.RecordedEvent
	position eventstore.Position
}

// subscription moves the messages of one subscription into a channel, so that its reader can look at the clock too.
type subscription struct {
	messages chan subscriptionMessage // closed at the end
	err      error                    // why it ended; valid once messages is closed
	cancel   context.CancelFunc
}

// messageBuffer is how many messages are received before their reader takes them: enough to keep both sides busy.
const messageBuffer = 64

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

// stop ends the subscription and waits for that.
func (s *subscription) stop() {
	s.cancel()
	for range s.messages { // until it is closed
	}
}

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
