package usage

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// errRetired means that the activePeriod was retired: its period ended, it was evicted, or its stream is not the one that was
// folded. A request tries again with the contract's next period.
var errRetired = errors.New("period is not in use any more")

// entry is one request, or several of one account that are counted together or not at all, as a period counts them.
type entry struct {
	day   plan.Date
	count event.UsageCount
}

// requestKind is the purpose of a pendingRequest.
type requestKind uint8

const (
	chargeRequest requestKind = iota // to be counted
	refundRequest                    // to be taken back
	probeRequest                     // not counted: it is answered as a charge would be, by everything that is on the log
	foldRequest                      // not counted: it is answered once the fold has everything that is on the log
)

// pendingRequest is a request that waits for the next batch of its period's stream. Its status leaves statusWaiting once: either a
// batch answers it, or it is abandoned.
type pendingRequest struct {
	entry
	period *activePeriod
	kind   requestKind
	status atomic.Int32
	done   chan error // of capacity 1: gets the answer
}

// The states of a pendingRequest. Only statusWaiting is left, by compare-and-swap, so that an answer and an end of the wait that
// come at the same time agree on which came first.
const (
	statusWaiting int32 = iota
	statusAnswered
	statusAbandoned
)

func newPendingRequest() *pendingRequest { return &pendingRequest{done: make(chan error, 1)} }

// newRefund makes a refund that nobody waits for.
func newRefund(p *activePeriod, e entry) *pendingRequest {
	return &pendingRequest{entry: e, period: p, kind: refundRequest, done: make(chan error, 1)}
}

// respond answers the request. It returns false if the request was abandoned. The caller must not touch the request again:
// whoever waited for it may have put it back into the pool.
func (w *pendingRequest) respond(err error) bool {
	if !w.status.CompareAndSwap(statusWaiting, statusAnswered) {
		return false
	}
	w.done <- err
	return true
}

// abandon ends the wait without an answer. It returns false if the answer is there already.
func (w *pendingRequest) abandon() bool {
	return w.status.CompareAndSwap(statusWaiting, statusAbandoned)
}

func (w *pendingRequest) isAbandoned() bool { return w.status.Load() == statusAbandoned }

// queue has the requests that wait while a batch is under way. It is safe for concurrent use.
type queue struct {
	mu         sync.Mutex
	pending    []*pendingRequest
	isFlushing bool // a worker flushes the stream, or is about to
	isRetired  bool

	// See awaitMore.
	expected  int           // how many requests the next batch is likely to have
	enough    int           // how many must wait to end awaitMore; 0 while it does not run
	hasEnough chan struct{} // closed by the request with which there are enough
	moreTimer *time.Timer   // of the worker

	// A batch is slow when it takes longer than waitlimit.UncountedWait. Batches that fail one after the other count as one.
	slowTimer  *time.Timer
	slowSignal chan struct{} // closed while isSlow
	isSlow     bool
}

// enqueueRequest adds a request. isFirst means that no worker flushes the stream, and that the caller must start one. slow is closed
// once the current batch is slow. While the log is lost (isLogLost), no request joins a stream whose batch is slow. A refund is
// always accepted.
func (q *queue) enqueueRequest(w *pendingRequest, isLogLost bool) (isFirst bool, slow <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case w.kind == refundRequest: // always accepted
	case q.isRetired:
		return false, nil, errRetired
	case isLogLost && q.isFlushing && q.isSlow:
		return false, nil, ErrUnavailable
	}
	if q.slowSignal == nil {
		q.slowSignal = make(chan struct{})
	}
	q.pending = append(q.pending, w)
	if len(q.pending) == q.enough {
		q.enough = 0
		close(q.hasEnough)
	}
	isFirst = !q.isFlushing
	q.isFlushing = true
	return isFirst, q.slowSignal, nil
}

// takePending returns all requests that wait. If there are none, the flushing has ended. succeeded reports whether the last batch
// succeeded; it is true before the first one.
func (q *queue) takePending(succeeded bool) []*pendingRequest {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enough = 0
	pending := q.pending
	q.pending = nil
	q.isFlushing = len(pending) > 0
	if q.isSlow && (succeeded || !q.isFlushing) {
		q.isSlow, q.slowSignal = false, make(chan struct{})
	}
	switch {
	case q.slowTimer == nil:
		q.slowTimer = time.AfterFunc(waitlimit.UncountedWait, q.markSlow)
	case !q.isFlushing:
		q.slowTimer.Stop()
	case succeeded: // batches that fail one after the other are one wait for their requests
		q.slowTimer.Reset(waitlimit.UncountedWait)
	}
	return pending
}

// maxWaitForMore bounds awaitMore. Clients on the same machine or network that send a request as soon as the last one is answered need
// less.
const maxWaitForMore = time.Millisecond

// awaitMore waits between two batches, a moment at most, until nearly as many requests wait as the batches before had; last is how many the
// last one had. Clients that were answered together send their next requests together, and without the wait the first of them would
// have a batch for itself, every other time: under 64 connections that is half as many events again. A batch of one waits for nothing.
func (q *queue) awaitMore(last int) {
	runtime.Gosched() // those that were answered come first
	hasEnough := q.startAwaiting(last)
	if hasEnough == nil {
		return
	}
	if q.moreTimer == nil {
		q.moreTimer = time.NewTimer(maxWaitForMore)
	} else {
		q.moreTimer.Reset(maxWaitForMore)
	}
	select {
	case <-hasEnough:
		q.moreTimer.Stop()
	case <-q.moreTimer.C:
	}
}

// startAwaiting returns a channel that is closed once enough requests wait, or nil if they do.
func (q *queue) startAwaiting(last int) (hasEnough <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expected = max(last, q.expected*7/8)
	if enough := q.expected * 9 / 10; len(q.pending) < enough {
		q.enough, q.hasEnough = enough, make(chan struct{})
		return q.hasEnough
	}
	return nil
}

// markSlow signals the requests that wait, and those that will, that the current batch is slow.
func (q *queue) markSlow() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isFlushing && !q.isSlow {
		q.isSlow = true
		close(q.slowSignal)
	}
}

// requeue puts requests in front of those that wait, for the next batch. A worker must be flushing the stream.
func (q *queue) requeue(all []*pendingRequest) {
	if len(all) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = append(all, q.pending...)
}

// remove takes an abandoned request out of the queue, unless a batch has it. Otherwise all requests that are refused while a
// batch is slow would stay in memory until it ends.
func (q *queue) remove(w *pendingRequest) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := len(q.pending) - 1; i >= 0; i-- { // from the end: the wait limiter refuses the newest requests, which leave first
		if q.pending[i] == w {
			q.pending = slices.Delete(q.pending, i, i+1)
			return
		}
	}
}

// retire ends the use of the stream for all but refunds.
func (q *queue) retire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isRetired = true
}

// retireIfIdle retires the stream unless it is being flushed, and reports whether it is retired, now or before.
func (q *queue) retireIfIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isRetired = q.isRetired || !q.isFlushing
	return q.isRetired
}

// submit puts a request into the next batch of the period's stream and waits for the answer, for as long as the request may; a refund has no
// Wait. The first of several starts a worker; those that come while a batch is under way share the next one. It returns the
// entry as it was counted, which may be under another day.
func (p *activePeriod) submit(ctx context.Context, wait *waitlimit.Wait, k requestKind, e entry) (entry, error) {
	m := p.meter
	w := m.requestPool.Get().(*pendingRequest)
	w.entry, w.period, w.kind = e, p, k
	w.status.Store(statusWaiting)
	isFirst, slow, err := p.enqueueRequest(w)
	if err != nil {
		m.requestPool.Put(w)
		return e, err
	}
	if isFirst {
		m.startFlush(p.activeStream)
	}
	if k == refundRequest {
		return e, p.awaitRefund(ctx, w)
	}
	err, ok := p.awaitResponse(ctx, wait, w, slow)
	if !ok { // not back into the pool: a batch may still look at the request
		return e, err
	}
	e = w.entry
	m.requestPool.Put(w)
	return e, err
}

// enqueueRequest adds a request to the queue of the period's stream.
func (p *activePeriod) enqueueRequest(w *pendingRequest) (isFirst bool, slow <-chan struct{}, err error) {
	if w.kind != refundRequest && p.isEvicted.Load() {
		return false, nil, errRetired
	}
	return p.queue.enqueueRequest(w, p.meter.isLogLost())
}

// awaitResponse waits for the answer. The wait limiter counts the request only once the batch is slow; from then on it waits as long
// as the request may. ok is false if the request was abandoned; response is then ErrUnavailable.
func (p *activePeriod) awaitResponse(ctx context.Context, wait *waitlimit.Wait, w *pendingRequest, slow <-chan struct{}) (response error, ok bool) {
	select {
	case response = <-w.done:
		return response, true
	case <-slow:
	}
	waiting, stop := wait.Start(ctx, p.meter.logSilence())
	defer stop()
	select {
	case response = <-w.done:
	case <-waiting.Done():
		if w.abandon() {
			p.queue.remove(w)
			return ErrUnavailable, false
		}
		response = <-w.done
	}
	if !errors.Is(response, ErrUnavailable) { // logSilence began a silence; the log may have answered just before
		p.meter.clearSilence()
	}
	return response, true
}

// awaitRefund waits for a refund no longer than a request may wait. After that the refund is still tried.
func (p *activePeriod) awaitRefund(ctx context.Context, w *pendingRequest) error {
	ctx, cancel := context.WithTimeout(ctx, waitlimit.MaxWait)
	defer cancel()
	select {
	case err := <-w.done:
		p.meter.requestPool.Put(w)
		return err
	case <-ctx.Done():
		return ErrUnavailable
	}
}
