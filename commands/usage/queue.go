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

// errRetired: the book is not in use any more: its period was closed, or it was put away.
var errRetired = errors.New("book is not in use any more")

// entry is one request in a book.
type entry struct {
	day   plan.Date
	count event.UsageCount
}

type requestKind uint8

const (
	chargeRequest requestKind = iota // to be counted
	refundRequest                    // to be taken back
	probeRequest                     // to be told whether it would count, by all that the log holds
)

// pendingRequest is somebody who waits for the next flight. Its fate is decided once: it is answered, or it leaves before.
type pendingRequest struct {
	entry
	kind   requestKind
	status atomic.Int32
	done   chan error
}

const (
	statusWaiting int32 = iota
	statusAnswered
	statusAbandoned
)

func newPendingRequest() *pendingRequest { return &pendingRequest{done: make(chan error, 1)} }

// newRefund is a refund that nobody waits for.
func newRefund(e entry) *pendingRequest {
	return &pendingRequest{entry: e, kind: refundRequest, done: make(chan error, 1)}
}

// respond tells the waiter what came of it, unless it has left. It is not touched again by whoever answered it.
func (w *pendingRequest) respond(err error) bool {
	if !w.status.CompareAndSwap(statusWaiting, statusAnswered) {
		return false
	}
	w.done <- err
	return true
}

// abandon ends the wait, unless there is an answer already.
func (w *pendingRequest) abandon() bool {
	return w.status.CompareAndSwap(statusWaiting, statusAbandoned)
}

func (w *pendingRequest) isAbandoned() bool { return w.status.Load() == statusAbandoned }

// queue holds who waits while a flight is under way.
type queue struct {
	mu         sync.Mutex
	pending    []*pendingRequest
	isFlushing bool
	isRetired  bool

	slowTimer  *time.Timer   // of the flight under way, and of those before it that failed
	slowSignal chan struct{} // closed while that takes longer than a moment
	isSlow     bool
}

// enqueue adds a waiter. Lead means that nobody flies: the caller has to see to it. slow is closed once the flying takes
// longer than a moment. Where the log is lost nobody waits behind a flight that does.
func (q *queue) enqueue(w *pendingRequest, isLogLost bool) (isFirst bool, slow <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case w.kind == refundRequest:
	case q.isRetired:
		return false, nil, errRetired
	case isLogLost && q.isFlushing && q.isSlow:
		return false, nil, ErrUnavailable
	}
	if q.slowSignal == nil {
		q.slowSignal = make(chan struct{})
	}
	q.pending = append(q.pending, w)
	isFirst = !q.isFlushing
	q.isFlushing = true
	return isFirst, q.slowSignal, nil
}

// takePending takes all that wait, or ends the flying when nobody does. got says whether the flight before got through.
func (q *queue) takePending(succeeded bool) []*pendingRequest {
	q.mu.Lock()
	defer q.mu.Unlock()
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
	case succeeded: // flights that fail are one wait for those who are in them
		q.slowTimer.Reset(waitlimit.UncountedWait)
	}
	return pending
}

// markSlow tells who waits, and who will, that the flight under way takes long.
func (q *queue) markSlow() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isFlushing && !q.isSlow {
		q.isSlow = true
		close(q.slowSignal)
	}
}

// requeue puts waiters back to where they will be tried requeue, before those who came after them.
func (q *queue) requeue(all []*pendingRequest) {
	if len(all) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = append(all, q.pending...)
}

// remove takes a waiter that has left out of the queue, unless a flight has it: as many as are refused at once while a flight is
// slow would else be kept until it ends.
func (q *queue) remove(w *pendingRequest) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := len(q.pending) - 1; i >= 0; i-- { // who came last leaves first: there was no place
		if q.pending[i] == w {
			q.pending = slices.Delete(q.pending, i, i+1)
			return
		}
	}
}

// retire ends the use of the book for all but refunds.
func (q *queue) retire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isRetired = true
}

// retireIfIdle is close, unless somebody flies.
func (q *queue) retireIfIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isRetired = q.isRetired || !q.isFlushing
	return q.isRetired
}

// submit lets a waiter through the next flight. The first of several begins the flying; one that comes while a flight is
// under way shares the next. It waits for as long as a request that came at an instant may, and returns the entry as it
// was made.
func (p *activePeriod) submit(ctx context.Context, k requestKind, e entry, arrivedAt time.Time) (entry, error) {
	m := p.meter
	w := m.requestPool.Get().(*pendingRequest)
	w.entry, w.kind = e, k
	w.status.Store(statusWaiting)
	isFirst, slow, err := p.queue.enqueue(w, m.isLogLost())
	if err != nil {
		m.requestPool.Put(w)
		return e, err
	}
	if isFirst {
		m.startFlush(p)
	}
	if k == refundRequest {
		return e, p.awaitRefund(ctx, w)
	}
	err, ok := p.awaitResponse(ctx, w, slow, arrivedAt)
	if !ok { // a flight may still look at the waiter
		return e, err
	}
	e = w.entry
	m.requestPool.Put(w)
	return e, err
}

// awaitResponse waits for the answer, a moment for nothing and then as long as a request may. It is not ok when the waiter left
// without one.
func (p *activePeriod) awaitResponse(ctx context.Context, w *pendingRequest, slow <-chan struct{}, arrivedAt time.Time) (response error, ok bool) {
	select {
	case response = <-w.done:
		return response, true
	case <-slow:
	}
	v := p.meter.startWait(ctx, w.count.Account, arrivedAt)
	defer v.stop()
	if response, ok = awaitValue(v, w.done); !ok {
		if w.abandon() {
			p.queue.remove(w)
			return ErrUnavailable, false
		}
		response = <-w.done
	}
	if !errors.Is(response, ErrUnavailable) { // the log may have answered before the visit began
		p.meter.clearSilence()
	}
	return response, true
}

// awaitRefund waits for a refund no longer than a request may: it is made in the end all the same.
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

// maxIdleWorkers is how many workers wait for the next book: one that has flown has a stack that need not grow again.
const maxIdleWorkers = 64

// startFlush has a worker fly a book.
func (m *Meter) startFlush(p *activePeriod) {
	select {
	case m.idleWorkers <- p:
	default:
		m.goroutines.Go(func() { m.runWorker(p) })
	}
}

// runWorker flies one book after the other.
func (m *Meter) runWorker(p *activePeriod) {
	for {
		p.flushUntilEmpty()
		if m.idleWorkerCount.Add(1) > maxIdleWorkers {
			m.idleWorkerCount.Add(-1)
			return
		}
		select {
		case p = <-m.idleWorkers:
			m.idleWorkerCount.Add(-1)
		case <-m.servingCtx.Done():
			return
		}
	}
}

// flushUntilEmpty flies for as long as somebody waits.
func (p *activePeriod) flushUntilEmpty() {
	for succeeded := true; ; {
		pending := p.queue.takePending(succeeded)
		if len(pending) == 0 {
			return
		}
		if p.meter.runCtx.Err() != nil {
			p.rejectAll(pending)
			continue
		}
		if succeeded = p.flush(pending); succeeded {
			runtime.Gosched() // who is about to join shares the flight: a third fewer events under 64 connections
		} else {
			p.meter.sleep(retryInterval)
		}
	}
}

// rejectAll refuses who waits in a ledger that has ended.
func (p *activePeriod) rejectAll(pending []*pendingRequest) {
	for _, w := range pending {
		w.respond(ErrUnavailable)
	}
}

const retryInterval = 50 * time.Millisecond
