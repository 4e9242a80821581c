package esdb

import (
	"context"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"lieudit/eventstore"
)

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
