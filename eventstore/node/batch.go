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
	maxOpenBatches   = 1024     // batches begun and not yet final, a call
	maxInFlightBytes = 16 << 20 // bytes of events received and not yet answered, a call
)

// batch is one append of a BatchAppend call.
type batch struct {
	id         *shared.UUID
	identifier *shared.StreamIdentifier // as the client sent it; every answer repeats it
	stream     string
	expected   eventstore.Revision
	deadline   time.Time // zero: none
	events     []eventstore.ProposedEvent
	size       int
}

// batchAppender runs the appends of one BatchAppend call: those of one stream in the order they came, those of different
// streams side by side.
type batchAppender struct {
	node          *Node
	call          streams.Streams_BatchAppendServer
	openBatches   map[uuid.UUID]*batch
	openBytes     int // bytes in open
	inFlightBytes *semaphore.Weighted
	workers       sync.WaitGroup

	mu     sync.Mutex
	queues map[string][]*batch // by stream, while its lane runs
	sendMu sync.Mutex
}

// BatchAppend makes appends as they come and answers each by its correlation id, in the order they are done.
func (s *streamsService) BatchAppend(call streams.Streams_BatchAppendServer) error {
	b := &batchAppender{node: s.node, call: call, openBatches: map[uuid.UUID]*batch{}, queues: map[string][]*batch{}, inFlightBytes: semaphore.NewWeighted(maxInFlightBytes)}
	defer b.workers.Wait()
	received := make(chan receivedRequest)
	s.receivers.Go(func() { receiveRequests(call, received) })
	for {
		select {
		case a := <-received:
			if errors.Is(a.err, io.EOF) {
				return nil
			}
			if a.err != nil {
				return a.err
			}
			if err := b.handleRequest(call.Context(), a.req); err != nil {
				return err
			}
		case <-s.drainCtx.Done():
			return notReady()
		}
	}
}

// receivedRequest is what one receive gave.
type receivedRequest struct {
	req *streams.BatchAppendReq
	err error
}

// receiveRequests receives until the call is over, so that its reader can look elsewhere meanwhile.
func receiveRequests(call streams.Streams_BatchAppendServer, to chan<- receivedRequest) {
	for {
		req, err := call.Recv()
		select {
		case to <- receivedRequest{req, err}:
		case <-call.Context().Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// handleRequest adds a request to its batch and sends a final one on its way. Its error ends the call.
func (b *batchAppender) handleRequest(ctx context.Context, req *streams.BatchAppendReq) error {
	id, err := parseUUID(req.GetCorrelationId())
	if err != nil {
		return b.sendResponse(&batch{id: req.GetCorrelationId()}, invalidArgument("The correlation id is missing.").batchResponse())
	}
	item, known := b.openBatches[id]
	if !known && req.GetOptions() == nil {
		return nil
	}
	if !known {
		if item, err = newBatch(req, b.node.options.Clock()); err != nil {
			return b.sendResponse(item, batchFailure(item, err))
		}
	}
	delete(b.openBatches, id)
	b.openBytes -= item.size
	if err := item.addMessages(req.GetProposedMessages()); err != nil {
		return b.sendResponse(item, batchFailure(item, err))
	}
	switch {
	case !item.deadline.IsZero() && !b.node.options.Clock().Before(item.deadline):
		return b.sendResponse(item, batchTimeout())
	case req.GetIsFinal():
		return b.enqueue(ctx, item)
	case len(b.openBatches) == maxOpenBatches || b.openBytes+item.size > maxInFlightBytes:
		return b.sendResponse(item, invalidArgument("Too many batches are open.").batchResponse())
	}
	b.openBatches[id] = item
	b.openBytes += item.size
	return nil
}

// newBatch makes a batch of a request that carries options.
func newBatch(req *streams.BatchAppendReq, now time.Time) (*batch, error) {
	o := req.GetOptions()
	item := &batch{id: req.GetCorrelationId(), identifier: o.GetStreamIdentifier()}
	var err error
	if item.stream, err = parseStreamName(o.GetStreamIdentifier()); err != nil {
		return item, err
	}
	switch p := o.GetExpectedStreamPosition().(type) {
	case *streams.BatchAppendReq_Options_StreamPosition:
		item.expected, err = parseStreamRevision(p.StreamPosition)
	case *streams.BatchAppendReq_Options_NoStream:
		item.expected = eventstore.NoStream
	case *streams.BatchAppendReq_Options_Any:
		item.expected = eventstore.Any
	case *streams.BatchAppendReq_Options_StreamExists:
		item.expected = streamExists
	default:
		err = invalidArgument("An expected revision is missing.")
	}
	switch d := o.GetDeadlineOption().(type) {
	case *streams.BatchAppendReq_Options_Deadline:
		item.deadline = now.Add(d.Deadline.AsDuration())
	case *streams.BatchAppendReq_Options_Deadline_21_10_0:
		item.deadline = d.Deadline_21_10_0.AsTime()
	}
	return item, err
}

func (o *batch) addMessages(messages []*streams.BatchAppendReq_ProposedMessage) error {
	for _, m := range messages {
		e, err := parseProposed(m)
		if err != nil {
			return err
		}
		if o.size += eventSize(e); o.size > eventstore.MaxAppendBytes || len(o.events) == maxAppendEvents {
			return eventstore.ErrTooLarge
		}
		o.events = append(o.events, e)
	}
	return nil
}

// enqueue puts a batch at the end of its stream's lane, once there is room in the call.
func (b *batchAppender) enqueue(ctx context.Context, item *batch) error {
	if b.node.options.Faults.RepeatTimeout > 0 && !b.node.inFlight.add(item.events) {
		b.workers.Go(func() { b.answerDroppedRepeat(ctx, item) })
		return nil
	}
	if err := b.inFlightBytes.Acquire(ctx, item.weight()); err != nil {
		b.node.inFlight.remove(item.events)
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting, running := b.queues[item.stream]
	b.queues[item.stream] = append(waiting, item)
	if !running {
		b.workers.Go(func() { b.appendQueued(ctx, item.stream) })
	}
	return nil
}

// weight counts an event's own cost in memory, so that empty ones are not free.
func (o *batch) weight() int64 { return min(int64(o.size+256*(1+len(o.events))), maxInFlightBytes) }

// appendQueued makes the appends of one stream until none waits.
func (b *batchAppender) appendQueued(ctx context.Context, stream string) {
	for {
		b.mu.Lock()
		waiting := b.queues[stream]
		if len(waiting) == 0 {
			delete(b.queues, stream)
			b.mu.Unlock()
			return
		}
		item := waiting[0]
		b.queues[stream] = waiting[1:]
		b.mu.Unlock()
		b.appendAndAnswer(ctx, item)
		b.inFlightBytes.Release(item.weight())
	}
}

func (b *batchAppender) appendAndAnswer(ctx context.Context, item *batch) {
	if !item.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, item.deadline.Sub(b.node.options.Clock())-b.node.options.Faults.EarlyTimeout)
		defer cancel()
	}
	var result eventstore.AppendResult
	err := b.node.recoverPanics("BatchAppend", func() (err error) {
		result, err = b.node.append(ctx, item.stream, item.expected, item.events)
		return err
	})
	b.node.inFlight.remove(item.events) // before the answer: who has it may send the same again
	if err != nil {
		_ = b.sendResponse(item, batchFailure(item, err))
		return
	}
	_ = b.sendResponse(item, batchSuccess(result))
}

// sendResponse fails only when the call is over, which its reader learns by itself.
func (b *batchAppender) sendResponse(item *batch, resp *streams.BatchAppendResp) error {
	resp.CorrelationId = item.id
	resp.StreamIdentifier = item.identifier
	b.sendMu.Lock()
	defer b.sendMu.Unlock()
	return b.call.Send(resp)
}
