package feed

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"lieudit/eventstore"
)

const (
	maxQueuedSignals = 1000
	maxQueuedBytes   = 2 << 20
)

// signalQueue is what was read and is not in a batch yet. It is bounded: a reader that is ahead waits.
type signalQueue struct {
	filled, drained chan struct{} // each says "look again"; one slot
	mu              sync.Mutex
	signals         []eventstore.Signal
	bytes           int
	err             error
}

// errEndedWithoutReason: a log that says neither that it ended nor why.
var errEndedWithoutReason = errors.New("the log ended the subscription without a reason")

func newSignalQueue() *signalQueue {
	return &signalQueue{filled: make(chan struct{}, 1), drained: make(chan struct{}, 1)}
}

// readLog reads the log into the queue until the reading ends.
func (q *signalQueue) readLog(ctx context.Context, signals iter.Seq2[eventstore.Signal, error]) {
	for s, err := range signals {
		if err != nil {
			q.fail(err)
			return
		}
		if !q.enqueue(ctx, s) {
			break
		}
	}
	q.fail(errors.Join(ctx.Err(), errEndedWithoutReason))
}

func (q *signalQueue) enqueue(ctx context.Context, s eventstore.Signal) bool {
	for !q.tryEnqueue(s) {
		select {
		case <-q.drained:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (q *signalQueue) tryEnqueue(s eventstore.Signal) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.signals) >= maxQueuedSignals || q.bytes >= maxQueuedBytes {
		return false
	}
	q.signals = append(q.signals, s)
	q.bytes += recordSize(s.Event)
	notify(q.filled)
	return true
}

func (q *signalQueue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
	notify(q.filled)
}

// dequeueAll waits for signals and returns all there are; none when late comes first. What was read before the
// reading ended comes before the reason.
func (q *signalQueue) dequeueAll(ctx context.Context, deadline <-chan time.Time) ([]eventstore.Signal, error) {
	for {
		if signals, err := q.drainSignals(); len(signals) > 0 || err != nil {
			return signals, err
		}
		select {
		case <-q.filled:
		case <-deadline:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (q *signalQueue) drainSignals() ([]eventstore.Signal, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.signals) == 0 {
		return nil, q.err
	}
	signals := q.signals
	q.signals, q.bytes = nil, 0
	notify(q.drained)
	return signals, nil
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
