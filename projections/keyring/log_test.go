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
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/event"
)

// ledger is a log in memory that can be away, hang, forget and be swapped.
type ledger struct {
	eventstore.Store // the calls a ring has no use for
	mu               sync.Mutex
	id               uuid.UUID
	events           []eventstore.Recorded
	grown            chan struct{} // closed when anything below or above changes
	away             error         // what reads end with
	hangs            bool          // reads say nothing until their context ends
	hangEvery        int           // every so many reads one does
	slow             time.Duration // what a read takes
	mute             bool          // subscriptions say nothing, reads work
	hushed           bool          // what reads after a mark that is not here hears nothing, a subscription for 20 s
	reads            int
}

func newLedger() *ledger { return &ledger{id: uuid.New(), grown: make(chan struct{})} }

// add records events at an instant in one stream, and says the last one's position.
func (l *ledger) add(stream string, at time.Time, events ...event.Event) eventstore.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		l.put(stream, at, e.EventType(), data)
	}
	return l.events[len(l.events)-1].Position
}

func (l *ledger) put(stream string, at time.Time, kind string, data []byte) {
	n := len(l.events)
	var id uuid.UUID
	copy(id[:], l.id[:8])
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	l.events = append(l.events, eventstore.Recorded{
		Position: eventstore.Position(10 * (n + 1)), Stream: stream, ID: id, Type: kind, Time: at, Data: data,
	})
	l.change()
}

func (l *ledger) change() {
	close(l.grown)
	l.grown = make(chan struct{})
}

// set changes how the log behaves.
func (l *ledger) set(f func(*ledger)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
	l.change()
}

func (l *ledger) mark(n int) eventstore.Mark {
	if n == 0 {
		return eventstore.Mark{}
	}
	return eventstore.Mark{Log: l.id, Position: l.events[n-1].Position, Event: l.events[n-1].ID}
}

// after is the place in events after a mark.
func (l *ledger) after(m eventstore.Mark) (int, error) {
	n := int(m.Position / 10)
	if m != (eventstore.Mark{}) && (n > len(l.events) || l.mark(n) != m) {
		return 0, &eventstore.DivergedError{Mark: m, Why: "no such event", Other: m.Log != l.id}
	}
	return n, nil
}

func (l *ledger) ReadAll(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		l.mu.Lock()
		l.reads++
		n, err := l.after(after)
		events, upto, away := l.events, l.mark(len(l.events)), l.away
		hangs, slow := l.hangs || l.hangEvery > 0 && l.reads%l.hangEvery != 0, l.slow
		l.mu.Unlock()
		if slow > 0 {
			time.Sleep(slow) // in a bubble of its own this is time passing
		}
		if hangs || err != nil && l.hushed {
			<-ctx.Done()
		}
		if err = errors.Join(ctx.Err(), away, err); err != nil {
			yield(eventstore.Signal{}, err)
			return
		}
		if l.yield(events[n:], want, yield) {
			yield(eventstore.Signal{Kind: eventstore.CaughtUp, Mark: upto}, nil)
		}
	}
}

func (l *ledger) yield(events []eventstore.Recorded, want eventstore.Filter, yield func(eventstore.Signal, error) bool) bool {
	for _, r := range events {
		if want.Matches(r.Stream) && !yield(eventstore.Signal{Kind: eventstore.Event, Event: r, Mark: eventstore.Mark{Log: l.id, Position: r.Position, Event: r.ID}}, nil) {
			return false
		}
	}
	return true
}

func (l *ledger) Subscribe(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		for {
			l.mu.Lock()
			n, err := l.after(after)
			events, grown, mute := l.events, l.grown, l.mute || l.hangs || l.away != nil
			upto := l.mark(len(events))
			l.mu.Unlock()
			if err != nil && l.hushed {
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
				if !l.yield(events[n:], want, yield) || !yield(eventstore.Signal{Kind: eventstore.CaughtUp, Mark: upto}, nil) {
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
	deadlinetest.Until(t, deadlinetest.Hang, what, cond)
}
