// Package feed hands a log to Watermill: a Subscriber whose messages are batches of whole appends, one at a time and
// in order. Nothing is ever skipped: where a batch is refused, or the log ends the reading, it asks its
// source again from which mark to go on, and goes on from there.
package feed

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"lieudit/eventstore"
)

// Source is what a feed reads, and on whose behalf.
type Source struct {
	Store  eventstore.Store
	Filter eventstore.Filter
	// BatchEvents is how many events are put into one message while the log is being caught up with, at least; 500 when it is 0.
	BatchEvents int
	// MinInterval is the least time between two messages once the log has been caught up with: what comes sooner goes together.
	// What comes after a longer quiet goes at once.
	MinInterval time.Duration
	// LoadCheckpoint gives the mark to resume after. It is asked at the start, after a Nack and after the reading ended,
	// and may block for as long as nothing is wanted.
	LoadCheckpoint func(context.Context) (eventstore.Checkpoint, error)
	// OnError, when set, is told why From failed or the log ended the reading. The feed tries again by itself.
	OnError func(error)
}

// Feed is a message.Subscriber over a log. Every subscription reads the same source, on its own.
type Feed struct {
	source  Source
	closing context.Context
	close   context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex // no subscription begins while Close waits
}

// ErrClosed: the feed was closed.
var ErrClosed = errors.New("feed closed")

// errNacked: the message got a Nack.
var errNacked = errors.New("batch refused")

// New is a feed of a source.
func New(source Source) *Feed {
	if source.BatchEvents == 0 {
		source.BatchEvents = defaultBatchEvents
	}
	if source.OnError == nil {
		source.OnError = func(error) {}
	}
	f := &Feed{source: source}
	f.closing, f.close = context.WithCancel(context.Background())
	return f
}

// Subscribe begins a subscription; topic is only a name, which the messages carry. The channel is closed when ctx
// ends or the feed is closed. The next message comes after the Ack of the one before; a Nack brings the same
// events again after a pause, unless From says that they are done.
func (f *Feed) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
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
		f.deliverUntilClosed(ctx, topic, out)
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

func (f *Feed) deliverUntilClosed(ctx context.Context, topic string, out chan<- *message.Message) {
	delay := backoff{}
	for ctx.Err() == nil {
		err := f.deliverBatches(ctx, out, subscription{topic, &delay})
		if ctx.Err() == nil && !errors.Is(err, errNacked) {
			f.source.OnError(err)
		}
		delay.sleep(ctx)
	}
}

type subscription struct {
	topic   string
	backoff *backoff
}

// deliverBatches delivers batches from where the source wants to resume, until one is refused or the reading ends.
func (f *Feed) deliverBatches(ctx context.Context, out chan<- *message.Message, s subscription) error {
	checkpoint, err := f.source.LoadCheckpoint(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	q := newSignalQueue()
	var reader sync.WaitGroup
	reader.Go(func() { q.readLog(ctx, f.source.Store.Subscribe(ctx, checkpoint, f.source.Filter)) })
	defer reader.Wait()
	defer cancel()
	for batches := (batcher{queue: q, checkpoint: checkpoint, batchEvents: f.source.BatchEvents, minInterval: f.source.MinInterval}); ; {
		b, err := batches.nextBatch(ctx)
		if err != nil {
			return err
		}
		if err := deliverBatch(ctx, out, b, s.topic); err != nil {
			return err
		}
		s.backoff.reset()
	}
}

// deliverBatch returns when the batch was acknowledged. The message's context ends then.
func deliverBatch(ctx context.Context, out chan<- *message.Message, b Batch, topic string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := b.newMessage(ctx, topic)
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

const (
	minBackoff = 25 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// backoff is the time between tries: longer and longer while nothing succeeds.
type backoff struct{ next time.Duration }

func (p *backoff) reset() { p.next = 0 }

func (p *backoff) sleep(ctx context.Context) {
	p.next = min(max(minBackoff, 2*p.next), maxBackoff)
	select {
	case <-ctx.Done():
	case <-time.After(p.next/2 + rand.N(p.next/2)):
	}
}
