// Package feed delivers a log to Watermill: Feed is a message.Subscriber whose messages are batches of whole appends, one at
// a time and in the order of the log. No event is ever skipped: after a refused batch, and after a subscription to the log
// ended, the feed asks its source again for the checkpoint to resume after.
//
//	Source.LoadCheckpoint ─> Store.Subscribe ─> signalQueue ─> batcher.nextBatch (Batch) ─> message ─> handler
//	          ▲                                                        ▲                                 │
//	          └─────────────────────── Nack, pause ────────────────────┴────────────── Ack ──────────────┘
//
// The handler reads its Batch with BatchOf. Watermill has no subscriber over an event log, and its messages hold one event
// each; a projection needs the events of an append in one transaction.
package feed

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"

	"lieudit/eventstore"
)

// Source is the log that a feed reads, and how it reads it.
type Source struct {
	Store  eventstore.Store
	Filter eventstore.Filter
	// BatchEvents is the number of events after which a message ends, once its current append is complete; 0 means 500.
	BatchEvents int
	// MinInterval is the shortest time between two messages once the log has been caught up with, unless Hurry is called. Events that
	// come sooner share a message and are not read before it is due; an event after a longer pause is delivered at once.
	MinInterval time.Duration
	// LoadCheckpoint returns the checkpoint to resume after. It is called at the start, after a Nack, and after the
	// subscription to the log ended. It may block while nothing is to be delivered.
	LoadCheckpoint func(context.Context) (eventstore.Checkpoint, error)
	// OnError, if set, is called with the reason why LoadCheckpoint failed or the subscription to the log ended. The feed
	// retries on its own.
	OnError func(error)
}

// Feed is a message.Subscriber over a log. Each subscription reads the source independently. It is safe for
// concurrent use.
type Feed struct {
	source  Source
	closing context.Context
	close   context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex // keeps a subscription from starting while Close waits

	queuesMu sync.Mutex
	queues   map[*signalQueue]bool // of the subscriptions that read the log
}

// ErrClosed is the error of Subscribe after Close.
var ErrClosed = errors.New("feed closed")

// errNacked: the handler refused the message.
var errNacked = errors.New("batch refused")

// New returns a feed of a source. It starts nothing.
func New(source Source) *Feed {
	if source.BatchEvents == 0 {
		source.BatchEvents = defaultBatchEvents
	}
	if source.OnError == nil {
		source.OnError = func(error) {}
	}
	f := &Feed{source: source, queues: map[*signalQueue]bool{}}
	f.closing, f.close = context.WithCancel(context.Background())
	return f
}

// Subscribe starts a subscription; it ignores the topic. The channel is closed when ctx ends or the feed is closed. The next
// message comes after the Ack of the one before. After a Nack and a pause the same events come again, unless LoadCheckpoint
// returns a later checkpoint.
func (f *Feed) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing.Err() != nil {
		return nil, ErrClosed
	}
	out := make(chan *message.Message)
	ctx, cancel := context.WithCancel(ctx)
	stopAfterFunc := context.AfterFunc(f.closing, cancel)
	f.running.Go(func() {
		defer close(out)
		defer cancel()
		defer stopAfterFunc()
		f.deliverUntilClosed(ctx, out)
	})
	return out, nil
}

// Close ends all subscriptions and waits for them.
func (f *Feed) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.close()
	f.running.Wait()
	return nil
}

// Hurry makes the next message of each subscription due now: it contains what the log holds by now, or the beginning of that.
func (f *Feed) Hurry() {
	f.queuesMu.Lock()
	defer f.queuesMu.Unlock()
	for q := range f.queues {
		q.hurry()
	}
}

// addQueue makes Hurry reach a queue until remove is called.
func (f *Feed) addQueue(q *signalQueue) (remove func()) {
	f.queuesMu.Lock()
	defer f.queuesMu.Unlock()
	f.queues[q] = true
	return func() {
		f.queuesMu.Lock()
		defer f.queuesMu.Unlock()
		delete(f.queues, q)
	}
}

// deliverUntilClosed delivers batches until ctx ends, and starts again after every refusal or failure.
func (f *Feed) deliverUntilClosed(ctx context.Context, out chan<- *message.Message) {
	pauses := newBackoff()
	for ctx.Err() == nil {
		err := f.deliverBatches(ctx, out, pauses)
		if ctx.Err() == nil && !errors.Is(err, errNacked) {
			f.source.OnError(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pauses.NextBackOff()):
		}
	}
}

// newBackoff returns pauses that double: between 12.5 and 25 ms at first, between 1 and 2 s after many failures.
func newBackoff() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{InitialInterval: 18750 * time.Microsecond, MaxInterval: 1500 * time.Millisecond, Multiplier: 2, RandomizationFactor: 1. / 3}
}

// deliverBatches delivers batches from where the source wants to resume, until one is refused or the subscription to the log
// ends. Every acknowledged batch resets the pauses.
func (f *Feed) deliverBatches(ctx context.Context, out chan<- *message.Message, pauses *backoff.ExponentialBackOff) error {
	checkpoint, err := f.source.LoadCheckpoint(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	q := newSignalQueue()
	defer f.addQueue(q)()
	var reader sync.WaitGroup
	reader.Go(func() { q.readLog(ctx, f.source.Store.Subscribe(ctx, checkpoint, f.source.Filter)) })
	defer reader.Wait()
	defer cancel()
	for batches := (batcher{queue: q, checkpoint: checkpoint, batchEvents: f.source.BatchEvents, minInterval: f.source.MinInterval}); ; {
		b, err := batches.nextBatch(ctx)
		if err != nil {
			return err
		}
		if err := deliverBatch(ctx, out, b); err != nil {
			return err
		}
		pauses.Reset()
	}
}

// deliverBatch returns when the batch was acknowledged or refused, which also ends the message's context.
func deliverBatch(ctx context.Context, out chan<- *message.Message, b Batch) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := message.NewMessageWithContext(context.WithValue(ctx, batchKey{}, b), uuid.NewString(), nil)
	select {
	case out <- m:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-m.Acked():
		return nil
	case <-m.Nacked():
		return errNacked
	case <-ctx.Done():
		return ctx.Err()
	}
}
