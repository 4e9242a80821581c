package usage

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/eventstore/waiting"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// errGone: the book is not in use any more: its period was closed, or it was put away.
var errGone = errors.New("book is not in use any more")

// entry is one request in a book.
type entry struct {
	day   plan.Date
	count event.UsageCount
}

type kind uint8

const (
	charge kind = iota // to be counted
	refund             // to be taken back
	probe              // to be told whether it would count, by all that the log holds
)

// waiter is somebody who waits for the next flight. Its fate is decided once: it is answered, or it leaves before.
type waiter struct {
	entry
	kind kind
	fate atomic.Int32
	done chan error
}

const (
	waits int32 = iota
	answered
	left
)

func newWaiter() *waiter { return &waiter{done: make(chan error, 1)} }

// newRefund is a refund that nobody waits for.
func newRefund(e entry) *waiter { return &waiter{entry: e, kind: refund, done: make(chan error, 1)} }

// answer tells the waiter what came of it, unless it has left. It is not touched again by whoever answered it.
func (w *waiter) answer(err error) bool {
	if !w.fate.CompareAndSwap(waits, answered) {
		return false
	}
	w.done <- err
	return true
}

// leave ends the wait, unless there is an answer already.
func (w *waiter) leave() bool { return w.fate.CompareAndSwap(waits, left) }

func (w *waiter) hasLeft() bool { return w.fate.Load() == left }

// queue holds who waits while a flight is under way.
type queue struct {
	mu      sync.Mutex
	waiting []*waiter
	flying  bool
	gone    bool

	watch  *time.Timer   // of the flight under way, and of those before it that failed
	slow   chan struct{} // closed while that takes longer than a moment
	isSlow bool
}

// join adds a waiter. Lead means that nobody flies: the caller has to see to it. slow is closed once the flying takes
// longer than a moment. Where the log is lost nobody waits behind a flight that does.
func (q *queue) join(w *waiter, lost bool) (lead bool, slow <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case w.kind == refund:
	case q.gone:
		return false, nil, errGone
	case lost && q.flying && q.isSlow:
		return false, nil, ErrUnavailable
	}
	if q.slow == nil {
		q.slow = make(chan struct{})
	}
	q.waiting = append(q.waiting, w)
	lead = !q.flying
	q.flying = true
	return lead, q.slow, nil
}

// next takes all that wait, or ends the flying when nobody does. got says whether the flight before got through.
func (q *queue) next(got bool) []*waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	q.flying = len(all) > 0
	if q.isSlow && (got || !q.flying) {
		q.isSlow, q.slow = false, make(chan struct{})
	}
	switch {
	case q.watch == nil:
		q.watch = time.AfterFunc(waiting.Brief, q.slowDown)
	case !q.flying:
		q.watch.Stop()
	case got: // flights that fail are one wait for those who are in them
		q.watch.Reset(waiting.Brief)
	}
	return all
}

// slowDown tells who waits, and who will, that the flight under way takes long.
func (q *queue) slowDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.flying && !q.isSlow {
		q.isSlow = true
		close(q.slow)
	}
}

// again puts waiters back to where they will be tried again, before those who came after them.
func (q *queue) again(all []*waiter) {
	if len(all) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(all, q.waiting...)
}

// forget takes a waiter that has left out of the queue, unless a flight has it: as many as are refused at once while a flight is
// slow would else be kept until it ends.
func (q *queue) forget(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := len(q.waiting) - 1; i >= 0; i-- { // who came last leaves first: there was no place
		if q.waiting[i] == w {
			q.waiting = slices.Delete(q.waiting, i, i+1)
			return
		}
	}
}

// close ends the use of the book for all but refunds.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gone = true
}

// retire is close, unless somebody flies.
func (q *queue) retire() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gone = q.gone || !q.flying
	return q.gone
}

// pass lets a waiter through the next flight. The first of several begins the flying; one that comes while a flight is
// under way shares the next. It waits for as long as a request that came at an instant may, and returns the entry as it
// was made.
func (b *book) pass(ctx context.Context, k kind, e entry, came time.Time) (entry, error) {
	l := b.ledger
	w := l.waiters.Get().(*waiter)
	w.entry, w.kind = e, k
	w.fate.Store(waits)
	lead, slow, err := b.queue.join(w, l.isLost())
	if err != nil {
		l.waiters.Put(w)
		return e, err
	}
	if lead {
		l.launch(b)
	}
	if k == refund {
		return e, b.outlast(ctx, w)
	}
	err, ok := b.await(ctx, w, slow, came)
	if !ok { // a flight may still look at the waiter
		return e, err
	}
	e = w.entry
	l.waiters.Put(w)
	return e, err
}

// await waits for the answer, a moment for nothing and then as long as a request may. It is not ok when the waiter left
// without one.
func (b *book) await(ctx context.Context, w *waiter, slow <-chan struct{}, came time.Time) (answer error, ok bool) {
	select {
	case answer = <-w.done:
		return answer, true
	case <-slow:
	}
	v := b.ledger.visit(ctx, w.count.Account, came)
	defer v.end()
	if answer, ok = wait(v, w.done); !ok {
		if w.leave() {
			b.queue.forget(w)
			return ErrUnavailable, false
		}
		answer = <-w.done
	}
	if !errors.Is(answer, ErrUnavailable) { // the log may have answered before the visit began
		b.ledger.heard()
	}
	return answer, true
}

// outlast waits for a refund no longer than a request may: it is made in the end all the same.
func (b *book) outlast(ctx context.Context, w *waiter) error {
	ctx, cancel := context.WithTimeout(ctx, waiting.Longest)
	defer cancel()
	select {
	case err := <-w.done:
		b.ledger.waiters.Put(w)
		return err
	case <-ctx.Done():
		return ErrUnavailable
	}
}

// maxIdle is how many workers wait for the next book: one that has flown has a stack that need not grow again.
const maxIdle = 64

// launch has a worker fly a book.
func (l *Ledger) launch(b *book) {
	select {
	case l.idle <- b:
	default:
		l.flights.Go(func() { l.work(b) })
	}
}

// work flies one book after the other.
func (l *Ledger) work(b *book) {
	for {
		b.goOn()
		if l.idlers.Add(1) > maxIdle {
			l.idlers.Add(-1)
			return
		}
		select {
		case b = <-l.idle:
			l.idlers.Add(-1)
		case <-l.serving.Done():
			return
		}
	}
}

// goOn flies for as long as somebody waits.
func (b *book) goOn() {
	for got := true; ; {
		all := b.queue.next(got)
		if len(all) == 0 {
			return
		}
		if b.ledger.life.Err() != nil {
			b.strand(all)
			continue
		}
		if got = b.fly(all); got {
			runtime.Gosched() // who is about to join shares the flight: a third fewer events under 64 connections
		} else {
			b.ledger.pause(retryAfter)
		}
	}
}

// strand refuses who waits in a ledger that has ended.
func (b *book) strand(all []*waiter) {
	for _, w := range all {
		w.answer(ErrUnavailable)
	}
}

const retryAfter = 50 * time.Millisecond
