package projector

import (
	"context"
	"iter"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"lieudit/eventstore"
	"lieudit/eventstore/feed"
	"lieudit/schemas/event"
)

const (
	minShare  = 100       // events that are worth a goroutine,
	minBytes  = 256 << 10 // or so many bytes of them
	maxStaged = 64        // events of at most 64 KiB that one transaction makes real, unless one commit names more
)

// facts reads events, on all processors. It is done before the transaction begins: a vault may take its time.
func (m Model) facts(ctx context.Context, codec *eventstore.Codec, events []eventstore.Recorded) ([]fact, error) {
	facts := make([]fact, len(events))
	readers, ctx := errgroup.WithContext(ctx)
	readers.SetLimit(runtime.GOMAXPROCS(0))
	for from, to := range shares(events) {
		readers.Go(func() (err error) {
			for i := from; i < to && err == nil; i++ {
				facts[i], err = m.fact(ctx, codec, events[i])
			}
			return err
		})
	}
	return facts, readers.Wait()
}

// shares divides events into runs that are worth a goroutine each.
func shares(events []eventstore.Recorded) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		from, bytes := 0, 0
		for i, e := range events {
			bytes += len(e.Data)
			if i+1 == len(events) || i+1-from >= minShare || bytes >= minBytes {
				if !yield(from, i+1) {
					return
				}
				from, bytes = i+1, 0
			}
		}
	}
}

// part is what one transaction does of a batch.
type part struct {
	feed.Batch
	facts []fact
}

// parts divides a batch so that what its events make real fits in memory. A part never ends inside an append.
func parts(b feed.Batch, facts []fact) iter.Seq[part] {
	return func(yield func(part) bool) {
		if !slices.ContainsFunc(facts, stages) {
			yield(part{b, facts})
			return
		}
		from, begun, staged := b.From, 0, 0
		for first, end := range appends(b.Events) {
			more := 0
			for _, f := range facts[first:end] {
				more += f.staged()
			}
			if staged > 0 && staged+more > maxStaged {
				last := b.Events[first-1]
				to := eventstore.Mark{Log: b.To.Log, Position: last.Position, Event: last.ID}
				if !yield(part{feed.Batch{From: from, To: to, Events: b.Events[begun:first]}, facts[begun:first]}) {
					return
				}
				from, begun, staged = to, first, 0
			}
			staged += more
		}
		yield(part{feed.Batch{From: from, To: b.To, Events: b.Events[begun:], CaughtUp: b.CaughtUp}, facts[begun:]})
	}
}

// appends are where appends begin and end among events.
func appends(events []eventstore.Recorded) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		first := 0
		for i, e := range events {
			if meta, err := e.Meta(); err == nil && !meta.End && i+1 < len(events) && events[i+1].Stream == e.Stream {
				continue
			}
			if !yield(first, i+1) {
				return
			}
			first = i + 1
		}
	}
}

// stages says whether the fact makes events real, none of which need be there.
func stages(f fact) bool {
	_, ok := f.event.(event.Staged)
	return ok && !f.empty
}

// staged is how many events the fact makes real.
func (f fact) staged() int {
	e, ok := f.event.(event.Staged)
	if !ok {
		return 0
	}
	_, n, _ := e.Staging()
	return n
}

// whole puts before each fact that makes events real what becomes of those.
func (m Model) whole(ctx context.Context, l *lane, facts []fact) ([]fact, error) {
	if !slices.ContainsFunc(facts, stages) {
		return facts, nil
	}
	all := make([]fact, 0, len(facts))
	for _, f := range facts {
		if stages(f) {
			staged, err := m.staged(ctx, l, f)
			if err != nil {
				return nil, err
			}
			all = append(all, staged...)
			continue
		}
		all = append(all, f)
	}
	return all, nil
}

// staged is what a commit makes real, and after that the commit. Where any of it cannot be used all of it stops the
// account: a commit is real as a whole or not at all.
func (m Model) staged(ctx context.Context, l *lane, commit fact) ([]fact, error) {
	e := commit.event.(event.Staged)
	rows, err := eventstore.Staged(ctx, l.store, commit.record.Recorded, e)
	if err != nil {
		if m.Drop == nil {
			return nil, err
		}
		stop, err := stopFact(commit.record.Recorded, err)
		return []fact{stop}, err
	}
	facts, err := m.facts(ctx, l.codec, rows)
	for i := range facts {
		if facts[i].stop != nil {
			return facts[i : i+1], nil
		}
		facts[i].record.Commit, facts[i].record.Nth = e, i+1
	}
	return append(facts, commit), err
}

// staging is the category of the events that those of a type make real.
func staging(t event.Type) (category string, ok bool) {
	e, ok := reflect.Zero(t.Go).Interface().(event.Staged)
	if ok {
		stream, _, _ := e.Staging()
		category, _, _ = strings.Cut(stream, "-")
	}
	return category, ok
}
