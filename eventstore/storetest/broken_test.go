package storetest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/memory"
)

// brokenStore is a store that is broken on purpose, and the rules that must fail on it.
type brokenStore struct {
	name        string
	wrap        func(*memory.Log) eventstore.Store
	brokenRules []string
}

// faultyStore is memory with some calls replaced.
type faultyStore struct {
	*memory.Log
	onAppend     func(ctx context.Context, stream string, expected eventstore.Revision, batch []eventstore.ProposedEvent) (eventstore.AppendResult, error)
	onStream     func(iter.Seq2[eventstore.RecordedEvent, error]) iter.Seq2[eventstore.RecordedEvent, error]
	onLog        func(iter.Seq2[eventstore.Signal, error]) iter.Seq2[eventstore.Signal, error]
	onCheckpoint func(eventstore.Checkpoint) eventstore.Checkpoint
	matches      func(eventstore.Filter, string) bool // in the place of Filter.Matches
}

func (f *faultyStore) Append(ctx context.Context, stream string, expected eventstore.Revision, batch []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if f.onAppend == nil {
		return f.Log.Append(ctx, stream, expected, batch)
	}
	return f.onAppend(ctx, stream, expected, batch)
}

func (f *faultyStore) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	seq := f.Log.ReadStream(ctx, stream, from, dir)
	if f.onStream == nil {
		return seq
	}
	return f.onStream(seq)
}

func (f *faultyStore) ReadAll(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return f.applyOnLog(f.applyFilter(f.Log.ReadAll(ctx, f.applyOnCheckpoint(after), f.filterOf(want)), want))
}

func (f *faultyStore) Subscribe(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return f.applyOnLog(f.applyFilter(f.Log.Subscribe(ctx, f.applyOnCheckpoint(after), f.filterOf(want)), want))
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

// filterOf is what the log is asked for: everything, where applyFilter chooses.
func (f *faultyStore) filterOf(want eventstore.Filter) eventstore.Filter {
	if f.matches != nil {
		return nil
	}
	return want
}

// applyFilter drops the events that do not match by the store's own way to match.
func (f *faultyStore) applyFilter(seq iter.Seq2[eventstore.Signal, error], want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	if f.matches == nil {
		return seq
	}
	return func(yield func(eventstore.Signal, error) bool) {
		for s, err := range seq {
			if err == nil && s.Kind == eventstore.EventAppeared && !f.matches(want, s.Event.Stream) {
				continue
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// findCheckpoint returns the checkpoints of a log's events, the zero one before them, and the index of the one at a position; -1: none.
func findCheckpoint(m *memory.Log, at eventstore.Position) (all []eventstore.Checkpoint, index int) {
	all = append([]eventstore.Checkpoint{{}}, m.Checkpoints()...)
	return all, slices.IndexFunc(all, func(c eventstore.Checkpoint) bool { return c.Position == at })
}

func brokenStores() []brokenStore {
	return slices.Concat(brokenAppends(), brokenPromises(), brokenReads(), brokenCheckpoints())
}

func brokenAppends() []brokenStore {
	return []brokenStore{
		{name: "names a wrong current revision", brokenRules: []string{
			"an append with a wrong expectation is a conflict that names the current revision",
		}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
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
		}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onAppend: func(ctx context.Context, s string, _ eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
				return m.Append(ctx, s, eventstore.Any, b)
			}}
		}},
		{name: "forgets what it was sent", brokenRules: []string{
			"the same append sent again returns what the first sending did and adds nothing",
			"the same append sent many times at once is added once, and all calls return the same",
		}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
				m.ForgetIDs()
				return m.Append(ctx, s, r, b)
			}}
		}},
		{name: "takes a mismatch for a repetition", brokenRules: []string{
			"an append whose first ids are known and whose later ones are not is ErrIDReused",
		}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
				c, err := m.Append(ctx, s, r, b)
				if errors.Is(err, eventstore.ErrIDReused) {
					return c, nil
				}
				return c, err
			}}
		}},
	}
}

// brokenPromises are stores that return one thing from an append and do another.
func brokenPromises() []brokenStore {
	return []brokenStore{
		{name: "adds events one by one", brokenRules: []string{
			"the events of an append stand next to each other, whoever else writes",
		}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (c eventstore.AppendResult, err error) {
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
		{name: "returns ErrUnavailable although the append was made", brokenRules: []string{
			"an append cut short is unknown and sending it again settles it",
		}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
				c, err := m.Append(context.WithoutCancel(ctx), s, r, b)
				select {
				case <-ctx.Done():
					err = eventstore.ErrUnavailable
				case <-time.After(time.Millisecond):
				}
				return c, err
			}}
		}},
		{name: "accepts any size", brokenRules: []string{"an append one byte above MaxAppendBytes is too large and adds nothing"}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
				made, err := m.Append(ctx, s, r, b)
				if errors.Is(err, eventstore.ErrTooLarge) {
					return made, nil
				}
				return made, err
			}}
		}},
		{name: "answers before it adds", brokenRules: []string{
			"an acknowledged event is there at once, whichever way it is read",
			"an append returns the revision and the position of its last event",
		}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onAppend: func(ctx context.Context, s string, r eventstore.Revision, b []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
				time.AfterFunc(time.Millisecond, func() { _, _ = m.Append(context.WithoutCancel(ctx), s, r, b) })
				return eventstore.AppendResult{}, nil
			}}
		}},
	}
}

func brokenCheckpoints() []brokenStore {
	return []brokenStore{
		{name: "does not look at the log of a checkpoint", brokenRules: []string{"a checkpoint of another log has diverged"}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onCheckpoint: func(k eventstore.Checkpoint) eventstore.Checkpoint {
				k.Log, _ = m.Identity(context.Background())
				return k
			}}
		}},
		{name: "does not look at the event of a checkpoint", brokenRules: []string{"a checkpoint with another event's id has diverged"}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onCheckpoint: func(k eventstore.Checkpoint) eventstore.Checkpoint {
				if all, i := findCheckpoint(m, k.Position); i > 0 {
					k.Event = all[i].Event
				}
				return k
			}}
		}},
		{name: "waits at a checkpoint beyond its end", brokenRules: []string{"a checkpoint beyond the end has diverged"}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onCheckpoint: func(k eventstore.Checkpoint) eventstore.Checkpoint {
				if all, _ := findCheckpoint(m, 0); k.Position > all[len(all)-1].Position {
					return all[len(all)-1]
				}
				return k
			}}
		}},
		{name: "resumes at a checkpoint instead of after it", brokenRules: []string{
			"a read resumes after any checkpoint without gap or repetition", "a read may resume after the checkpoint of every signal",
		}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onCheckpoint: func(k eventstore.Checkpoint) eventstore.Checkpoint {
				if all, i := findCheckpoint(m, k.Position); i > 0 {
					return all[i-1]
				}
				return k
			}}
		}},
		{name: "changes its identity", brokenRules: []string{"a log has one identity, whoever asks"}, wrap: func(m *memory.Log) eventstore.Store {
			return &changingIdentity{Log: m}
		}},
	}
}

type changingIdentity struct{ *memory.Log }

func (r *changingIdentity) Identity(context.Context) (uuid.UUID, error) { return uuid.New(), nil }

// repeatNth yields the n-th element that counts, over all sequences of the store, times times; the others once.
func repeatNth[T any](n int32, times int, counts func(T) bool) func(iter.Seq2[T, error]) iter.Seq2[T, error] {
	var seen atomic.Int32
	return func(seq iter.Seq2[T, error]) iter.Seq2[T, error] {
		return func(yield func(T, error) bool) {
			for v, err := range seq {
				repeat := 1
				if err == nil && counts(v) && seen.Add(1) == n {
					repeat = times
				}
				for range repeat {
					if !yield(v, err) {
						return
					}
				}
			}
		}
	}
}

func isEvent(s eventstore.Signal) bool { return s.Kind == eventstore.EventAppeared }

func brokenReads() []brokenStore {
	const live = "a subscription yields what there is, then CaughtUp, then what comes"
	return []brokenStore{
		{name: "loses an event of the log", brokenRules: []string{live, "a read of the log yields the wanted events in order of position, then one CaughtUp"},
			wrap: func(m *memory.Log) eventstore.Store {
				return &faultyStore{Log: m, onLog: repeatNth(20, 0, isEvent)}
			}},
		{name: "repeats an event of the log", brokenRules: []string{live, "a read of the log yields the wanted events in order of position, then one CaughtUp"},
			wrap: func(m *memory.Log) eventstore.Store {
				return &faultyStore{Log: m, onLog: repeatNth(20, 2, isEvent)}
			}},
		{name: "loses an event of a stream", brokenRules: []string{"a stream of 3,000 events is read whole, both ways"},
			wrap: func(m *memory.Log) eventstore.Store {
				return &faultyStore{Log: m, onStream: repeatNth(777, 0, func(eventstore.RecordedEvent) bool { return true })}
			}},
		{name: "yields CaughtUp too early", brokenRules: []string{live, "the first CaughtUp comes after all that was acknowledged before",
			"a read of the log yields the wanted events in order of position, then one CaughtUp"}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onLog: caughtUpFirst}
		}},
		{name: "never yields CaughtUp", brokenRules: []string{live, "another CaughtUp comes after a burst", "the CaughtUp of a read has a checkpoint at the end of the log"},
			wrap: func(m *memory.Log) eventstore.Store {
				return &faultyStore{Log: m, onLog: func(seq iter.Seq2[eventstore.Signal, error]) iter.Seq2[eventstore.Signal, error] {
					return dropKind(seq, eventstore.CaughtUp)
				}}
			}},
		{name: "never yields CheckpointReached", brokenRules: []string{"CheckpointReached comes while unwanted events are skipped, and a read may resume after it"},
			wrap: func(m *memory.Log) eventstore.Store {
				return &faultyStore{Log: m, onLog: func(seq iter.Seq2[eventstore.Signal, error]) iter.Seq2[eventstore.Signal, error] {
					return dropKind(seq, eventstore.CheckpointReached)
				}}
			}},
		{name: "takes a failed read for the end of the stream", brokenRules: []string{"a call whose context is over ends with the context's error"},
			wrap: func(m *memory.Log) eventstore.Store { return &faultyStore{Log: m, onStream: hideErrors} }},
		{name: "matches beginnings of names", brokenRules: []string{"a filter matches whole categories, not beginnings of names"}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, matches: func(f eventstore.Filter, stream string) bool {
				return f.Matches(stream) || slices.ContainsFunc(f, func(c string) bool { return strings.HasPrefix(stream, c) })
			}}
		}},
		{name: "wants a dash after the category", brokenRules: []string{"a filter matches the stream named like the category, and ids with dashes"}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, matches: func(f eventstore.Filter, stream string) bool {
				return f.Matches(stream) && (len(f) == 0 || strings.Contains(stream, "-"))
			}}
		}},
		{name: "leaves a goroutine a read", brokenRules: []string{"calls that end, stop early or are cut short leave no goroutine"}, wrap: func(m *memory.Log) eventstore.Store {
			return &faultyStore{Log: m, onStream: func(seq iter.Seq2[eventstore.RecordedEvent, error]) iter.Seq2[eventstore.RecordedEvent, error] {
				go func() { time.Sleep(2 * cancelLimit()) }()
				return seq
			}}
		}},
	}
}

// caughtUpFirst yields a CaughtUp before everything else.
func caughtUpFirst(seq iter.Seq2[eventstore.Signal, error]) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		first := true
		for s, err := range seq {
			if first && err == nil && !yield(eventstore.Signal{Kind: eventstore.CaughtUp, Checkpoint: s.Checkpoint}, nil) {
				return
			}
			first = false
			if !yield(s, err) {
				return
			}
		}
	}
}

func dropKind(seq iter.Seq2[eventstore.Signal, error], kind eventstore.SignalKind) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		for s, err := range seq {
			if err == nil && s.Kind == kind {
				continue
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

func hideErrors(seq iter.Seq2[eventstore.RecordedEvent, error]) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		for e, err := range seq {
			if err != nil || !yield(e, nil) {
				return
			}
		}
	}
}
