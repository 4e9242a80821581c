package storetest

import (
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
)

// repeatNth passes a sequence on, but its n-th wanted element as often as times says, over all sequences of the store.
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
	const live = "a subscription yields what there is, says CaughtUp, and goes on with what comes"
	return []brokenStore{
		{name: "loses an event of the log", brokenRules: []string{live, "a read of the log yields the wanted events in order of position, then one CaughtUp"},
			wrap: func(m *memoryStore) eventstore.Store {
				return &faultyStore{memoryStore: m, onLog: repeatNth(20, 0, isEvent)}
			}},
		{name: "repeats an event of the log", brokenRules: []string{live, "a read of the log yields the wanted events in order of position, then one CaughtUp"},
			wrap: func(m *memoryStore) eventstore.Store {
				return &faultyStore{memoryStore: m, onLog: repeatNth(20, 2, isEvent)}
			}},
		{name: "loses an event of a stream", brokenRules: []string{"a stream of 3,000 events is read whole, both ways"},
			wrap: func(m *memoryStore) eventstore.Store {
				return &faultyStore{memoryStore: m, onStream: repeatNth(777, 0, func(eventstore.RecordedEvent) bool { return true })}
			}},
		{name: "says CaughtUp too early", brokenRules: []string{live, "the first CaughtUp comes after all that was acknowledged before",
			"a read of the log yields the wanted events in order of position, then one CaughtUp"}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onLog: caughtUpFirst}
		}},
		{name: "never says CaughtUp", brokenRules: []string{live, "CaughtUp is said again after a burst", "a read of the log says CaughtUp at its end, and nothing is before that mark"},
			wrap: func(m *memoryStore) eventstore.Store {
				return &faultyStore{memoryStore: m, onLog: func(seq iter.Seq2[eventstore.Signal, error]) iter.Seq2[eventstore.Signal, error] {
					return dropKind(seq, eventstore.CaughtUp)
				}}
			}},
		{name: "never says Progress", brokenRules: []string{"Progress goes on while unwanted events go by, and its mark can be checked"},
			wrap: func(m *memoryStore) eventstore.Store {
				return &faultyStore{memoryStore: m, onLog: func(seq iter.Seq2[eventstore.Signal, error]) iter.Seq2[eventstore.Signal, error] {
					return dropKind(seq, eventstore.CheckpointReached)
				}}
			}},
		{name: "takes a failed read for the end of the stream", brokenRules: []string{"a call whose context is over ends with the context's error"},
			wrap: func(m *memoryStore) eventstore.Store { return &faultyStore{memoryStore: m, onStream: hideErrors} }},
		{name: "matches beginnings of names", brokenRules: []string{"a filter matches whole categories, not beginnings of names"}, wrap: func(m *memoryStore) eventstore.Store {
			m.matches = func(f eventstore.Filter, stream string) bool {
				return f.Matches(stream) || slices.ContainsFunc(f, func(c string) bool { return strings.HasPrefix(stream, c) })
			}
			return m
		}},
		{name: "wants a dash after the category", brokenRules: []string{"a filter matches the stream named like the category, and ids with dashes"}, wrap: func(m *memoryStore) eventstore.Store {
			m.matches = func(f eventstore.Filter, stream string) bool {
				return f.Matches(stream) && (len(f) == 0 || strings.Contains(stream, "-"))
			}
			return m
		}},
		{name: "leaves a goroutine a read", brokenRules: []string{"calls that end, stop early or are cut short leave no goroutine"}, wrap: func(m *memoryStore) eventstore.Store {
			return &faultyStore{memoryStore: m, onStream: func(seq iter.Seq2[eventstore.RecordedEvent, error]) iter.Seq2[eventstore.RecordedEvent, error] {
				go func() { time.Sleep(2 * cancelLimit()) }()
				return seq
			}}
		}},
	}
}

// caughtUpFirst says CaughtUp before everything else.
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
