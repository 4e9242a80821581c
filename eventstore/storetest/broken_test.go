package storetest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"lieudit/eventstore"
)

// brokenStore is a store that is broken on purpose, and the rules that must notice.
type brokenStore struct {
	name        string
	wrap        func(*memoryStore) eventstore.Store
	brokenRules []string
}

// faultyStore is memory with some calls replaced.
type faultyStore struct {
	*memoryStore
	onAppend     func(ctx context.Context, stream string, expected eventstore.Revision, batch []eventstore.ProposedEvent) (eventstore.AppendResult, error)
	onStream     func(iter.Seq2[eventstore.RecordedEvent, error]) iter.Seq2[eventstore.RecordedEvent, error]
	onLog        func(iter.Seq2[eventstore.Signal, error]) iter.Seq2[eventstore.Signal, error]
	onCheckpoint func(eventstore.Checkpoint) eventstore.Checkpoint
}

func (f *faultyStore) Append(ctx context.Context, stream string, expected eventstore.Revision, batch []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if f.onAppend == nil {
		return f.memoryStore.Append(ctx, stream, expected, batch)
	}
	return f.onAppend(ctx, stream, expected, batch)
}

func (f *faultyStore) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	seq := f.memoryStore.ReadStream(ctx, stream, from, dir)
	if f.onStream == nil {
		return seq
	}
	return f.onStream(seq)
}

func (f *faultyStore) ReadAll(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return f.applyOnLog(f.memoryStore.ReadAll(ctx, f.applyOnCheckpoint(after), want))
}

func (f *faultyStore) Subscribe(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return f.applyOnLog(f.memoryStore.Subscribe(ctx, f.applyOnCheckpoint(after), want))
}

func (f *faultyStore) applyOnLog(seq iter.Seq2[eventstore.Signal, error]) iter.Seq2[eventstore.Signal, error] {
	if f.onLog == nil {
		return seq
	}
	return f.onLog(seq)
}

func (f *faultyStore) applyOnCheckpoint(m eventstore.Checkpoint) eventstore.Checkpoint {
	if f.onCheckpoint == nil {
		return m
	}
	return f.onCheckpoint(m)
}

func brokenStores() []brokenStore {
	return slices.Concat(brokenAppends(), brokenPromises(), brokenReads(), brokenCheckpoints())
}

func brokenAppends() []brokenStore {
	return []brokenStore{
		{name: "names a wrong current revision", brokenRules: []string{
			"an append with a wrong expectation is a conflict that names the current revision",
		}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
				c, err := m.Append(ctx, s, r, b)
				var at *eventstore.ConflictError
				if errors.As(err, &at) {
					at.Current++
				}
				return c, err
			}}
		}},
		{name: "ignores the expectation", brokenRules: []string{
			"an append with a wrong expectation is a conflict that names the current revision", "a conflict adds nothing",
			"of 200 writers that expect one revision exactly one wins it",
		}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onAppend: func(ctx context.Context, s string, _ eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
				return m.Append(ctx, s, eventstore.Any, b)
			}}
		}},
		{name: "forgets what it was sent", brokenRules: []string{
			"the same append sent again returns what the first sending did and adds nothing",
			"the same append sent many times at once lands once, and who asks again is told so",
		}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
				m.mu.Lock()
				clear(m.batches)
				m.mu.Unlock()
				return m.Append(ctx, s, r, b)
			}}
		}},
		{name: "takes a mismatch for a repetition", brokenRules: []string{
			"an append whose first ids are known and whose later ones are not is a mismatch",
		}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
				c, err := m.Append(ctx, s, r, b)
				if errors.Is(err, eventstore.ErrIDReused) {
					return c, nil
				}
				return c, err
			}}
		}},
	}
}

// brokenPromises are stores that say one thing of an append and do another.
func brokenPromises() []brokenStore {
	return []brokenStore{
		{name: "adds events one by one", brokenRules: []string{
			"the events of an append stand next to each other, whoever else writes",
		}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (c eventstore.AppendResult, err error) {
				for i := range b {
					if c, err = m.Append(ctx, s, r, b[i:i+1]); err != nil {
						return c, err
					}
					time.Sleep(time.Microsecond)
					r = c.Revision
				}
				return c, err
			}}
		}},
		{name: "says unavailable when the append was made", brokenRules: []string{
			"an append cut short is unknown and sending it again settles it",
		}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
				c, err := m.Append(context.WithoutCancel(ctx), s, r, b)
				select {
				case <-ctx.Done():
					err = eventstore.ErrUnavailable
				case <-time.After(time.Millisecond):
				}
				return c, err
			}}
		}},
		{name: "accepts any size", brokenRules: []string{"an append one byte above MaxAppend is too large and adds nothing"}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onAppend: func(_ context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
				m.mu.Lock()
				defer m.mu.Unlock()
				return m.addBatch(s, r, b), nil
			}}
		}},
		{name: "answers before it adds", brokenRules: []string{
			"an acknowledged event is there at once, whichever way it is read",
			"an append returns the revision and the position of its last event",
		}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
				time.AfterFunc(time.Millisecond, func() { _, _ = m.Append(context.WithoutCancel(ctx), s, r, b) })
				return eventstore.AppendResult{}, nil
			}}
		}},
	}
}
