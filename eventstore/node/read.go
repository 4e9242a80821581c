package node

import (
	"context"
	"errors"
	"math"
	"sort"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"

	"lieudit/eventstore"
)

// readResponder sends the messages of one read. Send blocks until the client has room, so the log is read no faster
// than the client receives.
type readResponder struct {
	streams.Streams_ReadServer
	idsAsText bool
}

// sendEvent sends one event.
func (r readResponder) sendEvent(e eventstore.RecordedEvent) error {
	return r.Send(eventResponse(e, r.idsAsText))
}

// sendNotFound answers a read of a stream without readable events.
func (r readResponder) sendNotFound(stream string) error {
	return r.Send(&streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{
		StreamNotFound: &streams.ReadResp_StreamNotFound{StreamIdentifier: streamIdentifier(stream)},
	}})
}

// sendConfirmation is the first message of a subscription. Clients wait for it, and ignore the id.
func (r readResponder) sendConfirmation() error {
	return r.Send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{
		Confirmation: &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: uuid.NewString()},
	}})
}

// sendCaughtUp says that a subscription has been sent everything there is.
func (r readResponder) sendCaughtUp() error {
	return r.Send(&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}})
}

// sendCheckpoint says how far a filtered subscription has scanned the log.
func (r readResponder) sendCheckpoint(p eventstore.Position) error {
	return r.Send(&streams.ReadResp{Content: &streams.ReadResp_Checkpoint_{
		Checkpoint: &streams.ReadResp_Checkpoint{CommitPosition: uint64(p), PreparePosition: uint64(p)},
	}})
}

// Read answers reads of a stream, reads of the whole log, and subscriptions to either.
func (s *streamsService) Read(req *streams.ReadReq, call streams.Streams_ReadServer) error {
	q, err := parseQuery(req)
	if err != nil {
		return err
	}
	out := readResponder{call, q.idsAsText}
	switch {
	case q.isSubscription:
		return s.subscribe(call.Context(), q, out)
	case q.stream != "":
		return s.node.readStream(call.Context(), q, out)
	}
	return s.node.readAll(call.Context(), q, out)
}

// subscribe runs a subscription until its client goes away or the node stops.
func (s *streamsService) subscribe(ctx context.Context, q *query, out readResponder) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.drainCtx, cancel)()
	var err error
	if q.stream != "" {
		err = s.node.subscribeToStream(ctx, q, out)
	} else {
		err = s.node.subscribeToAll(ctx, q, out)
	}
	if s.drainCtx.Err() != nil && errors.Is(err, context.Canceled) {
		return notReady()
	}
	return err
}

// revisionRange is a range of a stream's revisions, both ends included. It is empty if first > last.
type revisionRange struct{ first, last eventstore.Revision }

// readableRange returns the range of a stream that its metadata makes readable: from the first revision that $tb,
// $maxCount and $maxAge all allow to the last one. $maxAge is found by binary search: times grow with revisions.
func (n *Node) readableRange(ctx context.Context, stream string, s streamState) (revisionRange, error) {
	v := revisionRange{0, s.last} // first is raised by each limit below
	if b := s.limits.TruncateBefore; b != nil {
		v.first = max(v.first, eventstore.Revision(*b))
	}
	if c := s.limits.MaxCount; c != nil {
		v.first = max(v.first, v.last-eventstore.Revision(*c)+1)
	}
	if s.limits.MaxAge == nil || v.first > v.last {
		return v, nil
	}
	var err error
	oldest := n.options.Clock().Add(-maxAgeDuration(*s.limits.MaxAge))
	firstYoung := sort.Search(int(v.last-v.first)+1, func(i int) bool {
		var e eventstore.RecordedEvent
		if err == nil {
			e, err = n.readEvent(ctx, stream, v.first+eventstore.Revision(i))
		}
		return !e.Time.Before(oldest)
	})
	v.first += eventstore.Revision(firstYoung)
	return v, err
}

// maxAgeDuration keeps seconds within what a Duration can hold.
func maxAgeDuration(seconds int64) time.Duration {
	return time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second
}

// readEvent reads one event of a stream. It returns the zero event if there is none.
func (n *Node) readEvent(ctx context.Context, stream string, r eventstore.Revision) (eventstore.RecordedEvent, error) {
	for e, err := range n.log.ReadStream(ctx, stream, r, eventstore.Forward) {
		return e, err
	}
	return eventstore.RecordedEvent{}, nil
}

// readStream answers a read of one stream. A stream that does not exist is an answer of its own, not an error.
func (n *Node) readStream(ctx context.Context, q *query, out readResponder) error {
	s, err := n.loadState(ctx, q.stream)
	if err != nil {
		return err
	}
	switch {
	case s.isTombstoned:
		return streamDeleted(q.stream)
	case s.last < 0 || s.isDeleted:
		return out.sendNotFound(q.stream)
	}
	v, err := n.readableRange(ctx, q.stream, s)
	if err != nil {
		return err
	}
	return n.readRange(ctx, q, v, out)
}

// readRange sends the events of a range from the start of the query, in its direction, up to its count. A read that
// begins before the range, in its direction, begins at the first event of the range; one that begins beyond it finds
// nothing.
func (n *Node) readRange(ctx context.Context, q *query, v revisionRange, out readResponder) error {
	from := v.last
	switch offset := eventstore.Revision(q.from.offset); {
	case q.dir == eventstore.Forward && q.from.fromEnd:
		return nil
	case q.dir == eventstore.Forward:
		from = max(v.first, offset)
	case !q.from.fromEnd:
		from = min(v.last, offset)
	}
	if from < v.first || from > v.last {
		return nil
	}
	remaining := q.count
	for e, err := range n.log.ReadStream(ctx, q.stream, from, q.dir) {
		if err != nil {
			return err
		}
		if e.Revision < v.first || e.Revision > v.last {
			return nil
		}
		if err := out.sendEvent(e); err != nil {
			return err
		}
		if remaining--; remaining == 0 {
			return nil
		}
	}
	return nil
}

// startPosition returns the position of a start; that of the end is the greatest one.
func (p readStart) startPosition() eventstore.Position {
	if p.fromEnd {
		return math.MaxUint64
	}
	return eventstore.Position(p.offset)
}

// readAll answers a read of the whole log. count limits the events that are sent, not those that the filter drops.
func (n *Node) readAll(ctx context.Context, q *query, out readResponder) error {
	if q.from.fromEnd && q.dir == eventstore.Forward {
		return nil
	}
	remaining := q.count
	for e, err := range n.log.Scan(ctx, q.from.startPosition(), q.dir) {
		if err != nil {
			return err
		}
		if !q.filter.matches(e) {
			continue
		}
		if err := out.sendEvent(e); err != nil {
			return err
		}
		if remaining--; remaining == 0 {
			return nil
		}
	}
	return nil
}
