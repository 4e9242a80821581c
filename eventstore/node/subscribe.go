package node

import (
	"context"
	"math"

	"lieudit/eventstore"
)

// subscribeToStream sends the events of one stream after a revision, CaughtUp, and then the events to come.
func (n *Node) subscribeToStream(ctx context.Context, q *query, out readResponder) error {
	s, err := n.loadState(ctx, q.stream)
	if err != nil {
		return err
	}
	if s.isTombstoned {
		return streamDeleted(q.stream)
	}
	if err := out.sendConfirmation(); err != nil {
		return err
	}
	next, err := n.catchUp(ctx, q, s, out)
	if err != nil {
		return err
	}
	// EventStoreDB sends no CaughtUp for a stream that does not exist before it has events.
	hasCaughtUp := s.last >= 0 && !s.isDeleted
	if hasCaughtUp {
		if err := out.sendCaughtUp(); err != nil {
			return err
		}
	}
	return n.followStream(ctx, q.stream, next, hasCaughtUp, out)
}

// followStream sends the events of a stream from the revision next on, as they are appended, until ctx ends. Any
// append to the log wakes it, so it looks at its stream then and often finds nothing new. Like EventStoreDB it sends
// CaughtUp after the first events of a new stream, and after more than pageSize events at once.
func (n *Node) followStream(ctx context.Context, stream string, next eventstore.Revision, hasCaughtUp bool, out readResponder) (err error) {
	for seen := eventstore.Position(0); ; {
		if seen, err = n.log.Wait(ctx, seen); err != nil {
			return err
		}
		sent, err := n.sendRange(ctx, stream, revisionRange{next, math.MaxInt64}, out)
		if err != nil {
			return err
		}
		next += sent
		if sent > pageSize || sent > 0 && !hasCaughtUp {
			hasCaughtUp = true
			if err := out.sendCaughtUp(); err != nil {
				return err
			}
		}
	}
}

// catchUp sends what the stream holds within its metadata, and returns the revision to continue with. Events that
// are appended later are sent whatever the metadata says.
func (n *Node) catchUp(ctx context.Context, q *query, s streamState, out readResponder) (eventstore.Revision, error) {
	next := eventstore.Revision(0)
	switch {
	case q.from.fromEnd:
		next = s.last + 1
	case !q.from.fromStart:
		next = eventstore.Revision(min(q.from.offset, math.MaxInt64-1)) + 1
	}
	if s.isDeleted || next > s.last {
		return max(next, s.last+1), nil
	}
	v, err := n.readableRange(ctx, q.stream, s)
	if err != nil {
		return 0, err
	}
	if v.first = max(v.first, next); v.first <= v.last {
		_, err = n.sendRange(ctx, q.stream, v, out)
	}
	return s.last + 1, err
}

// sendRange sends a range of a stream as far as it exists, and returns how many events it sent. After a tombstone
// it fails with the refusal of a deleted stream.
func (n *Node) sendRange(ctx context.Context, stream string, v revisionRange, out readResponder) (sent eventstore.Revision, err error) {
	for e, err := range n.log.ReadStream(ctx, stream, v.first, eventstore.Forward) {
		if err != nil {
			return sent, err
		}
		if e.Revision > v.last {
			break
		}
		if err := out.sendEvent(e); err != nil {
			return sent, err
		}
		if isTombstone(e) {
			return sent, streamDeleted(stream)
		}
		sent++
	}
	return sent, nil
}

// allSubscription is the state of one subscription to the whole log.
type allSubscription struct {
	out             readResponder
	filter          *filter
	scanned         eventstore.Position // position of the last event read
	after           eventstore.Position // events up to here are not sent
	checkpoint      eventstore.Position // position of the last one sent
	sinceCheckpoint uint64              // events scanned since then
	sent            int                 // events sent in this scan
}

// subscribeToAll sends the matching events after a position, CaughtUp, and then the matching events to come. A filtered
// subscription also gets the positions that it has scanned, since long stretches of the log may not match.
func (n *Node) subscribeToAll(ctx context.Context, q *query, out readResponder) error {
	end, err := n.endPosition(ctx)
	if err != nil {
		return err
	}
	s := &allSubscription{out: out, filter: q.filter}
	if !q.from.fromStart {
		s.after = min(q.from.startPosition(), math.MaxInt64)
	}
	if q.from.fromEnd {
		s.after = end
	}
	if err := out.sendConfirmation(); err != nil {
		return err
	}
	// A position beyond the end is allowed: the scan begins at the end, and events up to that position are not sent.
	if s.scanned = min(s.after, end); s.after < end {
		if err := s.catchUp(ctx, n.log); err != nil {
			return err
		}
	} else if err := out.sendCaughtUp(); err != nil {
		return err
	}
	for s.sinceCheckpoint = 0; ; {
		if _, err := n.log.Wait(ctx, s.scanned); err != nil {
			return err
		}
		if err := s.sendNew(ctx, n.log); err != nil {
			return err
		}
	}
}

// endPosition returns the position of the last event, or 0 if there is none.
func (n *Node) endPosition(ctx context.Context) (eventstore.Position, error) {
	for e, err := range n.log.Scan(ctx, math.MaxUint64, eventstore.Backward) {
		return e.Position, err
	}
	return 0, nil
}

// catchUp sends the matching events that exist, a checkpoint, and CaughtUp.
func (s *allSubscription) catchUp(ctx context.Context, log Log) error {
	if err := s.scan(ctx, log); err != nil {
		return err
	}
	if err := s.sendCheckpoint(); err != nil {
		return err
	}
	return s.out.sendCaughtUp()
}

// sendNew sends what was appended since the last scan. After more events than EventStoreDB queues for a subscriber
// it sends CaughtUp again, as that server does.
func (s *allSubscription) sendNew(ctx context.Context, log Log) error {
	s.sent = 0
	if err := s.scan(ctx, log); err != nil || s.sent <= pageSize {
		return err
	}
	if err := s.sendCheckpoint(); err != nil {
		return err
	}
	return s.out.sendCaughtUp()
}

// scan handles every event after the last one that was scanned.
func (s *allSubscription) scan(ctx context.Context, log Log) error {
	for e, err := range log.Scan(ctx, s.scanned, eventstore.Forward) {
		if err != nil {
			return err
		}
		// Scan begins with the event at the position, which was scanned before unless this is the beginning of the log.
		if e.Position <= s.scanned && s.scanned > 0 {
			continue
		}
		s.scanned = e.Position
		if err := s.handleEvent(e); err != nil {
			return err
		}
	}
	return nil
}

// handleEvent sends a matching event, and a checkpoint when the filter's interval is over.
func (s *allSubscription) handleEvent(e eventstore.RecordedEvent) error {
	if e.Position > s.after && s.filter.matches(e) {
		if err := s.out.sendEvent(e); err != nil {
			return err
		}
		s.sent++
	}
	if s.sinceCheckpoint++; s.filter != nil && s.sinceCheckpoint >= s.filter.checkpointInterval {
		return s.sendCheckpoint()
	}
	return nil
}

// sendCheckpoint sends a filtered subscriber the position of the last event scanned, never twice and never
// backwards.
func (s *allSubscription) sendCheckpoint() error {
	s.sinceCheckpoint = 0
	if s.filter == nil || s.scanned <= max(s.checkpoint, s.after) {
		return nil
	}
	s.checkpoint = s.scanned
	return s.out.sendCheckpoint(s.scanned)
}
