package keyring

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/schemas/event"
)

// fakeLog is a log in memory that can be unavailable, hang, lose its end and be replaced.
type fakeLog struct {
	eventstore.Store   // the methods that a ring does not call
	mu                 sync.Mutex
	id                 uuid.UUID
	events             []eventstore.RecordedEvent
	changed            chan struct{} // closed when another field changes
	readErr            error         // how reads end
	isHanging          bool          // reads yield nothing until their context ends
	hangEvery          int           // every hangEvery-th read hangs
	readDelay          time.Duration // how long a read takes
	isSubscriptionMute bool          // subscriptions yield nothing, reads work
	hidesDivergence    bool          // reads after a missing checkpoint yield nothing, subscriptions nothing for 20 s
	reads              int
}

func newFakeLog() *fakeLog { return &fakeLog{id: uuid.New(), changed: make(chan struct{})} }

// add appends events with one timestamp to one stream, and returns the position of the last.
func (l *fakeLog) add(stream string, at time.Time, events ...event.Event) eventstore.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		l.record(stream, at, e.EventType(), data)
	}
	return l.events[len(l.events)-1].Position
}

func (l *fakeLog) record(stream string, at time.Time, kind string, data []byte) {
	n := len(l.events)
	var id uuid.UUID
	copy(id[:], l.id[:8])
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	l.events = append(l.events, eventstore.RecordedEvent{
		Position: eventstore.Position(10 * (n + 1)), Stream: stream, ID: id, Type: kind, Time: at, Data: data,
	})
	l.notifyChange()
}

func (l *fakeLog) notifyChange() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// configure changes how the log behaves.
func (l *fakeLog) configure(f func(*fakeLog)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
	l.notifyChange()
}

func (l *fakeLog) checkpointAt(n int) eventstore.Checkpoint {
	if n == 0 {
		return eventstore.Checkpoint{}
	}
	return eventstore.Checkpoint{Log: l.id, Position: l.events[n-1].Position, Event: l.events[n-1].ID}
}

// indexAfter is the index of the first event after a checkpoint.
func (l *fakeLog) indexAfter(m eventstore.Checkpoint) (int, error) {
	n := int(m.Position / 10)
	if m != (eventstore.Checkpoint{}) && (n > len(l.events) || l.checkpointAt(n) != m) {
		return 0, &eventstore.DivergedError{Checkpoint: m, Reason: "no such event", IsOtherLog: m.Log != l.id}
	}
	return n, nil
}

func (l *fakeLog) ReadAll(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		l.mu.Lock()
		l.reads++
		n, err := l.indexAfter(after)
		events, upto, away := l.events, l.checkpointAt(len(l.events)), l.readErr
		hangs, slow := l.isHanging || l.hangEvery > 0 && l.reads%l.hangEvery != 0, l.readDelay
		l.mu.Unlock()
		if slow > 0 {
			time.Sleep(slow) // in a bubble of its own this is time passing
		}
		if hangs || err != nil && l.hidesDivergence {
			<-ctx.Done()
		}
		if err = errors.Join(ctx.Err(), away, err); err != nil {
			yield(eventstore.Signal{}, err)
			return
		}
		if l.yieldEvents(events[n:], want, yield) {
			yield(eventstore.Signal{Kind: eventstore.CaughtUp, Checkpoint: upto}, nil)
		}
	}
}

func (l *fakeLog) yieldEvents(events []eventstore.RecordedEvent, want eventstore.Filter, yield func(eventstore.Signal, error) bool) bool {
	for _, r := range events {
		if want.Matches(r.Stream) && !yield(eventstore.Signal{Kind: eventstore.EventAppeared, Event: r, Checkpoint: eventstore.Checkpoint{Log: l.id, Position: r.Position, Event: r.ID}}, nil) {
			return false
		}
	}
	return true
}

func (l *fakeLog) Subscribe(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		for {
			l.mu.Lock()
			n, err := l.indexAfter(after)
			events, grown, mute := l.events, l.changed, l.isSubscriptionMute || l.isHanging || l.readErr != nil
			upto := l.checkpointAt(len(events))
			l.mu.Unlock()
			if err != nil && l.hidesDivergence {
				time.Sleep(20 * time.Second) // in a bubble of its own
			}
			if mute {
				err = nil
			}
			if err = errors.Join(ctx.Err(), err); err != nil {
				yield(eventstore.Signal{}, err)
				return
			}
			if !mute && upto != after {
				if !l.yieldEvents(events[n:], want, yield) || !yield(eventstore.Signal{Kind: eventstore.CaughtUp, Checkpoint: upto}, nil) {
					return
				}
				after = upto
			}
			select {
			case <-grown:
			case <-ctx.Done():
			}
		}
	}
}

// until waits for a condition, as long as a test may.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadlinetest.WaitUntil(t, deadlinetest.DefaultLimit, what, cond)
}
