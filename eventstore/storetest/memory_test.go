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

// memory is the smallest store that keeps the whole contract. Its hooks are where the broken ones differ.
type memory struct {
	id     uuid.UUID
	filter func(eventstore.Filter, string) bool

	mu      sync.Mutex
	all     []eventstore.Recorded
	streams map[string][]int // indexes into all
	batches map[uuid.UUID]*sent
	changed chan struct{} // closed by the next append, and by Close
	closed  bool
}

// sent is one append as it was made.
type sent struct {
	stream   string
	expected eventstore.Revision
	ids      []uuid.UUID
	place    eventstore.Committed
}

func newMemory() *memory {
	return &memory{
		id: uuid.New(), filter: eventstore.Filter.Matches,
		streams: map[string][]int{}, batches: map[uuid.UUID]*sent{}, changed: make(chan struct{}),
	}
}

func (m *memory) Identity(context.Context) (uuid.UUID, error) { return m.id, nil }

func (m *memory) Health() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return eventstore.ErrClosed
	}
	return nil
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.closed = true
		close(m.changed)
	}
	return nil
}

func (m *memory) Append(ctx context.Context, stream string, expected eventstore.Revision, batch []eventstore.Proposed) (eventstore.Committed, error) {
	if err := ctx.Err(); err != nil {
		return eventstore.Committed{}, fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return eventstore.Committed{}, eventstore.ErrClosed
	}
	if size(batch) > eventstore.MaxAppend {
		return eventstore.Committed{}, eventstore.ErrTooLarge
	}
	if place, known, err := m.known(stream, expected, batch); known {
		return place, err
	}
	if current := eventstore.Revision(len(m.streams[stream]) - 1); expected != eventstore.Any && expected != current {
		return eventstore.Committed{}, &eventstore.ConflictError{Stream: stream, Expected: expected, Current: current}
	}
	return m.add(stream, expected, batch), nil
}

// known looks for a batch among the earlier ones.
func (m *memory) known(stream string, expected eventstore.Revision, batch []eventstore.Proposed) (eventstore.Committed, bool, error) {
	for _, e := range batch {
		b := m.batches[e.ID]
		if b == nil {
			continue
		}
		if b.stream != stream || b.expected != expected || sameOrder("", ids(batch, proposedID), b.ids) != nil {
			return eventstore.Committed{}, true, eventstore.ErrMismatch
		}
		return b.place, true, nil
	}
	return eventstore.Committed{}, false, nil
}

func (m *memory) add(stream string, expected eventstore.Revision, batch []eventstore.Proposed) eventstore.Committed {
	b := &sent{stream: stream, expected: expected, ids: ids(batch, proposedID)}
	for _, e := range batch {
		b.place = eventstore.Committed{Revision: eventstore.Revision(len(m.streams[stream])), Position: eventstore.Position(10 * (len(m.all) + 1))}
		m.streams[stream] = append(m.streams[stream], len(m.all))
		m.all = append(m.all, eventstore.Recorded{
			Position: b.place.Position, Stream: stream, Revision: b.place.Revision,
			ID: e.ID, Type: e.Type, Time: time.Now().UTC(), Data: e.Data, Metadata: e.Metadata,
		})
		m.batches[e.ID] = b
	}
	close(m.changed)
	m.changed = make(chan struct{})
	return b.place
}

func size(batch []eventstore.Proposed) (n int) {
	for _, e := range batch {
		n += len(e.Type) + len(e.Data) + len(e.Metadata)
	}
	return n
}

func (m *memory) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	return func(yield func(eventstore.Recorded, error) bool) {
		all, _, err := m.look()
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
			yield(eventstore.Recorded{}, err)
		}
	}
}

// look is the log as it is now, and what tells of its next change.
func (m *memory) look() ([]eventstore.Recorded, <-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, m.changed, eventstore.ErrClosed
	}
	return m.all, m.changed, nil
}

func (m *memory) ReadAll(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return m.follow(ctx, after, want, false)
}

func (m *memory) Subscribe(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return m.follow(ctx, after, want, true)
}

func (m *memory) follow(ctx context.Context, after eventstore.Mark, want eventstore.Filter, on bool) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		next, err := m.index(after)
		for err == nil {
			all, changed, failed := m.look()
			if err = errors.Join(failed, ctx.Err()); err != nil {
				break
			}
			for ; next < len(all) && ctx.Err() == nil; next++ {
				if !m.tell(all[next], want, on, yield) {
					return
				}
			}
			if err = ctx.Err(); err != nil {
				break
			}
			if !yield(eventstore.Signal{Kind: eventstore.CaughtUp, Mark: m.mark(all, next)}, nil) || !on {
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

func (m *memory) tell(e eventstore.Recorded, want eventstore.Filter, on bool, yield func(eventstore.Signal, error) bool) bool {
	s := eventstore.Signal{Kind: eventstore.Event, Event: e, Mark: eventstore.Mark{Log: m.id, Position: e.Position, Event: e.ID}}
	if m.filter(want, e.Stream) {
		return yield(s, nil)
	}
	if !on {
		return true
	}
	return yield(eventstore.Signal{Kind: eventstore.Progress, Mark: s.Mark}, nil)
}

// index is where the events after a mark begin.
func (m *memory) index(after eventstore.Mark) (int, error) {
	all, _, err := m.look()
	if err != nil || after == (eventstore.Mark{}) || after == (eventstore.Mark{Log: m.id}) {
		return 0, err
	}
	next := int(after.Position / 10)
	if next > len(all) || after != m.mark(all, next) {
		return 0, &eventstore.DivergedError{Mark: after, Why: "no such event"}
	}
	return next, nil
}

func (m *memory) mark(all []eventstore.Recorded, next int) eventstore.Mark {
	if next == 0 {
		return eventstore.Mark{Log: m.id}
	}
	return eventstore.Mark{Log: m.id, Position: all[next-1].Position, Event: all[next-1].ID}
}
