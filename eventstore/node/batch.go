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
	maxOpenBatches   = 1024     // batches of a call whose last request has not arrived
	maxInFlightBytes = 16 << 20 // bytes of events of a call that are not answered yet
)

// batch is one append of a BatchAppend call. A client may send its events in several requests of one correlation
// id.
type batch struct {
	id         *shared.UUID
	identifier *shared.StreamIdentifier // as the client sent it
	stream     string
	expected   eventstore.Revision
	deadline   time.Time // of time.Now; zero: none
	events     []eventstore.ProposedEvent
	size       int
}

// batchAppender runs the appends of one BatchAppend call: those of one stream in the order of their arrival, those
// of different streams concurrently. Answers are sent in the order in which appends finish. The goroutine of the
// call owns openBatches and openBytes. A batch goes this way:
//
//	receiveRequests ──► handleRequest (openBatches) ──► enqueue (queues) ──► appendQueued ──► appendAndAnswer
//	                    until its last request           one queue a stream   one worker a queue
type batchAppender struct {
	node          *Node
	call          streams.Streams_BatchAppendServer
	openBatches   map[uuid.UUID]*batch
	openBytes     int // bytes of events in openBatches
	inFlightBytes *semaphore.Weighted
	workers       sync.WaitGroup

	mu     sync.Mutex
	queues map[string][]*batch // by stream; the key exists while a worker runs
	sendMu sync.Mutex          // held while an answer is sent: Send may not be called by two at once
}

// BatchAppend makes appends as they arrive and answers each one with its correlation id. It returns when the client
// has sent all and every append is answered, when the call is cancelled or its connection lost, or when the node stops.
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
		case <-call.Context().Done(): // receiveRequests may end without passing its error on
			return call.Context().Err()
		case <-s.drainCtx.Done():
			return notReady()
		}
	}
}

// receivedRequest is the result of one Recv.
type receivedRequest struct {
	req *streams.BatchAppendReq
	err error
}

// receiveRequests receives requests until the call is over. It runs in a goroutine of its own because Recv cannot
// be interrupted when the node stops.
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

// handleRequest adds a request to its batch and enqueues the batch when the request is its last. An error ends the
// call; what is wrong with one batch is answered to that batch alone.
func (b *batchAppender) handleRequest(ctx context.Context, req *streams.BatchAppendReq) error {
	id, err := parseUUID(req.GetCorrelationId())
	if err != nil {
		return b.sendResponse(&batch{id: req.GetCorrelationId()}, invalidArgument("The correlation id is missing.").batchResponse())
	}
	item, known := b.openBatches[id]
	// The rest of a batch that was refused at an earlier request is dropped: that request was answered.
	if !known && req.GetOptions() == nil {
		return nil
	}
	if !known {
		if item, err = newBatch(req, b.node.options.Clock()); err != nil {
			return b.sendResponse(item, batchFailure(item, err))
		}
	}
	// The batch leaves openBatches here and returns at the end only if more requests are to come.
	delete(b.openBatches, id)
	b.openBytes -= item.size
	if err := item.addMessages(req.GetProposedMessages()); err != nil {
		return b.sendResponse(item, batchFailure(item, err))
	}
	switch {
	case !item.deadline.IsZero() && !time.Now().Before(item.deadline):
		return b.sendResponse(item, batchTimeout())
	case req.GetIsFinal():
		return b.enqueueBatch(ctx, item)
	case len(b.openBatches) == maxOpenBatches || b.openBytes+item.size > maxInFlightBytes:
		return b.sendResponse(item, invalidArgument("Too many batches are open.").batchResponse())
	}
	b.openBatches[id] = item
	b.openBytes += item.size
	return nil
}

// newBatch makes a batch of its first request. On an error the batch is good enough to be answered. now is the wall time: a deadline
// that is sent as a time is compared with it once, and is elapsed time from then on.
// Deadline_21_10_0 is the name in the protocol files of a field that clients of today send: the official client for
// Node.js puts its deadline there, as a time.
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
		item.deadline = time.Now().Add(d.Deadline.AsDuration())
	case *streams.BatchAppendReq_Options_Deadline_21_10_0:
		item.deadline = time.Now().Add(d.Deadline_21_10_0.AsTime().Sub(now))
	}
	return item, err
}

// addMessages adds proposed events. It fails with ErrTooLarge when they would exceed the size of an append.
func (b *batch) addMessages(messages []*streams.BatchAppendReq_ProposedMessage) error {
	for _, m := range messages {
		e, err := parseProposed(m)
		if err != nil {
			return err
		}
		if b.size += eventSize(e); b.size > eventstore.MaxAppendBytes || len(b.events) == maxAppendEvents {
			return eventstore.ErrTooLarge
		}
		b.events = append(b.events, e)
	}
	return nil
}

// enqueueBatch puts a batch at the end of its stream's queue and starts a worker for the queue unless one is running. It waits while
// maxInFlightBytes are in flight, and so stops receiving from the client.
func (b *batchAppender) enqueueBatch(ctx context.Context, item *batch) error {
	if err := b.inFlightBytes.Acquire(ctx, item.weight()); err != nil {
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

// weight is what a batch counts in flight. It includes the cost of an event in memory, so that empty events are not
// free.
func (b *batch) weight() int64 { return min(int64(b.size+256*(1+len(b.events))), maxInFlightBytes) }

// appendQueued makes the queued appends of one stream one after the other until the queue is empty.
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

// appendAndAnswer makes one append within its deadline and sends the answer.
func (b *batchAppender) appendAndAnswer(ctx context.Context, item *batch) {
	if !item.deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, item.deadline)
		defer cancel()
	}
	var result eventstore.AppendResult
	err := b.node.recoverPanics("BatchAppend", func() (err error) {
		result, err = b.node.append(ctx, item.stream, item.expected, item.events)
		return err
	})
	if err != nil {
		_ = b.sendResponse(item, batchFailure(item, err))
		return
	}
	_ = b.sendResponse(item, batchSuccess(result))
}

// sendResponse sends an answer with the correlation id and the stream of its batch. The official client for Node.js
// crashes on an answer without a stream. It fails only when the call is over, which the receiver learns by itself.
func (b *batchAppender) sendResponse(item *batch, resp *streams.BatchAppendResp) error {
	resp.CorrelationId = item.id
	resp.StreamIdentifier = item.identifier
	b.sendMu.Lock()
	defer b.sendMu.Unlock()
	return b.call.Send(resp)
}
