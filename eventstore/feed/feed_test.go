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
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/feed"
)

// bubble runs a test in simulated time, so that it can test without waiting that something does not happen within a time.
func bubble(t *testing.T, f func(*testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

// batchReader subscribes to a feed and stores the checkpoint, as a projection does.
type batchReader struct {
	feed            *feed.Feed
	messages        <-chan *message.Message
	mu              sync.Mutex
	checkpoint      eventstore.Checkpoint
	checkpointLoads int
	errors          []error
}

func newReader(t *testing.T, l *scriptedLog) *batchReader {
	t.Helper()
	return newReaderOf(t, feed.Source{Store: l})
}

func newReaderOf(t *testing.T, source feed.Source) *batchReader {
	t.Helper()
	r := &batchReader{}
	source.LoadCheckpoint, source.OnError = r.loadCheckpoint, func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.errors = append(r.errors, err)
	}
	r.feed = feed.New(source)
	var err error
	if r.messages, err = r.feed.Subscribe(t.Context(), "register"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.feed.Close() })
	return r
}

func (r *batchReader) loadCheckpoint(context.Context) (eventstore.Checkpoint, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checkpointLoads++
	return r.checkpoint, nil
}

func (r *batchReader) nextBatch(t *testing.T) (*message.Message, feed.Batch) {
	t.Helper()
	select {
	case m := <-r.messages:
		b, ok := feed.BatchOf(m)
		if !ok {
			t.Fatal("the message holds no batch")
		}
		return m, b
	case <-time.After(deadlinetest.DefaultLimit):
		t.Fatal("no message came")
	}
	return nil, feed.Batch{}
}

func (r *batchReader) acknowledge(m *message.Message, b feed.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checkpoint = b.To
	m.Ack()
}

func concatSignals(parts ...[]eventstore.Signal) (all []eventstore.Signal) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestBatchesAreOfWholeAppends(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newScriptedLog(concatSignals(appendSignals(1, 499), appendSignals(500, 3), appendSignals(503, 700), appendSignals(1203, 1), []eventstore.Signal{newSignal(eventstore.CaughtUp, 1203)})...)
		r := newReader(t, l)
		var got []int
		for range 3 {
			m, b := r.nextBatch(t)
			got = append(got, len(b.Events))
			r.acknowledge(m, b)
		}
		if diff := cmp.Diff([]int{502, 700, 1}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEventsWithoutEndMarkEndWhereTheStreamDoes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		first, second := appendSignals(1, 600), appendSignals(601, 1)
		for i := range first {
			first[i].Event.Metadata = nil
		}
		second[0].Event.Stream = "account-b"
		r := newReader(t, newScriptedLog(concatSignals(first, second, []eventstore.Signal{newSignal(eventstore.CaughtUp, 601)})...))
		if _, b := r.nextBatch(t); len(b.Events) != 600 {
			t.Errorf("got %d events, want 600", len(b.Events))
		}
	})
}

func TestLoneEventGoesThroughAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newScriptedLog(newSignal(eventstore.CaughtUp, 0))
		r := newReader(t, l)
		for position := range 3 {
			m, b := r.nextBatch(t)
			r.acknowledge(m, b)
			l.appendSignals(appendSignals(position+1, 1)...)
			m, b = r.nextBatch(t)
			if len(b.Events) != 1 || b.From.Position != eventstore.Position(position) || b.To != checkpointAt(position+1) {
				t.Fatalf("got %d events from %d to %d", len(b.Events), b.From.Position, b.To.Position)
			}
			r.acknowledge(m, b)
			l.appendSignals(newSignal(eventstore.CaughtUp, position+1))
		}
	})
}

// liveReader reads a log with a minimal interval of half a minute, and has just received the event at position 1.
func liveReader(t *testing.T) (*scriptedLog, *batchReader) {
	t.Helper()
	l := newScriptedLog(newSignal(eventstore.CaughtUp, 0))
	r := newReaderOf(t, feed.Source{Store: l, MinInterval: time.Minute / 2, BatchEvents: 10})
	r.acknowledge(r.nextBatch(t))
	begun := time.Now()
	l.appendSignals(concatSignals(appendSignals(1, 1), []eventstore.Signal{newSignal(eventstore.CaughtUp, 1)})...)
	m, b := r.nextBatch(t)
	if took := time.Since(begun); len(b.Events) != 1 || took > time.Second {
		t.Fatalf("%d events after %v, want the first at once", len(b.Events), took)
	}
	r.acknowledge(m, b)
	return l, r
}

// Some logs say after every event that there are no more, others only after a burst.
func TestEventsWithinTheMinimalIntervalShareABatchAndAreReadTogether(t *testing.T) {
	for _, saysCaughtUp := range []bool{true, false} {
		t.Run(fmt.Sprint(saysCaughtUp), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l, r := liveReader(t)
				for position := 2; position <= 6; position++ {
					time.Sleep(time.Second)
					l.appendSignals(appendSignals(position, 1)...)
					if saysCaughtUp {
						l.appendSignals(newSignal(eventstore.CaughtUp, position))
					}
				}
				time.Sleep(time.Second)
				if yielded := l.yielded.Load(); yielded > 4 { // two CaughtUp, the first event, and one that ended the reader's wait
					t.Errorf("%d signals were read before the batch was due", yielded)
				}
				if _, b := r.nextBatch(t); len(b.Events) != 5 || b.CaughtUp != saysCaughtUp {
					t.Errorf("got %d events, caught up %v; want all 5", len(b.Events), b.CaughtUp)
				}
			})
		})
	}
}

func TestABatchThatIsDueEndsWhenItIsFull(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, r := liveReader(t)
		begun := time.Now()
		l.appendSignals(concatSignals(appendSignals(2, 10), appendSignals(12, 1))...)
		if _, b := r.nextBatch(t); len(b.Events) != 10 || b.CaughtUp || time.Since(begun) > time.Minute/2 {
			t.Errorf("got %d events after %v, want a full batch of 10 once it is due", len(b.Events), time.Since(begun))
		}
	})
}

func TestAHurriedFeedDeliversAtOnceWhatTheLogHolds(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after int // events that come before and after the call of Hurry
	}{{"events that wait", 5, 0}, {"one event", 1, 0}, {"events that come then", 0, 1}, {"both", 1, 1}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l, r := liveReader(t)
				appendAll := func(first, n int) {
					for i := range n {
						l.appendSignals(appendSignals(first+i, 1)...)
						l.appendSignals(newSignal(eventstore.CaughtUp, first+i))
					}
				}
				appendAll(2, c.before)
				synctest.Wait() // the reader has paused, if an event came
				r.feed.Hurry()
				appendAll(2+c.before, c.after)
				begun := time.Now()
				if _, b := r.nextBatch(t); len(b.Events) != c.before+c.after || time.Since(begun) > time.Second {
					t.Errorf("got %d events after %v, want all %d at once", len(b.Events), time.Since(begun), c.before+c.after)
				}
			})
		})
	}
}

func TestEventsAfterProgressAloneComeAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newScriptedLog(newSignal(eventstore.CaughtUp, 0))
		r := newReaderOf(t, feed.Source{Store: l, MinInterval: time.Minute / 2})
		r.acknowledge(r.nextBatch(t))
		l.appendSignals(newSignal(eventstore.CheckpointReached, 1))
		r.acknowledge(r.nextBatch(t))
		begun := time.Now()
		l.appendSignals(appendSignals(2, 1)...)
		if _, b := r.nextBatch(t); len(b.Events) != 1 || time.Since(begun) > time.Second {
			t.Errorf("got %d events after %v, want 1 at once", len(b.Events), time.Since(begun))
		}
	})
}

func TestHalfAnAppendWaitsForTheRest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		whole := appendSignals(1, 2)
		l := newScriptedLog(concatSignals([]eventstore.Signal{newSignal(eventstore.CaughtUp, 0)}, whole[:1])...)
		r := newReader(t, l)
		m, b := r.nextBatch(t)
		r.acknowledge(m, b)
		select {
		case <-r.messages:
			t.Fatal("half an append came")
		case <-time.After(60 * time.Millisecond): // three times as long as a batch may linger
		}
		l.appendSignals(whole[1])
		if _, b = r.nextBatch(t); len(b.Events) != 2 {
			t.Errorf("got %d events, want 2", len(b.Events))
		}
	})
}

func TestProgressMovesTheCheckpointWithoutEvents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newReader(t, newScriptedLog(newSignal(eventstore.CheckpointReached, 70)))
		_, b := r.nextBatch(t)
		if len(b.Events) != 0 || b.To != checkpointAt(70) {
			t.Errorf("got %d events to %v, want none to %v", len(b.Events), b.To, checkpointAt(70))
		}
	})
}

func TestNothingFollowsBeforeTheAck(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newScriptedLog(newSignal(eventstore.CaughtUp, 0))
		r := newReader(t, l)
		m, b := r.nextBatch(t)
		l.appendSignals(appendSignals(1, 1)...)
		select {
		case <-r.messages:
			t.Fatal("a second message came before the first was acknowledged")
		case <-time.After(50 * time.Millisecond):
		}
		r.acknowledge(m, b)
		r.nextBatch(t)
	})
}

func TestNackBringsTheSameEventsAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newReader(t, newScriptedLog(concatSignals(appendSignals(1, 3), []eventstore.Signal{newSignal(eventstore.CaughtUp, 3)})...))
		m, first := r.nextBatch(t)
		for range 3 {
			m.Nack()
			var again feed.Batch
			if m, again = r.nextBatch(t); !cmp.Equal(first, again) {
				t.Errorf("got %v, want %v", again, first)
			}
		}
	})
}

func TestNackOfADoneBatchContinuesAfterIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newScriptedLog(concatSignals(appendSignals(1, 3), []eventstore.Signal{newSignal(eventstore.CaughtUp, 3)})...)
		r := newReader(t, l)
		m, b := r.nextBatch(t)
		r.mu.Lock()
		r.checkpoint = b.To // it was committed after all
		r.mu.Unlock()
		m.Nack()
		l.appendSignals(appendSignals(4, 1)...)
		for {
			m, b = r.nextBatch(t)
			if len(b.Events) > 0 {
				break
			}
			r.acknowledge(m, b)
		}
		if b.From != checkpointAt(3) || b.To != checkpointAt(4) {
			t.Errorf("got %d to %d, want 3 to 4", b.From.Position, b.To.Position)
		}
	})
}

func TestAFailedReadIsReportedAndRetried(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newScriptedLog(concatSignals(appendSignals(1, 1), []eventstore.Signal{newSignal(eventstore.CaughtUp, 1)}, appendSignals(2, 1))...)
		diverged := &eventstore.DivergedError{Checkpoint: checkpointAt(1), Reason: "older copy"}
		l.failures[2] = diverged
		r := newReader(t, l)
		m, b := r.nextBatch(t)
		r.acknowledge(m, b)
		if m, b = r.nextBatch(t); len(b.Events) == 0 {
			r.acknowledge(m, b)
			_, b = r.nextBatch(t)
		}
		if b.To != checkpointAt(2) {
			t.Errorf("got %v, want the event after the failure", b.To)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.errors) != 1 || !errors.Is(r.errors[0], diverged) || r.checkpointLoads != 2 {
			t.Errorf("told %v and asked %d times, want the failure and 2", r.errors, r.checkpointLoads)
		}
	})
}

func TestReaderThatIsAheadOfItsConsumerWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newScriptedLog()
		for i := range 50 {
			l.appendSignals(appendSignals(1+i*100, 100)...)
		}
		r := newReader(t, l)
		r.nextBatch(t)
		time.Sleep(50 * time.Millisecond) // long enough to read everything, unless it is held back
		if got := l.yielded.Load(); got > 3000 {
			t.Errorf("%d of 5000 events were read while the first batch was worked on", got)
		}
	})
}

func TestCloseAndContextEndEverything(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, end := range []string{"close", "context"} {
			l := newScriptedLog(appendSignals(1, 10)...)
			r := &batchReader{}
			r.feed = feed.New(feed.Source{Store: l, LoadCheckpoint: r.loadCheckpoint})
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
				l, total := newScriptedLog(), 0
				for range 60 {
					n := 1 + random.IntN(60)
					l.appendSignals(appendSignals(total+1, n)...)
					total += n
					switch random.IntN(10) {
					case 0:
						l.appendSignals(newSignal(eventstore.CaughtUp, total))
					case 1:
						l.failures[random.IntN(total)] = errors.New("away")
					}
				}
				l.appendSignals(newSignal(eventstore.CaughtUp, total))
				r, got := newReader(t, l), 0
				for got < total {
					m, b := r.nextBatch(t)
					if random.IntN(4) == 0 {
						m.Nack()
						continue
					}
					for _, e := range b.Events {
						if got++; e.Position != eventstore.Position(got) {
							t.Fatalf("got event %d, want %d", e.Position, got)
						}
					}
					r.acknowledge(m, b)
				}
			})
		})
	}
}

// Events of other accounts pass by the thousand, and each batch costs its receiver a transaction.
func TestEventsNobodyWantsCostFewBatches(t *testing.T) {
	t.Parallel()
	const others = 300
	l := newScriptedLog(newSignal(eventstore.CaughtUp, 0))
	r := newReader(t, l)
	r.acknowledge(r.nextBatch(t))
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for n := range others { // one by one
			<-tick.C
			l.appendSignals(newSignal(eventstore.CheckpointReached, n+1))
		}
	}()
	batches := 0
	for to := 0; to < others; batches++ {
		m, b := r.nextBatch(t)
		r.acknowledge(m, b)
		to = int(b.To.Position)
	}
	if batches > others/10 {
		t.Errorf("%d batches without an event, want at most %d", batches, others/10)
	}
	begun := time.Now()
	l.appendSignals(newSignal(eventstore.CheckpointReached, others+1))
	l.appendSignals(appendSignals(others+2, 1)...)
	m, b := r.nextBatch(t)
	r.acknowledge(m, b)
	if took := time.Since(begun); len(b.Events) != 1 || took > 100*time.Millisecond {
		t.Errorf("a batch of %d events after %v, want the event at once", len(b.Events), took)
	}
}
