package esdb

import (
	"context"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"lieudit/eventstore"
)

// message is what a subscription says: an event, a checkpoint (Progress) or that it has caught up.
type message struct {
	kind     eventstore.Kind
	event    eventstore.Recorded
	position eventstore.Position
}

// pump moves the messages of one subscription into a channel, so that its reader can look at the clock too.
type pump struct {
	messages chan message // closed at the end
	err      error        // why it ended; valid once messages is closed
	cancel   context.CancelFunc
}

// ahead is how many messages are received before their reader takes them: enough to keep both sides busy.
const ahead = 64

func (c *conn) subscribe(ctx context.Context, after eventstore.Position, want eventstore.Filter) *pump {
	within, cancel := context.WithCancel(timeless{ctx})
	p := &pump{messages: make(chan message, ahead), cancel: cancel}
	q := following(filtered(ofAll(after, eventstore.Forward, 0), want))
	go func() {
		defer close(p.messages)
		p.err = c.pump(within, q, p.messages)
	}()
	return p
}

// stop ends the subscription and waits for that.
func (p *pump) stop() {
	p.cancel()
	for range p.messages { // until it is closed
	}
}

func (c *conn) pump(ctx context.Context, q *streams.ReadReq_Options, to chan<- message) error {
	call, err := c.streams.Read(leaderOnly(ctx), &streams.ReadReq{Options: q})
	if err != nil {
		return unread(ctx, err, nil)
	}
	for {
		resp, err := call.Recv()
		if err != nil {
			return unread(ctx, err, call.Trailer())
		}
		c.answered()
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

func parseMessage(resp *streams.ReadResp) (message, bool) {
	switch {
	case resp.GetEvent().GetEvent() != nil:
		return message{kind: eventstore.Event, event: recorded(resp.GetEvent().GetEvent())}, true
	case resp.GetCheckpoint() != nil:
		return message{kind: eventstore.Progress, position: eventstore.Position(resp.GetCheckpoint().GetCommitPosition())}, true
	case resp.GetCaughtUp() != nil:
		return message{kind: eventstore.CaughtUp}, true
	}
	return message{}, false
}
