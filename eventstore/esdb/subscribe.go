package esdb

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

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
