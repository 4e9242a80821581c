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

// scriptedLog is a log of given signals; a test can append more while it is read.
type scriptedLog struct {
	eventstore.Store // no other method is called

	mu       sync.Mutex
	signals  []eventstore.Signal
	more     chan struct{}
	failures map[int]error // readings that end with an error instead of signal n, once
	yielded  atomic.Int64
	readers  atomic.Int64
}

func newScriptedLog(signals ...eventstore.Signal) *scriptedLog {
	return &scriptedLog{signals: signals, more: make(chan struct{}), failures: map[int]error{}}
}

func (l *scriptedLog) appendSignals(signals ...eventstore.Signal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.signals = append(l.signals, signals...)
	close(l.more)
	l.more = make(chan struct{})
}

// signalAt is signal n, or its error, or a channel that is closed when there are more signals.
func (l *scriptedLog) signalAt(n int) (s eventstore.Signal, more chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.failures[n]; err != nil {
		delete(l.failures, n)
		return s, nil, err
	}
	if n < len(l.signals) {
		return l.signals[n], nil, nil
	}
	return s, l.more, nil
}

// Subscribe yields the signals after a checkpoint.
func (l *scriptedLog) Subscribe(ctx context.Context, after eventstore.Checkpoint, _ eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		l.readers.Add(1)
		defer l.readers.Add(-1)
		for n := 0; ; {
			s, more, err := l.signalAt(n)
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
			case s.Checkpoint.Position > after.Position || s.Kind == eventstore.CaughtUp && s.Checkpoint.Position == after.Position:
				l.yielded.Add(1)
				if !yield(s, nil) {
					return
				}
			}
			n++
		}
	}
}

func checkpointAt(position int) eventstore.Checkpoint {
	return eventstore.Checkpoint{Log: uuid.UUID{1}, Position: eventstore.Position(position), Event: uuid.NewSHA1(uuid.Nil, []byte(strconv.Itoa(position)))}
}

// appendSignals are the signals of one append that begins at a position.
func appendSignals(position, events int) []eventstore.Signal {
	signals := make([]eventstore.Signal, events)
	for i := range signals {
		meta, _ := json.Marshal(eventstore.Metadata{EndOfAppend: i == events-1})
		m := checkpointAt(position + i)
		signals[i] = eventstore.Signal{Checkpoint: m, Event: eventstore.RecordedEvent{
			Position: m.Position, ID: m.Event, Stream: "account-a", Type: "x.y.v1", Data: []byte("{}"), Metadata: meta,
		}}
	}
	return signals
}

// newSignal is a signal without an event.
func newSignal(kind eventstore.SignalKind, position int) eventstore.Signal {
	return eventstore.Signal{Kind: kind, Checkpoint: checkpointAt(position)}
}
