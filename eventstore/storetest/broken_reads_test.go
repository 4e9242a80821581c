package storetest

import (
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
)

// nth passes a sequence on, but its n-th wanted element as often as times says, over all sequences of the store.
func nth[T any](n int32, times int, counts func(T) bool) func(iter.Seq2[T, error]) iter.Seq2[T, error] {
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

func isEvent(s eventstore.Signal) bool { return s.Kind == eventstore.Event }

func brokenReads() []fault {
	const live = "a subscription yields what there is, says CaughtUp, and goes on with what comes"
	return []fault{
		{name: "loses an event of the log", breaks: []string{live, "a read of the log yields the wanted events in order of position, then one CaughtUp"},
			wrap: func(m *memory) eventstore.Store { return &faulty{memory: m, onLog: nth(20, 0, isEvent)} }},
		{name: "repeats an event of the log", breaks: []string{live, "a read of the log yields the wanted events in order of position, then one CaughtUp"},
			wrap: func(m *memory) eventstore.Store { return &faulty{memory: m, onLog: nth(20, 2, isEvent)} }},
		{name: "loses an event of a stream", breaks: []string{"a stream of 3,000 events is read whole, both ways"},
			wrap: func(m *memory) eventstore.Store {
				return &faulty{memory: m, onStream: nth(777, 0, func(eventstore.Recorded) bool { return true })}
			}},
		{name: "says CaughtUp too early", breaks: []string{live, "the first CaughtUp comes after all that was acknowledged before",
			"a read of the log yields the wanted events in order of position, then one CaughtUp"}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onLog: early}
		}},
		{name: "never says CaughtUp", breaks: []string{live, "CaughtUp is said again after a burst", "a read of the log says CaughtUp at its end, and nothing is before that mark"},
			wrap: func(m *memory) eventstore.Store {
				return &faulty{memory: m, onLog: func(seq iter.Seq2[eventstore.Signal, error]) iter.Seq2[eventstore.Signal, error] {
					return without(seq, eventstore.CaughtUp)
				}}
			}},
		{name: "never says Progress", breaks: []string{"Progress goes on while unwanted events go by, and its mark can be checked"},
			wrap: func(m *memory) eventstore.Store {
				return &faulty{memory: m, onLog: func(seq iter.Seq2[eventstore.Signal, error]) iter.Seq2[eventstore.Signal, error] {
					return without(seq, eventstore.Progress)
				}}
			}},
		{name: "takes a failed read for the end of the stream", breaks: []string{"a call whose context is over ends with the context's error"},
			wrap: func(m *memory) eventstore.Store { return &faulty{memory: m, onStream: swallow} }},
		{name: "matches beginnings of names", breaks: []string{"a filter matches whole categories, not beginnings of names"}, wrap: func(m *memory) eventstore.Store {
			m.filter = func(f eventstore.Filter, stream string) bool {
				return f.Matches(stream) || slices.ContainsFunc(f, func(c string) bool { return strings.HasPrefix(stream, c) })
			}
			return m
		}},
		{name: "wants a dash after the category", breaks: []string{"a filter matches the stream named like the category, and ids with dashes"}, wrap: func(m *memory) eventstore.Store {
			m.filter = func(f eventstore.Filter, stream string) bool {
				return f.Matches(stream) && (len(f) == 0 || strings.Contains(stream, "-"))
			}
			return m
		}},
		{name: "leaves a goroutine a read", breaks: []string{"calls that end, stop early or are cut short leave no goroutine"}, wrap: func(m *memory) eventstore.Store {
			return &faulty{memory: m, onStream: func(seq iter.Seq2[eventstore.Recorded, error]) iter.Seq2[eventstore.Recorded, error] {
				go func() { time.Sleep(2 * promptly()) }()
				return seq
			}}
		}},
	}
}

// early says CaughtUp before everything else.
func early(seq iter.Seq2[eventstore.Signal, error]) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		first := true
		for s, err := range seq {
			if first && err == nil && !yield(eventstore.Signal{Kind: eventstore.CaughtUp, Mark: s.Mark}, nil) {
				return
			}
			first = false
			if !yield(s, err) {
				return
			}
		}
	}
}

func without(seq iter.Seq2[eventstore.Signal, error], kind eventstore.Kind) iter.Seq2[eventstore.Signal, error] {
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

func swallow(seq iter.Seq2[eventstore.Recorded, error]) iter.Seq2[eventstore.Recorded, error] {
	return func(yield func(eventstore.Recorded, error) bool) {
		for e, err := range seq {
			if err != nil || !yield(e, nil) {
				return
			}
		}
	}
}
