package storetest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"lieudit/eventstore"
)

// fault is a store that is broken on purpose, and the rules that must notice.
type fault struct {
	name   string
	wrap   func(*memory) eventstore.Store
	breaks []string
}

// faulty is memory with some calls replaced.
type faulty struct {
	*memory
	onAppend func(ctx context.Context, stream string, expected eventstore.Revision, batch []eventstore.Proposed) (eventstore.Committed, error)
	onStream func(iter.Seq2[eventstore.Recorded, error]) iter.Seq2[eventstore.Recorded, error]
	onLog    func(iter.Seq2[eventstore.Signal, error]) iter.Seq2[eventstore.Signal, error]
	onMark   func(eventstore.Mark) eventstore.Mark
}

func (f *faulty) Append(ctx context.Context, stream string, expected eventstore.Revision, batch []eventstore.Proposed) (eventstore.Committed, error) {
	if f.onAppend == nil {
		return f.memory.Append(ctx, stream, expected, batch)
	}
	return f.onAppend(ctx, stream, expected, batch)
}

func (f *faulty) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	seq := f.memory.ReadStream(ctx, stream, from, dir)
	if f.onStream == nil {
		return seq
	}
	return f.onStream(seq)
}

func (f *faulty) ReadAll(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return f.log(f.memory.ReadAll(ctx, f.mark(after), want))
}

func (f *faulty) Subscribe(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return f.log(f.memory.Subscribe(ctx, f.mark(after), want))
}

func (f *faulty) log(seq iter.Seq2[eventstore.Signal, error]) iter.Seq2[eventstore.Signal, error] {
	if f.onLog == nil {
		return seq
	}
	return f.onLog(seq)
}

func (f *faulty) mark(m eventstore.Mark) eventstore.Mark {
	if f.onMark == nil {
		return m
	}
	return f.onMark(m)
}

func broken() []fault {
	return slices.Concat(brokenAppends(), brokenPromises(), brokenReads(), brokenMarks())
}

func brokenAppends() []fault {
	return []fault{
		{name: "names a wrong current revision", breaks: []string{
			"an append with a wrong expectation is a conflict that names the current revision",
		}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.Proposed) (eventstore.Committed, error) {
				c, err := m.Append(ctx, s, r, b)
				var at *eventstore.ConflictError
				if errors.As(err, &at) {
					at.Current++
				}
				return c, err
			}}
		}},
		{name: "ignores the expectation", breaks: []string{
			"an append with a wrong expectation is a conflict that names the current revision", "a conflict adds nothing",
			"of 200 writers that expect one revision exactly one wins it",
		}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onAppend: func(ctx context.Context, s string, _ eventstore.Revision, b []eventstore.Proposed) (eventstore.Committed, error) {
				return m.Append(ctx, s, eventstore.Any, b)
			}}
		}},
		{name: "forgets what it was sent", breaks: []string{
			"the same append sent again returns what the first sending did and adds nothing",
			"the same append sent many times at once lands once, and who asks again is told so",
		}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.Proposed) (eventstore.Committed, error) {
				m.mu.Lock()
				clear(m.batches)
				m.mu.Unlock()
				return m.Append(ctx, s, r, b)
			}}
		}},
		{name: "takes a mismatch for a repetition", breaks: []string{
			"an append whose first ids are known and whose later ones are not is a mismatch",
		}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.Proposed) (eventstore.Committed, error) {
				c, err := m.Append(ctx, s, r, b)
				if errors.Is(err, eventstore.ErrMismatch) {
					return c, nil
				}
				return c, err
			}}
		}},
	}
}

// brokenPromises are stores that say one thing of an append and do another.
func brokenPromises() []fault {
	return []fault{
		{name: "adds events one by one", breaks: []string{
			"the events of an append stand next to each other, whoever else writes",
		}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.Proposed) (c eventstore.Committed, err error) {
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
		{name: "says unavailable when the append was made", breaks: []string{
			"an append cut short is unknown and sending it again settles it",
		}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.Proposed) (eventstore.Committed, error) {
				c, err := m.Append(context.WithoutCancel(ctx), s, r, b)
				select {
				case <-ctx.Done():
					err = eventstore.ErrUnavailable
				case <-time.After(time.Millisecond):
				}
				return c, err
			}}
		}},
		{name: "accepts any size", breaks: []string{"an append one byte above MaxAppend is too large and adds nothing"}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onAppend: func(_ context.Context, s string, r eventstore.Revision, b []eventstore.Proposed) (eventstore.Committed, error) {
				m.mu.Lock()
				defer m.mu.Unlock()
				return m.add(s, r, b), nil
			}}
		}},
		{name: "answers before it adds", breaks: []string{
			"an acknowledged event is there at once, whichever way it is read",
			"an append returns the revision and the position of its last event",
		}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.Proposed) (eventstore.Committed, error) {
				time.AfterFunc(time.Millisecond, func() { _, _ = m.Append(context.WithoutCancel(ctx), s, r, b) })
				return eventstore.Committed{}, nil
			}}
		}},
	}
}
