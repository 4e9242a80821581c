package esdb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"

	"lieudit/eventstore"
)

// pipeline sends the appends of all callers down one BatchAppend call and hands each its answer. One call for every
// append costs four times as much.
type pipeline struct {
	call     streams.Streams_BatchAppendClient
	cancel   context.CancelFunc
	requests chan *streams.BatchAppendReq
	ended    chan struct{} // closed when no answer comes any more
	err      error         // what that means for an append on its way; valid once ended is closed
	work     sync.WaitGroup

	mu              sync.Mutex
	lastID          uint64
	pending         map[uint64]chan<- *streams.BatchAppendResp
	unansweredSince time.Time // since when no answer came though one was due; zero: none is due
}

// pipelinesPerConn is how many pipelines a connection has. A server may make the appends to one stream that come down one
// pipeline one after the other; on several they share its flushes.
const pipelinesPerConn = 8

// pipelineSlot is the place of one pipeline.
type pipelineSlot struct {
	lock     chan struct{} // has room for one holder
	pipeline *pipeline
}

func newPipelineSlots() (slots [pipelinesPerConn]pipelineSlot) {
	for i := range slots {
		slots[i].lock = make(chan struct{}, 1)
	}
	return slots
}

// acquirePipeline is the next lane's pipeline, made again when the last one ended.
func (c *conn) acquirePipeline(ctx context.Context) (*pipeline, error) {
	slot := &c.pipelines[c.nextPipeline.Add(1)%pipelinesPerConn]
	select {
	case slot.lock <- struct{}{}:
		defer func() { <-slot.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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

// stop ends the lane's pipeline, if there is one.
func (slot *pipelineSlot) stop() {
	slot.lock <- struct{}{}
	defer func() { <-slot.lock }()
	if slot.pipeline != nil {
		slot.pipeline.stop()
	}
}

// newPipeline gives up when ctx ends, but does not end with it.
func (c *conn) newPipeline(ctx context.Context) (*pipeline, error) {
	callCtx, cancel := context.WithCancel(context.Background())
	stopCancel := context.AfterFunc(ctx, cancel)
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

// stop ends the pipeline and waits for that.
func (p *pipeline) stop() {
	p.cancel()
	p.work.Wait()
}

func (p *pipeline) sendLoop() {
	for {
		select {
		case req := <-p.requests:
			if p.call.Send(req) != nil {
				return // the receiver learns why
			}
		case <-p.ended:
			return
		}
	}
}

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

func (p *pipeline) deliverResponse(resp *streams.BatchAppendResp) {
	id := parseUUID(resp.GetCorrelationId())
	n := binary.BigEndian.Uint64(id[8:])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unansweredSince = time.Time{}
	if len(p.pending) > 1 {
		p.unansweredSince = time.Now()
	}
	if reply := p.pending[n]; reply != nil {
		reply <- resp
		delete(p.pending, n)
	}
}

// roundTrip sends a request and waits for its answer. Once the sender has taken the request nobody knows how far it gets.
func (p *pipeline) roundTrip(ctx context.Context, req *streams.BatchAppendReq) (*streams.BatchAppendResp, error) {
	answer := make(chan *streams.BatchAppendResp, 1)
	n := p.addPending(answer)
	defer p.removePending(n)
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[8:], n)
	id[0] = 1 // a server may take zero for none
	req.CorrelationId = structuredUUID(id)
	select {
	case p.requests <- req:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ended:
		return nil, unsentError(p.err)
	}
	p.startResponseClock(n)
	timer := time.NewTimer(appendTimeout + appendTimeout/4)
	defer timer.Stop()
	select {
	case resp := <-answer:
		return resp, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ended:
		return nil, p.err
	case <-timer.C: // a server that forgets one append may forget them all
		p.cancel()
		return nil, fmt.Errorf("%w: no answer", eventstore.ErrUnknown)
	}
}

// startResponseClock notes that an answer is due from now on, unless it has come already.
func (p *pipeline) startResponseClock(n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending[n] != nil && p.unansweredSince.IsZero() {
		p.unansweredSince = time.Now()
	}
}

// isUnresponsive says whether the pipeline has owed an answer for too long to one who has spoken since an instant. What the
// whole server is silent about, it has not forgotten.
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

// cancelUnresponsivePipelines ends the pipelines that say nothing while the server speaks: each caller alone may not have
// the patience to see it.
func (c *conn) cancelUnresponsivePipelines() {
	if c.silence() > maxResponseGap {
		return
	}
	for i := range c.pipelines {
		slot := &c.pipelines[i]
		select {
		case slot.lock <- struct{}{}:
		default:
			continue
		}
		if slot.pipeline != nil && slot.pipeline.isUnresponsive(c.responsiveSince()) {
			slot.pipeline.cancel()
		}
		<-slot.lock
	}
}

// unsentError is the error of an append that found its pipeline ended.
func unsentError(err error) error {
	var notLeader *notLeaderError
	if errors.As(err, &notLeader) {
		return err
	}
	return fmt.Errorf("%w: not sent: %v", eventstore.ErrUnavailable, err)
}

func (p *pipeline) addPending(answer chan<- *streams.BatchAppendResp) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastID++
	p.pending[p.lastID] = answer
	return p.lastID
}

func (p *pipeline) removePending(n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, n)
}
