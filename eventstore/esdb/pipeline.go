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

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan<- *streams.BatchAppendResp
	owing   time.Time // since when no answer came though one was due; zero: none is due
}

// lanes is how many pipelines a connection has. A server may make the appends to one stream that come down one
// pipeline one after the other; on several they share its flushes.
const lanes = 8

// lane is the place of one pipeline.
type lane struct {
	held     chan struct{} // has room for one holder
	pipeline *pipeline
}

func newLanes() (all [lanes]lane) {
	for i := range all {
		all[i].held = make(chan struct{}, 1)
	}
	return all
}

// pipe is the next lane's pipeline, made again when the last one ended.
func (c *conn) pipe(ctx context.Context) (*pipeline, error) {
	l := &c.lanes[c.turn.Add(1)%lanes]
	select {
	case l.held <- struct{}{}:
		defer func() { <-l.held }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.pipeline != nil {
		select {
		case <-l.pipeline.ended:
			l.pipeline.stop()
		default:
			return l.pipeline, nil
		}
	}
	p, err := c.newPipeline(ctx)
	l.pipeline = p
	return p, err
}

// stop ends the lane's pipeline, if there is one.
func (l *lane) stop() {
	l.held <- struct{}{}
	defer func() { <-l.held }()
	if l.pipeline != nil {
		l.pipeline.stop()
	}
}

// newPipeline gives up when ctx ends, but does not end with it.
func (c *conn) newPipeline(ctx context.Context) (*pipeline, error) {
	own, cancel := context.WithCancel(context.Background())
	letGo := context.AfterFunc(ctx, cancel)
	call, err := c.streams.BatchAppend(leaderOnly(own))
	if !letGo() || err != nil {
		cancel()
		return nil, unread(ctx, err, nil)
	}
	p := &pipeline{
		call: call, cancel: cancel, requests: make(chan *streams.BatchAppendReq), ended: make(chan struct{}),
		waiting: map[uint64]chan<- *streams.BatchAppendResp{},
	}
	p.work.Go(p.send)
	p.work.Go(func() { p.receive(c.answered) })
	return p, nil
}

// stop ends the pipeline and waits for that.
func (p *pipeline) stop() {
	p.cancel()
	p.work.Wait()
}

func (p *pipeline) send() {
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

func (p *pipeline) receive(answered func()) {
	defer close(p.ended)
	for refusedAtOnce := true; ; refusedAtOnce = false {
		resp, err := p.call.Recv()
		if err != nil {
			p.err = broken(err, p.call.Trailer(), refusedAtOnce)
			return
		}
		answered()
		p.answer(resp)
	}
}

func (p *pipeline) answer(resp *streams.BatchAppendResp) {
	id := parseID(resp.GetCorrelationId())
	n := binary.BigEndian.Uint64(id[8:])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owing = time.Time{}
	if len(p.waiting) > 1 {
		p.owing = time.Now()
	}
	if to := p.waiting[n]; to != nil {
		to <- resp
		delete(p.waiting, n)
	}
}

// do sends a request and waits for its answer. Once the sender has taken the request nobody knows how far it gets.
func (p *pipeline) do(ctx context.Context, req *streams.BatchAppendReq) (*streams.BatchAppendResp, error) {
	answer := make(chan *streams.BatchAppendResp, 1)
	n := p.enter(answer)
	defer p.leave(n)
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[8:], n)
	id[0] = 1 // a server may take zero for none
	req.CorrelationId = structured(id)
	select {
	case p.requests <- req:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ended:
		return nil, unsent(p.err)
	}
	p.owe(n)
	late := time.NewTimer(serverLimit + serverLimit/4)
	defer late.Stop()
	select {
	case resp := <-answer:
		return resp, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ended:
		return nil, p.err
	case <-late.C: // a server that forgets one append may forget them all
		p.cancel()
		return nil, fmt.Errorf("%w: no answer", eventstore.ErrUnknown)
	}
}

// owe notes that an answer is due from now on, unless it has come already.
func (p *pipeline) owe(n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[n] != nil && p.owing.IsZero() {
		p.owing = time.Now()
	}
}

// forgets says whether the pipeline has owed an answer for too long to one who has spoken since an instant. What the
// whole server is silent about, it has not forgotten.
func (p *pipeline) forgets(speaksSince time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owing.IsZero() {
		return false
	}
	since := p.owing
	if speaksSince.After(since) {
		since = speaksSince
	}
	return time.Since(since) > forgottenAfter
}

// dropForgetfulPipelines ends the pipelines that say nothing while the server speaks: each caller alone may not have
// the patience to see it.
func (c *conn) dropForgetfulPipelines() {
	if c.silence() > speechGap {
		return
	}
	for i := range c.lanes {
		l := &c.lanes[i]
		select {
		case l.held <- struct{}{}:
		default:
			continue
		}
		if l.pipeline != nil && l.pipeline.forgets(c.speaksSince()) {
			l.pipeline.cancel()
		}
		<-l.held
	}
}

// unsent is the error of an append that found its pipeline ended.
func unsent(err error) error {
	var elsewhere *notLeaderError
	if errors.As(err, &elsewhere) {
		return err
	}
	return fmt.Errorf("%w: not sent: %v", eventstore.ErrUnavailable, err)
}

func (p *pipeline) enter(answer chan<- *streams.BatchAppendResp) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	p.waiting[p.last] = answer
	return p.last
}

func (p *pipeline) leave(n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, n)
}
