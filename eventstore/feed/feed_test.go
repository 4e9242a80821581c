package feed_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/eventstore/feed"
	"lieudit/schemas/deadlinetest"
)

// bubble runs a test in time of its own: a feed on a tape needs no other, and what does not happen is seen at once.
func bubble(t *testing.T, f func(*testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

// reader subscribes to a tape and keeps the mark, as a projection's database would.
type reader struct {
	feed     *feed.Feed
	messages <-chan *message.Message
	mu       sync.Mutex
	mark     eventstore.Mark
	asked    int
	ended    []error
}

func read(t *testing.T, l *tape) *reader {
	t.Helper()
	return readAs(t, feed.Source{Store: l})
}

func readAs(t *testing.T, source feed.Source) *reader {
	t.Helper()
	r := &reader{}
	source.From, source.Ended = r.from, func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = append(r.ended, err)
	}
	r.feed = feed.New(source)
	var err error
	if r.messages, err = r.feed.Subscribe(t.Context(), "register"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.feed.Close() })
	return r
}

func (r *reader) from(context.Context) (eventstore.Mark, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return r.mark, nil
}

func (r *reader) next(t *testing.T) (*message.Message, feed.Batch) {
	t.Helper()
	select {
	case m := <-r.messages:
		b, ok := feed.BatchOf(m)
		if !ok {
			t.Fatal("the message holds no batch")
		}
		return m, b
	case <-time.After(deadlinetest.Hang):
		t.Fatal("no message came")
	}
	return nil, feed.Batch{}
}

func (r *reader) ack(m *message.Message, b feed.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mark = b.To
	m.Ack()
}

func joined(parts ...[]eventstore.Signal) (all []eventstore.Signal) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestBatchesAreOfWholeAppends(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTape(joined(appended(1, 499), appended(500, 3), appended(503, 700), appended(1203, 1), []eventstore.Signal{signal(eventstore.CaughtUp, 1203)})...)
		r := read(t, l)
		var got []int
		for range 3 {
			m, b := r.next(t)
			got = append(got, len(b.Events))
			r.ack(m, b)
		}
		if diff := cmp.Diff([]int{502, 700, 1}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEventsWithoutEndMarkEndWhereTheStreamDoes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		first, second := appended(1, 600), appended(601, 1)
		for i := range first {
			first[i].Event.Metadata = nil
		}
		second[0].Event.Stream = "account-b"
		r := read(t, newTape(joined(first, second, []eventstore.Signal{signal(eventstore.CaughtUp, 601)})...))
		if _, b := r.next(t); len(b.Events) != 600 {
			t.Errorf("got %d events, want 600", len(b.Events))
		}
	})
}

func TestLoneEventGoesThroughAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTape(signal(eventstore.CaughtUp, 0))
		r := read(t, l)
		for position := range 3 {
			m, b := r.next(t)
			r.ack(m, b)
			l.record(appended(position+1, 1)...)
			m, b = r.next(t)
			if len(b.Events) != 1 || b.From.Position != eventstore.Position(position) || b.To != mark(position+1) {
				t.Fatalf("got %d events from %d to %d", len(b.Events), b.From.Position, b.To.Position)
			}
			r.ack(m, b)
			l.record(signal(eventstore.CaughtUp, position+1))
		}
	})
}

func TestWhatHappensWithinThePaceComesTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTape(signal(eventstore.CaughtUp, 0))
		r := readAs(t, feed.Source{Store: l, Pace: time.Second, Batch: 10})
		m, b := r.next(t)
		r.ack(m, b)
		for position := 1; position <= 3; position++ {
			l.record(appended(position, 1)...)
			l.record(signal(eventstore.CaughtUp, position))
		}
		m, b = r.next(t)
		if len(b.Events) != 3 || !b.CaughtUp {
			t.Errorf("got %d events, caught up %v; want all 3", len(b.Events), b.CaughtUp)
		}
		r.ack(m, b)
		began := time.Now()
		l.record(joined(appended(4, 10), appended(14, 1))...)
		if _, b = r.next(t); len(b.Events) != 10 || b.CaughtUp || time.Since(began) > time.Second {
			t.Errorf("got %d events after %v, want a full batch of 10 at once", len(b.Events), time.Since(began))
		}
	})
}

func TestHalfAnAppendWaitsForTheRest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		whole := appended(1, 2)
		l := newTape(joined([]eventstore.Signal{signal(eventstore.CaughtUp, 0)}, whole[:1])...)
		r := read(t, l)
		m, b := r.next(t)
		r.ack(m, b)
		select {
		case <-r.messages:
			t.Fatal("half an append came")
		case <-time.After(60 * time.Millisecond): // three times what a batch may linger
		}
		l.record(whole[1])
		if _, b = r.next(t); len(b.Events) != 2 {
			t.Errorf("got %d events, want 2", len(b.Events))
		}
	})
}

func TestProgressMovesTheMarkWithoutEvents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := read(t, newTape(signal(eventstore.Progress, 70)))
		m, b := r.next(t)
		if len(b.Events) != 0 || b.To != mark(70) {
			t.Errorf("got %d events to %v, want none to %v", len(b.Events), b.To, mark(70))
		}
		want := message.Metadata{feed.TopicKey: "register", feed.FromKey: "0", feed.PositionKey: "70", feed.EventsKey: "0"}
		if diff := cmp.Diff(want, m.Metadata); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNothingFollowsBeforeTheAck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTape(signal(eventstore.CaughtUp, 0))
		r := read(t, l)
		m, b := r.next(t)
		l.record(appended(1, 1)...)
		select {
		case <-r.messages:
			t.Fatal("a second message came before the first was acknowledged")
		case <-time.After(50 * time.Millisecond):
		}
		r.ack(m, b)
		r.next(t)
	})
}

func TestNackBringsTheSameEventsAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := read(t, newTape(joined(appended(1, 3), []eventstore.Signal{signal(eventstore.CaughtUp, 3)})...))
		m, first := r.next(t)
		for range 3 {
			m.Nack()
			var again feed.Batch
			if m, again = r.next(t); !cmp.Equal(first, again) {
				t.Errorf("got %v, want %v", again, first)
			}
		}
	})
}

func TestNackOfWhatIsDoneGoesOnBehindIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTape(joined(appended(1, 3), []eventstore.Signal{signal(eventstore.CaughtUp, 3)})...)
		r := read(t, l)
		m, b := r.next(t)
		r.mu.Lock()
		r.mark = b.To // it was committed after all
		r.mu.Unlock()
		m.Nack()
		l.record(appended(4, 1)...)
		for {
			m, b = r.next(t)
			if len(b.Events) > 0 {
				break
			}
			r.ack(m, b)
		}
		if b.From != mark(3) || b.To != mark(4) {
			t.Errorf("got %d to %d, want 3 to 4", b.From.Position, b.To.Position)
		}
	})
}

func TestEndedReadingIsToldAndTakenUpAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTape(joined(appended(1, 1), []eventstore.Signal{signal(eventstore.CaughtUp, 1)}, appended(2, 1))...)
		diverged := &eventstore.DivergedError{Mark: mark(1), Why: "older copy"}
		l.fails[2] = diverged
		r := read(t, l)
		m, b := r.next(t)
		r.ack(m, b)
		if m, b = r.next(t); len(b.Events) == 0 {
			r.ack(m, b)
			_, b = r.next(t)
		}
		if b.To != mark(2) {
			t.Errorf("got %v, want the event after the failure", b.To)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.ended) != 1 || !errors.Is(r.ended[0], diverged) || r.asked != 2 {
			t.Errorf("told %v and asked %d times, want the failure and 2", r.ended, r.asked)
		}
	})
}

func TestReaderThatIsAheadWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newTape()
		for i := range 50 {
			l.record(appended(1+i*100, 100)...)
		}
		r := read(t, l)
		r.next(t)
		time.Sleep(50 * time.Millisecond) // long enough to read everything, were it not held back
		if got := l.given.Load(); got > 3000 {
			t.Errorf("%d of 5000 events were read while the first batch was worked on", got)
		}
	})
}

func TestCloseAndContextEndEverything(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, end := range []string{"close", "context"} {
			l := newTape(appended(1, 10)...)
			r := &reader{}
			r.feed = feed.New(feed.Source{Store: l, From: r.from})
			ctx, cancel := context.WithCancel(t.Context())
			messages, err := r.feed.Subscribe(ctx, "register")
			if err != nil {
				t.Fatal(err)
			}
			<-messages // neither acknowledged nor refused
			if end == "context" {
				cancel()
				for range messages {
				}
			}
			if err := r.feed.Close(); err != nil {
				t.Error(err)
			}
			cancel()
			if _, open := <-messages; open || l.readers.Load() != 0 {
				t.Errorf("%s left something running", end)
			}
			if _, err := r.feed.Subscribe(t.Context(), "register"); !errors.Is(err, feed.ErrClosed) {
				t.Errorf("got %v, want %v", err, feed.ErrClosed)
			}
		}
	})
}

func TestEveryEventComesOnceInOrderThroughAllFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				l, total := newTape(), 0
				for range 60 {
					n := 1 + random.IntN(60)
					l.record(appended(total+1, n)...)
					total += n
					switch random.IntN(10) {
					case 0:
						l.record(signal(eventstore.CaughtUp, total))
					case 1:
						l.fails[random.IntN(total)] = errors.New("away")
					}
				}
				l.record(signal(eventstore.CaughtUp, total))
				r, got := read(t, l), 0
				for got < total {
					m, b := r.next(t)
					if random.IntN(4) == 0 {
						m.Nack()
						continue
					}
					for _, e := range b.Events {
						if got++; e.Position != eventstore.Position(got) {
							t.Fatalf("got event %d, want %d", e.Position, got)
						}
					}
					r.ack(m, b)
				}
			})
		})
	}
}
