package usage_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/waiting"
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// write writes an event into a log as a command does.
func write(t *testing.T, store eventstore.Store, stream string, e event.Event) {
	t.Helper()
	batch, err := eventstore.NewCodec(noVault{}).Encode(t.Context(), stream, uuid.New(), eventstore.Metadata{}, []event.Event{e})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Append(t.Context(), stream, eventstore.Any, batch); err != nil {
		t.Fatal(err)
	}
}

func TestARevokedKeyEndsAtItsPlaceInTheStream(t *testing.T) {
	t.Parallel()
	for _, e := range []event.Event{event.KeyRevoked{Key: "key-a", Hash: make([]byte, 32)}, event.AccountClosed{}} {
		log, core := openLog(t), openLog(t)
		terms := &volumes{caps: map[string]int64{"a": 1000}}
		heard, deaf := instance(t, log, core, terms, time.Now), instance(t, log, openLog(t), terms, time.Now)
		counts(t, deaf, "a", 1000)
		counts(t, heard, "a", 1000)
		write(t, core, "account-a", e)
		until(t, func() bool {
			return errors.Is(heard.Admit(t.Context(), holder("a", 1000), "GET /me"), usage.ErrRevoked)
		})
		if _, err := deaf.Count(t.Context(), holder("a", 1000), "GET /me"); !errors.Is(err, usage.ErrRevoked) {
			t.Errorf("%T: got %v at an instance that did not hear of it, want ErrRevoked", e, err)
		}
		total(t, log, ledger.Stream("a", plan.PeriodAt(anchor, time.Now()).First), 2)
	}
}

func until(t *testing.T, holds func() bool) {
	t.Helper()
	deadlinetest.Until(t, deadlinetest.Hang, "what the test waits for", holds)
}

// gate is a log that can be shut: appends hang until it is opened and are then unknown, made before or not made.
type gate struct {
	eventstore.Store
	mu   sync.Mutex
	shut chan struct{} // nil: it is open
	made bool          // what hangs is made all the same
}

func (g *gate) close(made bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.made = make(chan struct{}), made
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

func (g *gate) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	g.mu.Lock()
	shut, made := g.shut, g.made
	g.mu.Unlock()
	if shut == nil {
		return g.Store.Append(ctx, stream, expected, events)
	}
	if made {
		if _, err := g.Store.Append(ctx, stream, expected, events); err != nil {
			return eventstore.Committed{}, err
		}
	}
	select {
	case <-shut:
	case <-ctx.Done():
	}
	return eventstore.Committed{}, eventstore.ErrUnknown
}

func TestWhatGotNoAnswerIsNotBilled(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		log := &gate{Store: openLog(t)}
		l := instance(t, log, log.Store, &volumes{caps: map[string]int64{"a": 1000}}, time.Now)
		counts(t, l, "a", 1000)
		log.close(made)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				begun := time.Now()
				if _, err := l.Count(t.Context(), holder("a", 1000), "GET /me"); !errors.Is(err, usage.ErrUnavailable) {
					t.Errorf("got %v, want ErrUnavailable", err)
				}
				if took := time.Since(begun); took < waiting.Longest || took > 2*waiting.Longest {
					t.Errorf("took %v, want %v", took, waiting.Longest)
				}
			})
		}
		all.Wait()
		log.open()
		counts(t, l, "a", 1000)
		until(t, func() bool {
			f, _ := refold(t, log, ledger.Stream("a", plan.PeriodAt(anchor, time.Now()).First))
			return f.Lines.Total() == 2
		})
	}
}
