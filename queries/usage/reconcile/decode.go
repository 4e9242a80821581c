package reconcile

import (
	"context"
	"fmt"
	"iter"
	"runtime"

	"golang.org/x/sync/errgroup"

	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// decodedEvent is an event of the log with its record.
type decodedEvent struct {
	record eventstore.RecordedEvent
	event  event.Event
}

// decodeBatch is a number of events that one goroutine decodes. Its events are complete once done is closed.
type decodeBatch struct {
	events []decodedEvent
	err    error // of the first event that cannot be decoded; the events before it are complete
	done   chan struct{}
}

// decodeBatchSize is how many events one goroutine decodes: enough that handing them over costs little.
const decodeBatchSize = 1000

// readDecoded yields the events of periods and instances in the order of the log, up to its end at the time of the call.
// Decoding them takes longer than reading and folding them together, so all processors decode while one goroutine reads.
// An error is the last element.
func readDecoded(ctx context.Context, log eventstore.Store) iter.Seq2[decodedEvent, error] {
	return func(yield func(decodedEvent, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		queue := make(chan *decodeBatch, runtime.GOMAXPROCS(0))
		var workers errgroup.Group
		workers.SetLimit(runtime.GOMAXPROCS(0))
		var reader errgroup.Group
		reader.Go(func() error {
			defer close(queue)
			return readBatches(ctx, log, func(b *decodeBatch) error {
				workers.Go(func() error {
					b.decodeEvents()
					return nil
				})
				select {
				case queue <- b:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		})
		defer func() { // no goroutine outlives the loop, even if the caller breaks off
			cancel()
			_ = reader.Wait() // its error was yielded, or is that of cancel
			_ = workers.Wait()
		}()
		for b := range queue {
			if !b.yieldEvents(yield) {
				return
			}
		}
		if err := reader.Wait(); err != nil {
			yield(decodedEvent{}, err)
		}
	}
}

// readBatches reads the log and passes batches of undecoded events to start. It ends with the first error, including that
// of start.
func readBatches(ctx context.Context, log eventstore.Store, start func(*decodeBatch) error) error {
	batch := newDecodeBatch()
	for s, err := range log.ReadAll(ctx, eventstore.Checkpoint{}, eventstore.Filter{"usage", "incarnation"}) {
		if err != nil {
			return err
		}
		if s.Kind != eventstore.EventAppeared {
			continue
		}
		batch.events = append(batch.events, decodedEvent{record: s.Event})
		if len(batch.events) == decodeBatchSize {
			if err := start(batch); err != nil {
				return err
			}
			batch = newDecodeBatch()
		}
	}
	return start(batch)
}

func newDecodeBatch() *decodeBatch {
	return &decodeBatch{events: make([]decodedEvent, 0, decodeBatchSize), done: make(chan struct{})}
}

// decodeEvents decodes events up to the first one that cannot be decoded. It drops that one and all after it.
func (b *decodeBatch) decodeEvents() {
	defer close(b.done)
	for i := range b.events {
		d := &b.events[i]
		e, err := event.Decode(d.record.Type, d.record.Data)
		if err != nil {
			b.err = fmt.Errorf("%s@%d: %w", d.record.Stream, d.record.Revision, err)
			b.events = b.events[:i]
			return
		}
		d.event = e
	}
}

// yieldEvents waits for the batch and yields its events, and its error last. It returns false if the caller must stop.
func (b *decodeBatch) yieldEvents(yield func(decodedEvent, error) bool) bool {
	<-b.done
	for _, d := range b.events {
		if !yield(d, nil) {
			return false
		}
	}
	if b.err != nil {
		yield(decodedEvent{}, b.err)
		return false
	}
	return true
}
