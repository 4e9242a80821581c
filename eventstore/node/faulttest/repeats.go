package faulttest

import (
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/genproto/googleapis/rpc/code"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"

	"lieudit/eventstore/clock"
)

// repeats drops batches that repeat an append in flight, whichever call they come by.
type repeats struct {
	timeout time.Duration

	mu       sync.Mutex
	inFlight map[string]bool // the first event ids of the batches that the node has received and not answered
}

func newRepeats(timeout time.Duration) *repeats {
	return &repeats{timeout: timeout, inFlight: map[string]bool{}}
}

// interceptCall is a grpc.StreamServerInterceptor.
func (r *repeats) interceptCall(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if info.FullMethod != streams.Streams_BatchAppend_FullMethodName {
		return handle(srv, stream)
	}
	c := &repeatedCall{ServerStream: stream, repeats: r, received: map[string]string{}, dropped: map[string]bool{}}
	defer c.end()
	return handle(srv, c)
}

// repeatedCall is a BatchAppend call of which the node does not see the repeats.
type repeatedCall struct {
	grpc.ServerStream
	repeats *repeats

	// The next four are guarded by repeats.mu.
	received map[string]string // the first event id of each batch that the node has received, by its correlation id
	dropped  map[string]bool   // the correlation ids of repeats whose last request has not come
	isOver   bool
	answers  sync.WaitGroup // of dropped repeats; none begins once the call is over

	sendMu sync.Mutex // SendMsg may not be called by two at once
}

// RecvMsg receives the next request that does not belong to a repeat.
func (c *repeatedCall) RecvMsg(m any) error {
	for {
		if err := c.ServerStream.RecvMsg(m); err != nil {
			return err
		}
		if req, ok := m.(*streams.BatchAppendReq); !ok || !c.dropRepeat(req) {
			return nil
		}
	}
}

// dropRepeat reports whether a request belongs to a repeat, and has the repeat answered if the request is its last. Otherwise the batch
// is in flight from its first event on. After the end of the call the node may still receive a batch, and does not append it.
func (c *repeatedCall) dropRepeat(req *streams.BatchAppendReq) bool {
	c.repeats.mu.Lock()
	defer c.repeats.mu.Unlock()
	if c.isOver {
		return false
	}
	batch := req.GetCorrelationId().String()
	if _, isKnown := c.received[batch]; !isKnown && !c.dropped[batch] && len(req.GetProposedMessages()) > 0 {
		id := req.GetProposedMessages()[0].GetId().String()
		if c.repeats.inFlight[id] {
			c.dropped[batch] = true
		} else {
			c.repeats.inFlight[id], c.received[batch] = true, id
		}
	}
	if !c.dropped[batch] {
		return false
	}
	if req.GetIsFinal() {
		delete(c.dropped, batch)
		c.answerLater(req)
	}
	return true
}

// answerLater answers a dropped repeat after the timeout, unless the call ends first. The caller holds repeats.mu, and the call is not
// over.
func (c *repeatedCall) answerLater(req *streams.BatchAppendReq) {
	response := timeout()
	response.CorrelationId, response.StreamIdentifier = req.GetCorrelationId(), req.GetOptions().GetStreamIdentifier()
	c.answers.Go(func() {
		if clock.Sleep(c.Context(), c.repeats.timeout) {
			_ = c.send(response) // it fails only if the call is over
		}
	})
}

// timeout is EventStoreDB's answer to a batch that was not appended in time.
func timeout() *streams.BatchAppendResp {
	s := &rpc.Status{Code: int32(code.Code_DEADLINE_EXCEEDED), Message: "Timeout"}
	if details, err := anypb.New(&shared.Timeout{}); err == nil {
		s.Details = []*anypb.Any{details}
	}
	return &streams.BatchAppendResp{Result: &streams.BatchAppendResp_Error{Error: s}}
}

// SendMsg sends an answer of the node. Its batch is out of flight before that: a client that has the answer may send the same again.
func (c *repeatedCall) SendMsg(m any) error {
	if response, ok := m.(*streams.BatchAppendResp); ok {
		c.repeats.mu.Lock()
		batch := response.GetCorrelationId().String()
		delete(c.repeats.inFlight, c.received[batch])
		delete(c.received, batch)
		c.repeats.mu.Unlock()
	}
	return c.send(m)
}

func (c *repeatedCall) send(m any) error {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	return c.ServerStream.SendMsg(m)
}

// end frees the batches that were not answered, and waits for the answers to repeats.
func (c *repeatedCall) end() {
	c.repeats.mu.Lock()
	for _, id := range c.received {
		delete(c.repeats.inFlight, id)
	}
	c.isOver = true
	c.repeats.mu.Unlock()
	c.answers.Wait()
}
