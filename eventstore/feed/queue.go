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
	queuedSignals = 1000
	queuedBytes   = 2 << 20
)

// queue is what was read and is not in a batch yet. It is bounded: a reader that is ahead waits.
type queue struct {
	filled, drained chan struct{} // each says "look again"; one slot
	mu              sync.Mutex
	signals         []eventstore.Signal
	bytes           int
	err             error
}

// errEnded: a log that says neither that it ended nor why.
var errEnded = errors.New("the log ended the subscription without a reason")

func newQueue() *queue {
	return &queue{filled: make(chan struct{}, 1), drained: make(chan struct{}, 1)}
}

// fill reads the log into the queue until the reading ends.
func (q *queue) fill(ctx context.Context, log iter.Seq2[eventstore.Signal, error]) {
	for s, err := range log {
		if err != nil {
			q.end(err)
			return
		}
		if !q.put(ctx, s) {
			break
		}
	}
	q.end(errors.Join(ctx.Err(), errEnded))
}

func (q *queue) put(ctx context.Context, s eventstore.Signal) bool {
	for !q.add(s) {
		select {
		case <-q.drained:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (q *queue) add(s eventstore.Signal) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.signals) >= queuedSignals || q.bytes >= queuedBytes {
		return false
	}
	q.signals = append(q.signals, s)
	q.bytes += size(s.Event)
	wake(q.filled)
	return true
}

func (q *queue) end(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
	wake(q.filled)
}

// take waits for signals and returns all there are; none when late comes first. What was read before the
// reading ended comes before the reason.
func (q *queue) take(ctx context.Context, late <-chan time.Time) ([]eventstore.Signal, error) {
	for {
		if signals, err := q.all(); len(signals) > 0 || err != nil {
			return signals, err
		}
		select {
		case <-q.filled:
		case <-late:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (q *queue) all() ([]eventstore.Signal, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.signals) == 0 {
		return nil, q.err
	}
	taken := q.signals
	q.signals, q.bytes = nil, 0
	wake(q.drained)
	return taken, nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
