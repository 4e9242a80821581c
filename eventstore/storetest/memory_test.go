package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// memoryStore is the smallest store that keeps the whole contract. The broken stores wrap it.
type memoryStore struct {
	id      uuid.UUID
	matches func(eventstore.Filter, string) bool

	mu      sync.Mutex
	events  []eventstore.RecordedEvent
	streams map[string][]int // indexes into events
	batches map[uuid.UUID]*sentBatch
	changed chan struct{} // closed by the next append, and by Close
	closed  bool
}

// sentBatch is one append as it was made.
type sentBatch struct {
	stream   string
	expected eventstore.Revision
	ids      []uuid.UUID
	result   eventstore.AppendResult
}

func newMemoryStore() *memoryStore {
	return &memoryStore{
		id: uuid.New(), matches: eventstore.Filter.Matches,
		streams: map[string][]int{}, batches: map[uuid.UUID]*sentBatch{}, changed: make(chan struct{}),
	}
}

func (m *memoryStore) Identity(context.Context) (uuid.UUID, error) { return m.id, nil }

func (m *memoryStore) Health() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return eventstore.ErrClosed
	}
	return nil
}

func (m *memoryStore) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.closed = true
		close(m.changed)
	}
	return nil
}

func (m *memoryStore) Append(ctx context.Context, stream string, expected eventstore.Revision, batch []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if err := ctx.Err(); err != nil {
		return eventstore.AppendResult{}, fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return eventstore.AppendResult{}, eventstore.ErrClosed
	}
	if batchBytes(batch) > eventstore.MaxAppendBytes {
		return eventstore.AppendResult{}, eventstore.ErrTooLarge
	}
	if place, known, err := m.findBatch(stream, expected, batch); known {
		return place, err
	}
	if current := eventstore.Revision(len(m.streams[stream]) - 1); expected != eventstore.Any && expected != current {
		return eventstore.AppendResult{}, &eventstore.ConflictError{Stream: stream, Expected: expected, Current: current}
	}
	return m.addBatch(stream, expected, batch), nil
}

// findBatch looks for an append among the earlier ones.
func (m *memoryStore) findBatch(stream string, expected eventstore.Revision, batch []eventstore.ProposedEvent) (eventstore.AppendResult, bool, error) {
	for _, e := range batch {
		b := m.batches[e.ID]
		if b == nil {
			continue
		}
		if b.stream != stream || b.expected != expected || checkOrder("", idsOf(batch, proposedID), b.ids) != nil {
			return eventstore.AppendResult{}, true, eventstore.ErrIDReused
		}
		return b.result, true, nil
	}
	return eventstore.AppendResult{}, false, nil
}

func (m *memoryStore) addBatch(stream string, expected eventstore.Revision, batch []eventstore.ProposedEvent) eventstore.AppendResult {
	b := &sentBatch{stream: stream, expected: expected, ids: idsOf(batch, proposedID)}
	for _, e := range batch {
		b.result = eventstore.AppendResult{Revision: eventstore.Revision(len(m.streams[stream])), Position: eventstore.Position(10 * (len(m.events) + 1))}
		m.streams[stream] = append(m.streams[stream], len(m.events))
		m.events = append(m.events, eventstore.RecordedEvent{
			Position: b.result.Position, Stream: stream, Revision: b.result.Revision,
			ID: e.ID, Type: e.Type, Time: time.Now().UTC(), Data: e.Data, Metadata: e.Metadata,
		})
		m.batches[e.ID] = b
	}
	close(m.changed)
	m.changed = make(chan struct{})
	return b.result
}

func batchBytes(batch []eventstore.ProposedEvent) (n int) {
	for _, e := range batch {
		n += len(e.Type) + len(e.Data) + len(e.Metadata)
	}
	return n
}

func (m *memoryStore) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		all, _, err := m.current()
		m.mu.Lock()
		places := m.streams[stream]
		m.mu.Unlock()
		step, at := 1, int(from)
		if dir == eventstore.Backward {
			step = -1
			if from == eventstore.End {
				at = len(places) - 1
			}
		}
		for err == nil && at >= 0 && at < len(places) {
			if err = ctx.Err(); err != nil {
				break
			}
			if places[at] < len(all) && !yield(all[places[at]], nil) {
				return
			}
			at += step
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			yield(eventstore.RecordedEvent{}, err)
		}
	}
}

// current returns the events of the log and a channel that is closed at its next change.
func (m *memoryStore) current() ([]eventstore.RecordedEvent, <-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, m.changed, eventstore.ErrClosed
	}
	return m.events, m.changed, nil
}

func (m *memoryStore) ReadAll(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return m.readFrom(ctx, after, want, false)
}

func (m *memoryStore) Subscribe(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return m.readFrom(ctx, after, want, true)
}

func (m *memoryStore) readFrom(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter, isLive bool) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		next, err := m.indexAfter(after)
		for err == nil {
			all, changed, failed := m.current()
			if err = errors.Join(failed, ctx.Err()); err != nil {
				break
			}
			for ; next < len(all) && ctx.Err() == nil; next++ {
				if !m.yieldSignal(all[next], want, isLive, yield) {
					return
				}
			}
			if err = ctx.Err(); err != nil {
				break
			}
			if !yield(eventstore.Signal{Kind: eventstore.CaughtUp, Checkpoint: m.checkpointAt(all, next)}, nil) || !isLive {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
		yield(eventstore.Signal{}, err)
	}
}

func (m *memoryStore) yieldSignal(e eventstore.RecordedEvent, want eventstore.Filter, isLive bool, yield func(eventstore.Signal, error) bool) bool {
	s := eventstore.Signal{Kind: eventstore.EventAppeared, Event: e, Checkpoint: eventstore.Checkpoint{Log: m.id, Position: e.Position, Event: e.ID}}
	if m.matches(want, e.Stream) {
		return yield(s, nil)
	}
	if !isLive {
		return true
	}
	return yield(eventstore.Signal{Kind: eventstore.CheckpointReached, Checkpoint: s.Checkpoint}, nil)
}

// indexAfter returns the index of the first event after a checkpoint.
func (m *memoryStore) indexAfter(after eventstore.Checkpoint) (int, error) {
	all, _, err := m.current()
	if err != nil || after == (eventstore.Checkpoint{}) || after == (eventstore.Checkpoint{Log: m.id}) {
		return 0, err
	}
	next := int(after.Position / 10)
	if next > len(all) || after != m.checkpointAt(all, next) {
		return 0, &eventstore.DivergedError{Checkpoint: after, Reason: "no such event"}
	}
	return next, nil
}

func (m *memoryStore) checkpointAt(all []eventstore.RecordedEvent, next int) eventstore.Checkpoint {
	if next == 0 {
		return eventstore.Checkpoint{Log: m.id}
	}
	return eventstore.Checkpoint{Log: m.id, Position: all[next-1].Position, Event: all[next-1].ID}
}
