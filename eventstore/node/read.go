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

// reply sends what a read finds. Send waits for the client, so nothing is read from the log before it can be sent.
type reply struct {
	streams.Streams_ReadServer
	text bool
}

func (r reply) event(e eventstore.Recorded) error { return r.Send(recorded(e, r.text)) }

func (r reply) notFound(stream string) error {
	return r.Send(&streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{
		StreamNotFound: &streams.ReadResp_StreamNotFound{StreamIdentifier: named(stream)},
	}})
}

func (r reply) confirmation() error {
	return r.Send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{
		Confirmation: &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: uuid.NewString()},
	}})
}

func (r reply) caughtUp() error {
	return r.Send(&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}})
}

func (r reply) checkpoint(p eventstore.Position) error {
	return r.Send(&streams.ReadResp{Content: &streams.ReadResp_Checkpoint_{
		Checkpoint: &streams.ReadResp_Checkpoint{CommitPosition: uint64(p), PreparePosition: uint64(p)},
	}})
}

// Read answers every kind of read and subscription.
func (s *service) Read(req *streams.ReadReq, call streams.Streams_ReadServer) error {
	q, err := parse(req)
	if err != nil {
		return err
	}
	out := reply{call, q.text}
	switch {
	case q.follow:
		return s.follow(call.Context(), q, out)
	case q.stream != "":
		return s.n.readStream(call.Context(), q, out)
	}
	return s.n.readAll(call.Context(), q, out)
}

// follow runs a subscription until its client goes away or the node stops.
func (s *service) follow(ctx context.Context, q *query, out reply) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)()
	var err error
	if q.stream != "" {
		err = s.n.followStream(ctx, q, out)
	} else {
		err = s.n.followAll(ctx, q, out)
	}
	if s.draining.Err() != nil && errors.Is(err, context.Canceled) {
		return notReady()
	}
	return err
}

// span is what may be read of a stream: the revisions from first to last, both included.
type span struct{ first, last eventstore.Revision }

// span applies a stream's metadata.
func (n *Node) span(ctx context.Context, stream string, s state) (span, error) {
	v := span{0, s.last}
	if b := s.limits.Before; b != nil {
		v.first = max(v.first, eventstore.Revision(*b))
	}
	if c := s.limits.MaxCount; c != nil {
		v.first = max(v.first, v.last-eventstore.Revision(*c)+1)
	}
	if s.limits.MaxAge == nil || v.first > v.last {
		return v, nil
	}
	var err error
	oldest := n.o.Clock().Add(-age(*s.limits.MaxAge))
	young := sort.Search(int(v.last-v.first)+1, func(i int) bool {
		var e eventstore.Recorded
		if err == nil {
			e, err = n.at(ctx, stream, v.first+eventstore.Revision(i))
		}
		return !e.Time.Before(oldest)
	})
	v.first += eventstore.Revision(young)
	return v, err
}

// age keeps seconds within what a Duration can hold.
func age(seconds int64) time.Duration {
	return time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second
}

func (n *Node) at(ctx context.Context, stream string, r eventstore.Revision) (eventstore.Recorded, error) {
	for e, err := range n.log.ReadStream(ctx, stream, r, eventstore.Forward) {
		return e, err
	}
	return eventstore.Recorded{}, nil
}

func (n *Node) readStream(ctx context.Context, q *query, out reply) error {
	s, err := n.state(ctx, q.stream)
	if err != nil {
		return err
	}
	switch {
	case s.tomb:
		return deleted(q.stream)
	case s.last < 0 || s.deleted:
		return out.notFound(q.stream)
	}
	v, err := n.span(ctx, q.stream, s)
	if err != nil {
		return err
	}
	if q.dir == eventstore.Backward {
		err = n.backward(ctx, q, v, out)
	} else {
		err = n.forward(ctx, q, v, out)
	}
	if err != nil || !q.bounds {
		return err
	}
	return out.Send(&streams.ReadResp{Content: &streams.ReadResp_LastStreamPosition{LastStreamPosition: uint64(s.last)}})
}

func (n *Node) forward(ctx context.Context, q *query, v span, out reply) error {
	from := max(v.first, eventstore.Revision(q.from.at))
	if q.from.end || from > v.last {
		return n.nothing(q, v, out)
	}
	left := q.count
	for e, err := range n.log.ReadStream(ctx, q.stream, from, eventstore.Forward) {
		if err != nil {
			return err
		}
		if e.Revision > v.last {
			return nil
		}
		if err := out.event(e); err != nil {
			return err
		}
		if left--; left == 0 {
			return nil
		}
	}
	return nil
}

// nothing tells a client that asks for it where the stream would go on, when that is elsewhere.
func (n *Node) nothing(q *query, v span, out reply) error {
	next := uint64(v.last) + 1
	if !q.bounds || !q.from.end && q.from.at == next {
		return nil
	}
	return out.Send(&streams.ReadResp{Content: &streams.ReadResp_FirstStreamPosition{FirstStreamPosition: next}})
}

func (n *Node) backward(ctx context.Context, q *query, v span, out reply) error {
	from := v.last
	if !q.from.end {
		from = min(from, eventstore.Revision(q.from.at))
	}
	if from < v.first {
		return nil
	}
	left := q.count
	for e, err := range n.log.ReadStream(ctx, q.stream, from, eventstore.Backward) {
		if err != nil {
			return err
		}
		if e.Revision < v.first {
			return nil
		}
		if err := out.event(e); err != nil {
			return err
		}
		if left--; left == 0 {
			return nil
		}
	}
	return nil
}

// position takes the end for the greatest one.
func (p place) position() eventstore.Position {
	if p.end {
		return math.MaxUint64
	}
	return eventstore.Position(p.at)
}

func (n *Node) readAll(ctx context.Context, q *query, out reply) error {
	if q.from.end && q.dir == eventstore.Forward {
		return nil
	}
	left := q.count
	for e, err := range n.log.Scan(ctx, q.from.position(), q.dir) {
		if err != nil {
			return err
		}
		if !q.want.wants(e) {
			continue
		}
		if err := out.event(e); err != nil {
			return err
		}
		if left--; left == 0 {
			return nil
		}
	}
	return nil
}
