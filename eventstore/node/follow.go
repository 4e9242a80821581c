package node

import (
	"context"
	"math"

	"lieudit/eventstore"
)

// followStream sends the events of one stream after a revision and then those to come.
func (n *Node) followStream(ctx context.Context, q *query, out reply) error {
	s, err := n.state(ctx, q.stream)
	if err != nil {
		return err
	}
	if s.tomb {
		return deleted(q.stream)
	}
	if err := out.confirmation(); err != nil {
		return err
	}
	next, err := n.catchUp(ctx, q, s, out)
	if err != nil {
		return err
	}
	// EventStoreDB does not say that it has caught up with a stream that is not there, before there are events.
	told := s.last >= 0 && !s.deleted
	if told {
		if err := out.caughtUp(); err != nil {
			return err
		}
	}
	for seen := eventstore.Position(0); ; {
		if seen, err = n.log.Wait(ctx, seen); err != nil {
			return err
		}
		sent, err := n.sendStream(ctx, q.stream, span{next, math.MaxInt64}, out)
		if err != nil {
			return err
		}
		next += sent
		if sent > pageSize || sent > 0 && !told {
			told = true
			if err := out.caughtUp(); err != nil {
				return err
			}
		}
	}
}

// catchUp sends what the stream holds, within its metadata, and returns the revision to go on with. Events to come are
// sent whatever the metadata says.
func (n *Node) catchUp(ctx context.Context, q *query, s state, out reply) (eventstore.Revision, error) {
	next := eventstore.Revision(0)
	switch {
	case q.from.end:
		next = s.last + 1
	case !q.from.start:
		next = eventstore.Revision(min(q.from.at, math.MaxInt64-1)) + 1
	}
	if s.deleted || next > s.last {
		return max(next, s.last+1), nil
	}
	v, err := n.span(ctx, q.stream, s)
	if err != nil {
		return 0, err
	}
	if v.first = max(v.first, next); v.first <= v.last {
		_, err = n.sendStream(ctx, q.stream, v, out)
	}
	return s.last + 1, err
}

// sendStream sends a span of a stream, as far as there is one, and counts. A tombstone is the last it can send.
func (n *Node) sendStream(ctx context.Context, stream string, v span, out reply) (sent eventstore.Revision, err error) {
	for e, err := range n.log.ReadStream(ctx, stream, v.first, eventstore.Forward) {
		if err != nil {
			return sent, err
		}
		if e.Revision > v.last {
			break
		}
		if err := out.event(e); err != nil {
			return sent, err
		}
		if isTombstone(e) {
			return sent, deleted(stream)
		}
		sent++
	}
	return sent, nil
}

// tracker follows the whole log for one subscriber.
type tracker struct {
	out        reply
	want       *filter
	scanned    eventstore.Position // of the last event read
	floor      eventstore.Position // events up to here are not sent
	checkpoint eventstore.Position // last one sent
	considered uint64              // events since then
	sent       int                 // events in this round
}

// followAll sends the wanted events after a position and then those to come.
func (n *Node) followAll(ctx context.Context, q *query, out reply) error {
	end, err := n.head(ctx)
	if err != nil {
		return err
	}
	t := &tracker{out: out, want: q.want}
	if !q.from.start {
		t.floor = min(q.from.position(), math.MaxInt64)
	}
	if q.from.end {
		t.floor = end
	}
	if err := out.confirmation(); err != nil {
		return err
	}
	if t.scanned = min(t.floor, end); t.floor < end {
		if err := t.round(ctx, n.log); err != nil {
			return err
		}
	} else if err := out.caughtUp(); err != nil {
		return err
	}
	for t.considered = 0; ; {
		if _, err := n.log.Wait(ctx, t.scanned); err != nil {
			return err
		}
		if err := t.live(ctx, n.log); err != nil {
			return err
		}
	}
}

// head is the position of the last event, 0 when there is none.
func (n *Node) head(ctx context.Context) (eventstore.Position, error) {
	for e, err := range n.log.Scan(ctx, math.MaxUint64, eventstore.Backward) {
		return e.Position, err
	}
	return 0, nil
}

// round catches up: everything there is, then a checkpoint and the word that it was everything.
func (t *tracker) round(ctx context.Context, log Log) error {
	if err := t.scan(ctx, log); err != nil {
		return err
	}
	if err := t.mark(); err != nil {
		return err
	}
	return t.out.caughtUp()
}

// live sends what came since. A burst longer than what EventStoreDB holds for a subscriber is a round of its own.
func (t *tracker) live(ctx context.Context, log Log) error {
	t.sent = 0
	if err := t.scan(ctx, log); err != nil || t.sent <= pageSize {
		return err
	}
	if err := t.mark(); err != nil {
		return err
	}
	return t.out.caughtUp()
}

func (t *tracker) scan(ctx context.Context, log Log) error {
	for e, err := range log.Scan(ctx, t.scanned, eventstore.Forward) {
		if err != nil {
			return err
		}
		if e.Position <= t.scanned && t.scanned > 0 {
			continue
		}
		t.scanned = e.Position
		if err := t.consider(e); err != nil {
			return err
		}
	}
	return nil
}

func (t *tracker) consider(e eventstore.Recorded) error {
	if e.Position > t.floor && t.want.wants(e) {
		if err := t.out.event(e); err != nil {
			return err
		}
		t.sent++
	}
	if t.considered++; t.want != nil && t.considered >= t.want.interval {
		return t.mark()
	}
	return nil
}

// mark sends a checkpoint to a filtered subscriber, at the last event considered, never twice and never backwards.
func (t *tracker) mark() error {
	t.considered = 0
	if t.want == nil || t.scanned <= max(t.checkpoint, t.floor) {
		return nil
	}
	t.checkpoint = t.scanned
	return t.out.checkpoint(t.scanned)
}
