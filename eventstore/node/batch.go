package node

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"lieudit/eventstore"
)

const (
	maxOpen   = 1024     // batches begun and not yet final, a call
	maxFlight = 16 << 20 // bytes of events received and not yet answered, a call
)

// batch is one append of a BatchAppend call.
type batch struct {
	id       *shared.UUID
	named    *shared.StreamIdentifier // as the client sent it; every answer repeats it
	stream   string
	expected eventstore.Revision
	deadline time.Time // zero: none
	events   []eventstore.Proposed
	size     int
}

// batcher runs the appends of one BatchAppend call: those of one stream in the order they came, those of different
// streams side by side.
type batcher struct {
	n      *Node
	call   streams.Streams_BatchAppendServer
	open   map[uuid.UUID]*batch
	opened int // bytes in open
	flight *semaphore.Weighted
	lanes  sync.WaitGroup

	mu    sync.Mutex
	queue map[string][]*batch // by stream, while its lane runs
	reply sync.Mutex
}

// BatchAppend makes appends as they come and answers each by its correlation id, in the order they are done.
func (s *service) BatchAppend(call streams.Streams_BatchAppendServer) error {
	b := &batcher{n: s.n, call: call, open: map[uuid.UUID]*batch{}, queue: map[string][]*batch{}, flight: semaphore.NewWeighted(maxFlight)}
	defer b.lanes.Wait()
	arrived := make(chan arrival)
	s.readers.Go(func() { arrivals(call, arrived) })
	for {
		select {
		case a := <-arrived:
			if errors.Is(a.err, io.EOF) {
				return nil
			}
			if a.err != nil {
				return a.err
			}
			if err := b.take(call.Context(), a.req); err != nil {
				return err
			}
		case <-s.draining.Done():
			return notReady()
		}
	}
}

// arrival is what one receive gave.
type arrival struct {
	req *streams.BatchAppendReq
	err error
}

// arrivals receives until the call is over, so that its reader can look elsewhere meanwhile.
func arrivals(call streams.Streams_BatchAppendServer, to chan<- arrival) {
	for {
		req, err := call.Recv()
		select {
		case to <- arrival{req, err}:
		case <-call.Context().Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// take adds a request to its batch and sends a final one on its way. Its error ends the call.
func (b *batcher) take(ctx context.Context, req *streams.BatchAppendReq) error {
	id, err := parseID(req.GetCorrelationId())
	if err != nil {
		return b.answer(&batch{id: req.GetCorrelationId()}, badRequest("The correlation id is missing."))
	}
	one, known := b.open[id]
	if !known && req.GetOptions() == nil {
		return nil
	}
	if !known {
		if one, err = begin(req, b.n.o.Clock()); err != nil {
			return b.answer(one, refusal(one, err))
		}
	}
	delete(b.open, id)
	b.opened -= one.size
	if err := one.add(req.GetProposedMessages()); err != nil {
		return b.answer(one, refusal(one, err))
	}
	switch {
	case !one.deadline.IsZero() && !b.n.o.Clock().Before(one.deadline):
		return b.answer(one, timedOut())
	case req.GetIsFinal():
		return b.enqueue(ctx, one)
	case len(b.open) == maxOpen || b.opened+one.size > maxFlight:
		return b.answer(one, badRequest("Too many batches are open."))
	}
	b.open[id] = one
	b.opened += one.size
	return nil
}

// begin makes a batch of a request that carries options.
func begin(req *streams.BatchAppendReq, now time.Time) (*batch, error) {
	o := req.GetOptions()
	one := &batch{id: req.GetCorrelationId(), named: o.GetStreamIdentifier()}
	var err error
	if one.stream, err = streamName(o.GetStreamIdentifier()); err != nil {
		return one, err
	}
	switch p := o.GetExpectedStreamPosition().(type) {
	case *streams.BatchAppendReq_Options_StreamPosition:
		one.expected, err = revision(p.StreamPosition)
	case *streams.BatchAppendReq_Options_NoStream:
		one.expected = eventstore.NoStream
	case *streams.BatchAppendReq_Options_Any:
		one.expected = eventstore.Any
	case *streams.BatchAppendReq_Options_StreamExists:
		one.expected = streamExists
	default:
		err = invalid("An expected revision is missing.")
	}
	switch d := o.GetDeadlineOption().(type) {
	case *streams.BatchAppendReq_Options_Deadline:
		one.deadline = now.Add(d.Deadline.AsDuration())
	case *streams.BatchAppendReq_Options_Deadline_21_10_0:
		one.deadline = d.Deadline_21_10_0.AsTime()
	}
	return one, err
}

func (o *batch) add(messages []*streams.BatchAppendReq_ProposedMessage) error {
	for _, m := range messages {
		e, err := proposed(m)
		if err != nil {
			return err
		}
		if o.size += size(e); o.size > eventstore.MaxAppend || len(o.events) == maxEvents {
			return eventstore.ErrTooLarge
		}
		o.events = append(o.events, e)
	}
	return nil
}

// enqueue puts a batch at the end of its stream's lane, once there is room in the call.
func (b *batcher) enqueue(ctx context.Context, one *batch) error {
	if b.n.o.Faults.DropRepeats > 0 && !b.n.sent.add(one.events) {
		b.lanes.Go(func() { b.drop(ctx, one) })
		return nil
	}
	if err := b.flight.Acquire(ctx, one.weight()); err != nil {
		b.n.sent.remove(one.events)
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting, running := b.queue[one.stream]
	b.queue[one.stream] = append(waiting, one)
	if !running {
		b.lanes.Go(func() { b.run(ctx, one.stream) })
	}
	return nil
}

// weight counts an event's own cost in memory, so that empty ones are not free.
func (o *batch) weight() int64 { return min(int64(o.size+256*(1+len(o.events))), maxFlight) }

// run makes the appends of one stream until none waits.
func (b *batcher) run(ctx context.Context, stream string) {
	for {
		b.mu.Lock()
		waiting := b.queue[stream]
		if len(waiting) == 0 {
			delete(b.queue, stream)
			b.mu.Unlock()
			return
		}
		one := waiting[0]
		b.queue[stream] = waiting[1:]
		b.mu.Unlock()
		b.finish(ctx, one)
		b.flight.Release(one.weight())
	}
}

func (b *batcher) finish(ctx context.Context, one *batch) {
	if !one.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, one.deadline.Sub(b.n.o.Clock())-b.n.o.Faults.EarlyTimeout)
		defer cancel()
	}
	var done eventstore.Committed
	err := b.n.safely("BatchAppend", func() (err error) {
		done, err = b.n.append(ctx, one.stream, one.expected, one.events)
		return err
	})
	b.n.sent.remove(one.events) // before the answer: who has it may send the same again
	if err != nil {
		_ = b.answer(one, refusal(one, err))
		return
	}
	_ = b.answer(one, added(done))
}

// answer fails only when the call is over, which its reader learns by itself.
func (b *batcher) answer(one *batch, resp *streams.BatchAppendResp) error {
	resp.CorrelationId = one.id
	resp.StreamIdentifier = one.named
	b.reply.Lock()
	defer b.reply.Unlock()
	return b.call.Send(resp)
}
