package esdb

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"lieudit/eventstore"
)

// pipeline sends the appends of all callers through one BatchAppend call and delivers each answer by the number of its
// request. One gRPC call per append costs four times as much. Two goroutines send and receive; any number of others call
// roundTrip.
type pipeline struct {
	call     streams.Streams_BatchAppendClient
	cancel   context.CancelFunc
	requests chan *streams.BatchAppendReq
	ended    chan struct{} // closed when no more answers come
	err      error         // why it ended, as the error of an append in flight; valid once ended is closed
	work     sync.WaitGroup

	mu              sync.Mutex
	lastID          uint64
	pending         map[uint64]chan<- *streams.BatchAppendResp
	unansweredSince time.Time // since when an answer has been due and none came; zero: none is due
}

// pipelinesPerConn is how many pipelines a connection has. A server may make the appends of one call to one stream one after
// the other; appends from several calls share its flushes.
const pipelinesPerConn = 8

// pipelineSlot holds one of the connection's pipelines, nil until the first append uses it. lock guards pipeline.
type pipelineSlot struct {
	lock     *semaphore.Weighted // a mutex that a context interrupts
	pipeline *pipeline
}

func newPipelineSlots() (slots [pipelinesPerConn]pipelineSlot) {
	for i := range slots {
		slots[i].lock = semaphore.NewWeighted(1)
	}
	return slots
}

// acquirePipeline returns the pipeline of the next slot, in turn, and makes a new one if there is none or it has ended.
func (c *conn) acquirePipeline(ctx context.Context) (*pipeline, error) {
	slot := &c.pipelines[c.nextPipeline.Add(1)%pipelinesPerConn]
	if err := slot.lock.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer slot.lock.Release(1)
	if slot.pipeline != nil {
		select {
		case <-slot.pipeline.ended:
			slot.pipeline.stop()
		default:
			return slot.pipeline, nil
		}
	}
	p, err := c.newPipeline(ctx)
	slot.pipeline = p
	return p, err
}

// stop ends the pipeline of the slot, if there is one.
func (slot *pipelineSlot) stop() {
	_ = slot.lock.Acquire(context.Background(), 1) // which never fails
	defer slot.lock.Release(1)
	if slot.pipeline != nil {
		slot.pipeline.stop()
	}
}

// newPipeline opens a BatchAppend call. ctx ends only the attempt: the pipeline outlives the caller that made it.
func (c *conn) newPipeline(ctx context.Context) (*pipeline, error) {
	callCtx, cancel := context.WithCancel(context.Background())
	stopCancel := context.AfterFunc(ctx, cancel)
	// ctx cancels the call only until it is open; stopCancel is false if ctx was quicker.
	call, err := c.streams.BatchAppend(requireLeader(callCtx))
	if !stopCancel() || err != nil {
		cancel()
		return nil, readError(ctx, err, nil)
	}
	p := &pipeline{
		call: call, cancel: cancel, requests: make(chan *streams.BatchAppendReq), ended: make(chan struct{}),
		pending: map[uint64]chan<- *streams.BatchAppendResp{},
	}
	p.work.Go(p.sendLoop)
	p.work.Go(func() { p.receiveLoop(c.recordResponse) })
	return p, nil
}

// stop ends the pipeline and waits for its goroutines.
func (p *pipeline) stop() {
	p.cancel()
	p.work.Wait()
}

// sendLoop sends requests until the call has ended. It does not report why: Recv returns the reason to receiveLoop.
func (p *pipeline) sendLoop() {
	for {
		select {
		case req := <-p.requests:
			if p.call.Send(req) != nil {
				return
			}
		case <-p.ended:
			return
		}
	}
}

// receiveLoop delivers answers until the call ends. It then sets err and closes ended, which ends every waiting roundTrip.
// recordResponse is called at each answer.
func (p *pipeline) receiveLoop(recordResponse func()) {
	defer close(p.ended)
	for refusedAtOnce := true; ; refusedAtOnce = false {
		resp, err := p.call.Recv()
		if err != nil {
			p.err = pipelineError(err, p.call.Trailer(), refusedAtOnce)
			return
		}
		recordResponse()
		p.deliverResponse(resp)
	}
}

// deliverResponse passes an answer to its waiting caller and restarts the response clock while other answers are due.
func (p *pipeline) deliverResponse(resp *streams.BatchAppendResp) {
	id := parseUUID(resp.GetCorrelationId())
	n := binary.BigEndian.Uint64(id[8:])
	p.mu.Lock()
	defer p.mu.Unlock()
	// Any answer restarts the clock: a pipeline that answers is alive, however many answers it owes.
	p.unansweredSince = time.Time{}
	if len(p.pending) > 1 {
		p.unansweredSince = time.Now()
	}
	if reply := p.pending[n]; reply != nil {
		reply <- resp
		delete(p.pending, n)
	}
}

// roundTrip sends a request and waits for its answer. Once the sender has taken the request, the outcome is unknown
// until the answer comes.
func (p *pipeline) roundTrip(ctx context.Context, req *streams.BatchAppendReq) (*streams.BatchAppendResp, error) {
	answer := make(chan *streams.BatchAppendResp, 1)
	n := p.addPending(answer)
	defer p.removePending(n)
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[8:], n)
	id[0] = 1 // a zero UUID could be taken for a missing one
	req.CorrelationId = structuredUUID(id)
	select {
	case p.requests <- req:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ended:
		return nil, unsentError(p.err)
	}
	p.startResponseClock(n)
	// The server itself gives up the append after appendTimeout; a quarter more is for its answer to arrive.
	timer := time.NewTimer(appendTimeout + appendTimeout/4)
	defer timer.Stop()
	select {
	case resp := <-answer:
		return resp, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ended:
		return nil, p.err
	case <-timer.C: // a server that forgets one append may forget others
		p.cancel()
		return nil, fmt.Errorf("%w: no answer", eventstore.ErrUnknown)
	}
}

// startResponseClock records that an answer is due from now on, unless the clock is running or the answer has come.
func (p *pipeline) startResponseClock(n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending[n] != nil && p.unansweredSince.IsZero() {
		p.unansweredSince = time.Now()
	}
}

// isUnresponsive reports whether an answer has been due for too long while the server answered other calls. responsiveSince
// is the start of those answers: while the whole server is silent nothing is overdue.
func (p *pipeline) isUnresponsive(responsiveSince time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unansweredSince.IsZero() {
		return false
	}
	since := p.unansweredSince
	if responsiveSince.After(since) {
		since = responsiveSince
	}
	return time.Since(since) > unresponsiveAfter
}

// cancelUnresponsivePipelines ends the pipelines whose appends the server has forgotten. All callers may have short
// deadlines, so that no single one waits long enough to notice.
func (c *conn) cancelUnresponsivePipelines() {
	if c.silence() > maxResponseGap {
		return
	}
	for i := range c.pipelines {
		slot := &c.pipelines[i]
		if !slot.lock.TryAcquire(1) {
			continue
		}
		if slot.pipeline != nil && slot.pipeline.isUnresponsive(c.responsiveSince()) {
			slot.pipeline.cancel()
		}
		slot.lock.Release(1)
	}
}

// unsentError is the error of an append that was not sent because its pipeline had ended.
func unsentError(err error) error {
	if _, redirected := leaderFrom(err); redirected {
		return err
	}
	return fmt.Errorf("%w: not sent: %v", eventstore.ErrUnavailable, err)
}

// addPending registers a caller that waits for an answer, and returns the number of its request.
func (p *pipeline) addPending(answer chan<- *streams.BatchAppendResp) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastID++
	p.pending[p.lastID] = answer
	return p.lastID
}

// removePending forgets a caller: a later answer is dropped.
func (p *pipeline) removePending(n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, n)
}
