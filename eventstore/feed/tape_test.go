package feed_test

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// tape is a log of signals that are known beforehand; more can be recorded while it is read.
type tape struct {
	eventstore.Store // nothing else is asked of it

	mu      sync.Mutex
	signals []eventstore.Signal
	more    chan struct{}
	fails   map[int]error // readings that end with an error instead of signal n, once
	given   atomic.Int64
	readers atomic.Int64
}

func newTape(signals ...eventstore.Signal) *tape {
	return &tape{signals: signals, more: make(chan struct{}), fails: map[int]error{}}
}

func (l *tape) record(signals ...eventstore.Signal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.signals = append(l.signals, signals...)
	close(l.more)
	l.more = make(chan struct{})
}

// at is signal n, or the error in its place, or what tells when it may be there.
func (l *tape) at(n int) (s eventstore.Signal, more chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.fails[n]; err != nil {
		delete(l.fails, n)
		return s, nil, err
	}
	if n < len(l.signals) {
		return l.signals[n], nil, nil
	}
	return s, l.more, nil
}

// Subscribe gives the signals beyond a mark.
func (l *tape) Subscribe(ctx context.Context, after eventstore.Mark, _ eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		l.readers.Add(1)
		defer l.readers.Add(-1)
		for n := 0; ; {
			s, more, err := l.at(n)
			switch {
			case err != nil:
				yield(s, err)
				return
			case more != nil:
				select {
				case <-more:
				case <-ctx.Done():
					yield(s, ctx.Err())
					return
				}
				continue
			case s.Mark.Position > after.Position || s.Kind == eventstore.CaughtUp && s.Mark.Position == after.Position:
				l.given.Add(1)
				if !yield(s, nil) {
					return
				}
			}
			n++
		}
	}
}

func mark(position int) eventstore.Mark {
	return eventstore.Mark{Log: uuid.UUID{1}, Position: eventstore.Position(position), Event: uuid.NewSHA1(uuid.Nil, []byte(strconv.Itoa(position)))}
}

// appended are the signals of one append that begins at a position.
func appended(position, events int) []eventstore.Signal {
	signals := make([]eventstore.Signal, events)
	for i := range signals {
		meta, _ := json.Marshal(eventstore.Metadata{End: i == events-1})
		m := mark(position + i)
		signals[i] = eventstore.Signal{Mark: m, Event: eventstore.Recorded{
			Position: m.Position, ID: m.Event, Stream: "account-a", Type: "x.y.v1", Data: []byte("{}"), Metadata: meta,
		}}
	}
	return signals
}

// signal is a signal without an event.
func signal(kind eventstore.Kind, position int) eventstore.Signal {
	return eventstore.Signal{Kind: kind, Mark: mark(position)}
}
