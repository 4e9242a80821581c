package feed

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"lieudit/eventstore"
)

// Batch is what one message holds: the events of whole appends, in the order of the log. It may hold none: then
// only the mark has moved.
type Batch struct {
	From, To eventstore.Checkpoint // resume after From to get this batch again, after To to get the next
	Events   []eventstore.RecordedEvent
	CaughtUp bool // the log had nothing more when this was read
}

type batchKey struct{}

// BatchOf is the batch a message of a feed carries.
func BatchOf(m *message.Message) (Batch, bool) {
	b, ok := m.Context().Value(batchKey{}).(Batch)
	return b, ok
}

// Keys of a message's metadata.
const (
	TopicKey    = "topic"
	FromKey     = "from"     // the position before the batch
	PositionKey = "position" // the position after it
	EventsKey   = "events"   // how many it holds
)

func (b Batch) newMessage(ctx context.Context, topic string) *message.Message {
	m := message.NewMessageWithContext(context.WithValue(ctx, batchKey{}, b), uuid.NewString(), nil)
	m.Metadata = message.Metadata{
		TopicKey:    topic,
		FromKey:     strconv.FormatUint(uint64(b.From.Position), 10),
		PositionKey: strconv.FormatUint(uint64(b.To.Position), 10),
		EventsKey:   strconv.Itoa(len(b.Events)),
	}
	return m
}

const (
	defaultBatchEvents = 500
	defaultBatchBytes  = eventstore.MaxAppendBytes
	maxLinger          = 20 * time.Millisecond
	emptyBatchLinger   = 250 * time.Millisecond // with nothing to say but a mark
)

// batcher makes batches of the signals in a queue.
type batcher struct {
	queue       *signalQueue
	checkpoint  eventstore.Checkpoint
	pending     []eventstore.Signal
	batchEvents int  // events in a batch
	isLive      bool // the reader has caught up: what comes now comes as it happens
	minInterval time.Duration
	earliest    time.Time // before which a batch of what happens now waits for more

	batch Batch
	bytes int
}

// nextBatch is the next batch. It waits for the first signal as long as it takes; with that in hand it waits for more only a
// little while the log is being caught up with, and after that only as the pace says; a mark without events waits for
// company. A batch never ends inside an append.
func (b *batcher) nextBatch(ctx context.Context) (Batch, error) {
	b.batch, b.bytes = Batch{From: b.checkpoint, To: b.checkpoint}, 0
	var deadline <-chan time.Time
	for {
		if b.addPending() {
			return b.finishBatch(), nil
		}
		if deadline == nil && (b.hasProgress() || b.batch.CaughtUp) {
			deadline = time.After(b.lingerTime())
		}
		signals, err := b.queue.dequeueAll(ctx, deadline)
		if err != nil {
			return Batch{}, err
		}
		if len(signals) == 0 {
			if b.endsWithAppend() {
				return b.finishBatch(), nil
			}
			deadline = make(chan time.Time) // the rest of the append is on its way
		}
		b.pending = signals
	}
}

// lingerTime is how long a batch that has begun waits for more.
func (b *batcher) lingerTime() time.Duration {
	switch {
	case !b.isLive:
		return maxLinger
	case len(b.batch.Events) == 0 && !b.batch.CaughtUp:
		return max(emptyBatchLinger, time.Until(b.earliest))
	}
	return time.Until(b.earliest)
}

// addPending adds ready signals to the batch until it is to be cut, and says whether it is.
func (b *batcher) addPending() bool {
	for len(b.pending) > 0 {
		if b.isFull() && b.endsWithAppend() {
			return true
		}
		s := b.pending[0]
		b.pending = b.pending[1:]
		b.batch.To = s.Checkpoint
		switch s.Kind {
		case eventstore.EventAppeared:
			b.batch.Events, b.batch.CaughtUp = append(b.batch.Events, s.Event), false
			b.bytes += recordSize(s.Event)
		case eventstore.CaughtUp:
			b.isLive, b.batch.CaughtUp = true, true
			if b.isDue() {
				return true
			}
		}
	}
	return len(b.batch.Events) > 0 && (b.isFull() || b.isLive && b.isDue()) && b.endsWithAppend()
}

func (b *batcher) isDue() bool { return !time.Now().Before(b.earliest) }

func (b *batcher) finishBatch() Batch {
	b.checkpoint = b.batch.To
	if b.isLive {
		b.earliest = time.Now().Add(b.minInterval)
	}
	return b.batch
}

func (b *batcher) hasProgress() bool { return len(b.batch.Events) > 0 || b.batch.To != b.batch.From }

func (b *batcher) isFull() bool {
	return len(b.batch.Events) >= b.batchEvents || b.bytes >= b.maxBytes()
}

// maxBytes is how many bytes go into a batch of so many events.
func (b *batcher) maxBytes() int {
	return max(defaultBatchBytes, defaultBatchBytes/defaultBatchEvents*b.batchEvents)
}

// endsWithAppend says whether the batch may end here. A run of events that could not be one append has no end mark to wait for.
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
