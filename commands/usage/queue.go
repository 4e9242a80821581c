package usage

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// patience is how long a request waits for its tick to become durable before it is refused.
const patience = 900 * time.Millisecond

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

// waiter is somebody who waits for the next flight.
type waiter struct {
	entry
	kind kind
	done chan error
}

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan error, 1)} }}

// queue holds who waits while a flight is under way.
type queue struct {
	mu      sync.Mutex
	waiting []*waiter
	flying  bool
	stuck   bool // the fate of an append is being found out
	gone    bool
}

// join adds a waiter. Lead means that nobody flies: the caller has to.
func (q *queue) join(w *waiter) (lead bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case w.kind == refund:
	case q.gone:
		return false, errGone
	case q.stuck:
		return false, ErrUnavailable
	}
	q.waiting = append(q.waiting, w)
	lead = !q.flying
	q.flying = true
	return lead, nil
}

// next takes all that wait, or ends the flying when nobody does.
func (q *queue) next() []*waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	q.flying = len(all) > 0
	return all
}

// setStuck says whether an append's fate is being found out. Who waits to be served is refused meanwhile; who waits
// for a refund stays.
func (q *queue) setStuck(stuck bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stuck = stuck
	if !stuck {
		return
	}
	left := q.waiting[:0]
	for _, w := range q.waiting {
		if w.kind == refund {
			left = append(left, w)
		} else {
			w.done <- ErrUnavailable
		}
	}
	q.waiting = left
}

// again puts refunds back to where they will be tried again.
func (q *queue) again(refunds []*waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(refunds, q.waiting...)
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

// pass lets a waiter through the next flight. The first of several flies itself; one that comes while a flight is
// under way shares the next. It returns the entry as it was made.
func (b *book) pass(ctx context.Context, k kind, e entry) (entry, error) {
	w := waiters.Get().(*waiter)
	w.entry, w.kind = e, k
	lead, err := b.queue.join(w)
	if err != nil {
		waiters.Put(w)
		return e, err
	}
	if lead {
		b.lead()
	}
	if k == refund {
		return e, b.outlast(ctx, w)
	}
	err = <-w.done // a flight answers within its patience
	e = w.entry
	waiters.Put(w)
	return e, err
}

// outlast waits for a refund no longer than patience: it is made in the end all the same.
func (b *book) outlast(ctx context.Context, w *waiter) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case err := <-w.done:
		waiters.Put(w)
		return err
	case <-ctx.Done():
		return ErrUnavailable
	}
}

// lead flies once for itself and whoever has joined, and leaves the rest to a goroutine.
func (b *book) lead() {
	frozen, ok := b.fly(b.queue.next())
	var more []*waiter
	if frozen == nil {
		if more = b.queue.next(); len(more) == 0 {
			return
		}
	}
	b.ledger.flights.Go(func() { b.goOn(more, frozen, ok) })
}

// goOn flies for as long as somebody waits. frozen is the batch of the flight before when its fate is not known, ok
// says whether that flight got through.
func (b *book) goOn(more []*waiter, frozen *batch, ok bool) {
	for {
		switch {
		case frozen != nil:
			b.resolve(*frozen)
		case !ok:
			b.ledger.pause(retryAfter)
		default:
			runtime.Gosched() // who is about to join shares the flight: a third fewer events under 64 connections
		}
		if len(more) == 0 {
			more = b.queue.next()
		}
		if len(more) == 0 {
			return
		}
		if b.ledger.life.Err() != nil {
			b.strand(more)
			return
		}
		frozen, ok = b.fly(more)
		more = nil
	}
}

const retryAfter = 50 * time.Millisecond
