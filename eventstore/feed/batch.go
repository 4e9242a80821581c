package feed

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"lieudit/eventstore"
)

// Batch is the content of one message: the events of whole appends, in the order of the log. A batch without events
// only moves the checkpoint.
type Batch struct {
	From, To eventstore.Checkpoint // resume after From to get this batch again, after To to get the next
	Events   []eventstore.RecordedEvent
	CaughtUp bool // the log had nothing more when this was read
}

type batchKey struct{}

// BatchOf returns the batch that a message of a feed carries.
func BatchOf(m *message.Message) (Batch, bool) {
	b, ok := m.Context().Value(batchKey{}).(Batch)
	return b, ok
}

const (
	defaultBatchEvents = 500
	defaultBatchBytes  = eventstore.MaxAppendBytes
	maxLinger          = 20 * time.Millisecond
	emptyBatchLinger   = 250 * time.Millisecond // of a batch without events
	// gatherLinger is how long a batch of a live log with a MinInterval waits once it is due: the reader, which has paused until
	// then, reads within that time what has come meanwhile.
	gatherLinger = 5 * time.Millisecond
)

// batcher makes batches of the signals in a queue.
type batcher struct {
	queue       *signalQueue
	checkpoint  eventstore.Checkpoint
	pending     []eventstore.Signal
	batchEvents int  // see Source
	isLive      bool // the log was caught up with: signals come as events happen
	minInterval time.Duration

	batch     Batch
	bytes     int
	begun     time.Time // when the batch got its first signal; zero before
	isOverdue bool      // the batch waits only for the rest of its last append
}

// nextBatch returns the next batch. It waits for the first signal without a limit. With a signal it waits for more only
// briefly (deadline). A batch never ends inside an append: it waits for the rest without a limit.
func (b *batcher) nextBatch(ctx context.Context) (Batch, error) {
	b.batch, b.bytes = Batch{From: b.checkpoint, To: b.checkpoint}, 0
	b.begun, b.isOverdue = time.Time{}, false
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if b.addPending() {
			return b.finishBatch(), nil
		}
		var deadline <-chan time.Time // nil: none
		if !b.begun.IsZero() && !b.isOverdue {
			timer.Reset(time.Until(b.deadline()))
			deadline = timer.C
		}
		signals, isTimeout, err := b.queue.dequeueAll(ctx, deadline)
		if err != nil {
			return Batch{}, err
		}
		if isTimeout && b.endsWithAppend() {
			return b.finishBatch(), nil
		}
		b.isOverdue = b.isOverdue || isTimeout // the rest of the append will come
		b.pending = signals
	}
}

// deadline is when a batch that has begun waits no longer for more signals: maxLinger after it has begun while it catches up with the
// log, then when it is due. A batch without events waits longer, because it costs a transaction and is worth little.
func (b *batcher) deadline() time.Time {
	switch due := b.queue.dueAt(); {
	case !b.isLive:
		return b.begun.Add(maxLinger)
	case len(b.batch.Events) == 0 && !b.batch.CaughtUp:
		return latest(due, b.begun.Add(emptyBatchLinger))
	case b.minInterval > 0:
		return latest(due, b.begun).Add(gatherLinger)
	default:
		return due
	}
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// addPending adds pending signals to the batch, and reports whether the batch is finished.
func (b *batcher) addPending() bool {
	for len(b.pending) > 0 {
		if b.isFull() && b.endsWithAppend() {
			return true
		}
		s := b.pending[0]
		b.pending = b.pending[1:]
		b.batch.To = s.Checkpoint
		if b.begun.IsZero() {
			b.begun = time.Now()
		}
		switch s.Kind {
		case eventstore.EventAppeared:
			b.batch.Events, b.batch.CaughtUp = append(b.batch.Events, s.Event), false
			b.bytes += recordSize(s.Event)
		case eventstore.CaughtUp:
			endsNow := !b.isLive || b.minInterval == 0
			if b.isLive, b.batch.CaughtUp = true, true; endsNow {
				return true
			}
		}
	}
	endsNow := b.isFull() || b.isOverdue || b.isLive && b.minInterval == 0
	return len(b.batch.Events) > 0 && endsNow && b.endsWithAppend()
}

// finishBatch returns the batch and starts the interval to the next one, unless it has no events.
func (b *batcher) finishBatch() Batch {
	b.checkpoint = b.batch.To
	if b.isLive && b.minInterval > 0 && len(b.batch.Events) > 0 {
		b.queue.pauseUntil(time.Now().Add(b.minInterval))
	}
	return b.batch
}

func (b *batcher) isFull() bool {
	return len(b.batch.Events) >= b.batchEvents || b.bytes >= b.maxBytes()
}

// maxBytes is how many bytes a batch may have: as many per event as the default batch.
func (b *batcher) maxBytes() int {
	return max(defaultBatchBytes, defaultBatchBytes/defaultBatchEvents*b.batchEvents)
}

// endsWithAppend reports whether the batch ends with the last event of an append. Events without that mark end with their
// stream, or where there are more than one append can hold.
func (b *batcher) endsWithAppend() bool {
	n := len(b.batch.Events)
	if n == 0 || b.bytes > b.maxBytes()+eventstore.MaxAppendBytes {
		return true
	}
	last := b.batch.Events[n-1]
	if len(b.pending) > 0 && b.pending[0].Kind == eventstore.EventAppeared && b.pending[0].Event.Stream != last.Stream {
		return true
	}
	meta, err := last.DecodeMetadata()
	return err != nil || meta.EndOfAppend
}

func recordSize(r eventstore.RecordedEvent) int { return len(r.Type) + len(r.Data) + len(r.Metadata) }

const (
	maxQueuedSignals = 1000
	maxQueuedBytes   = 2 << 20
)

// signalQueue holds the signals that were read from the log and are in no batch yet. It is bounded in both signals and bytes,
// and is emptied at once, unlike a channel. A reader that is ahead waits.
//
// It also holds when the next batch is due. Until then the reader pauses after the first signal: events that come meanwhile wake nobody
// and are read together.
type signalQueue struct {
	filled, drained, hurried chan struct{} // notifications, with one slot each
	mu                       sync.Mutex
	signals                  []eventstore.Signal
	bytes                    int
	due                      time.Time
	err                      error
}

// errEndedWithoutReason is the error of a store that breaks its contract.
var errEndedWithoutReason = errors.New("the log ended the subscription without a reason")

func newSignalQueue() *signalQueue {
	return &signalQueue{filled: make(chan struct{}, 1), drained: make(chan struct{}, 1), hurried: make(chan struct{}, 1)}
}

// dueAt returns when the next batch is due.
func (q *signalQueue) dueAt() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.due
}

// pauseUntil sets when the next batch is due.
func (q *signalQueue) pauseUntil(due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = due
}

// hurry makes the next batch due now, and wakes the reader and the batcher, who wait for that.
func (q *signalQueue) hurry() {
	q.pauseUntil(time.Time{})
	notify(q.hurried)
	notify(q.filled)
}

// awaitDue waits until the next batch is due. It reports false if ctx ends first.
func (q *signalQueue) awaitDue(ctx context.Context) bool {
	for {
		wait := time.Until(q.dueAt())
		if wait <= 0 {
			return true
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-q.hurried:
		case <-ctx.Done():
			return false
		}
		pause.Stop()
	}
}

// readLog moves signals into the queue until the subscription to the log ends.
func (q *signalQueue) readLog(ctx context.Context, signals iter.Seq2[eventstore.Signal, error]) {
	for s, err := range signals {
		if err != nil {
			q.fail(err)
			return
		}
		if !q.enqueueSignal(ctx, s) || !q.awaitDue(ctx) {
			break
		}
	}
	q.fail(errors.Join(ctx.Err(), errEndedWithoutReason))
}

// enqueueSignal waits for room. It reports false if ctx ends first.
func (q *signalQueue) enqueueSignal(ctx context.Context, s eventstore.Signal) bool {
	for !q.tryEnqueue(s) {
		select {
		case <-q.drained:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// tryEnqueue reports false if the queue is full.
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

// fail makes dequeueAll return err once the queue is empty.
func (q *signalQueue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
	notify(q.filled)
}

// dequeueAll waits for signals and returns all there are. It returns none if the deadline comes first, which isTimeout reports, or if
// the time at which the next batch is due has changed. Signals that were read before a failure come before its error.
func (q *signalQueue) dequeueAll(ctx context.Context, deadline <-chan time.Time) (signals []eventstore.Signal, isTimeout bool, err error) {
	if signals, err = q.drainSignals(); len(signals) > 0 || err != nil {
		return signals, false, err
	}
	select {
	case <-q.filled:
		signals, err = q.drainSignals()
		return signals, false, err
	case <-deadline:
		return nil, true, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

// drainSignals empties the queue without waiting.
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

// notify makes the goroutine that waits for c check again. A pending notification is enough.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
