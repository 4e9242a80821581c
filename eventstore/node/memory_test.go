package node_test

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// memory is a log that holds nothing but what its tests wrote. Positions have gaps, as in a file.
type memory struct {
	mu      sync.Mutex
	id      uuid.UUID
	all     []eventstore.Recorded
	streams map[string][]int // indexes into all
	ids     map[uuid.UUID]int
	wake    chan struct{}
	closed  bool
}

func newMemory() *memory {
	return &memory{id: uuid.New(), streams: map[string][]int{}, ids: map[uuid.UUID]int{}, wake: make(chan struct{})}
}

func (m *memory) Identity(context.Context) (uuid.UUID, error) { return m.id, nil }
func (m *memory) Health() error                               { return nil }

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	close(m.wake)
	m.wake = make(chan struct{})
	return nil
}

func (m *memory) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return eventstore.Committed{}, eventstore.ErrClosed
	}
	total := 0
	for _, e := range events {
		total += len(e.Type) + len(e.Data) + len(e.Metadata)
	}
	if total > eventstore.MaxAppend {
		return eventstore.Committed{}, eventstore.ErrTooLarge
	}
	if at, ok := m.ids[events[0].ID]; ok {
		return m.repeat(at, stream, events)
	}
	last := eventstore.Revision(len(m.streams[stream]) - 1)
	if expected != eventstore.Any && expected != last {
		return eventstore.Committed{}, &eventstore.ConflictError{Stream: stream, Expected: expected, Current: last}
	}
	for _, e := range events {
		last++
		m.ids[e.ID] = len(m.all)
		m.streams[stream] = append(m.streams[stream], len(m.all))
		m.all = append(m.all, eventstore.Recorded{
			Position: eventstore.Position(len(m.all)+1) * 100, Stream: stream, Revision: last, ID: e.ID, Type: e.Type,
			Time: time.Now().UTC(), Data: e.Data, Metadata: e.Metadata,
		})
	}
	close(m.wake)
	m.wake = make(chan struct{})
	return eventstore.Committed{Revision: last, Position: m.all[len(m.all)-1].Position}, nil
}

func (m *memory) repeat(at int, stream string, events []eventstore.Proposed) (eventstore.Committed, error) {
	for i, e := range events {
		if at+i >= len(m.all) || m.all[at+i].ID != e.ID || m.all[at+i].Stream != stream {
			return eventstore.Committed{}, eventstore.ErrMismatch
		}
	}
	end := m.all[at+len(events)-1]
	return eventstore.Committed{Revision: end.Revision, Position: end.Position}, nil
}

// view is what the log holds now; it is never changed afterwards.
func (m *memory) view(stream string) ([]eventstore.Recorded, []int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, nil, eventstore.ErrClosed
	}
	return m.all, m.streams[stream], nil
}

func (m *memory) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	return func(yield func(eventstore.Recorded, error) bool) {
		all, at, err := m.view(stream)
		if err != nil {
			yield(eventstore.Recorded{}, err)
			return
		}
		if from == eventstore.End || from >= eventstore.Revision(len(at)) && dir == eventstore.Backward {
			from = eventstore.Revision(len(at) - 1)
		}
		step := eventstore.Revision(1)
		if dir == eventstore.Backward {
			step = -1
		}
		for i := from; i >= 0 && i < eventstore.Revision(len(at)); i += step {
			if !yield(all[at[i]], ctx.Err()) || ctx.Err() != nil {
				return
			}
		}
	}
}

func (m *memory) Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	return func(yield func(eventstore.Recorded, error) bool) {
		all, _, err := m.view("")
		if err != nil {
			yield(eventstore.Recorded{}, err)
			return
		}
		if from%100 != 0 && from < 1<<62 {
			yield(eventstore.Recorded{}, &eventstore.DivergedError{Mark: eventstore.Mark{Position: from}, Why: "no event stands there"})
			return
		}
		i, step := 0, 1
		for i < len(all) && all[i].Position < from {
			i++
		}
		if dir == eventstore.Backward {
			i, step = i-1, -1
		}
		for ; i >= 0 && i < len(all); i += step {
			if !yield(all[i], ctx.Err()) || ctx.Err() != nil {
				return
			}
		}
	}
}

func (m *memory) Wait(ctx context.Context, after eventstore.Position) (eventstore.Position, error) {
	for {
		m.mu.Lock()
		wake, closed := m.wake, m.closed
		end := eventstore.Position(len(m.all)) * 100
		m.mu.Unlock()
		switch {
		case closed:
			return 0, eventstore.ErrClosed
		case end > after:
			return end, nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (m *memory) ReadAll(context.Context, eventstore.Mark, eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	panic("a node reads by Scan")
}

func (m *memory) Subscribe(context.Context, eventstore.Mark, eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	panic("a node reads by Scan")
}
