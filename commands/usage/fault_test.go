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
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// appendEvent writes an event into a log as a command does.
func appendEvent(t *testing.T, store eventstore.Store, stream string, e event.Event) {
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
		terms := &fakeQuotas{caps: map[string]int64{"a": 1000}}
		informed, uninformed := startMeter(t, log, core, terms, time.Now), startMeter(t, log, openLog(t), terms, time.Now)
		mustCount(t, uninformed, "a", 1000)
		mustCount(t, informed, "a", 1000)
		appendEvent(t, core, "account-a", e)
		waitUntil(t, func() bool {
			return errors.Is(informed.CheckQuota(t.Context(), grantOf("a", 1000), "GET /me"), usage.ErrRevoked)
		})
		if _, err := uninformed.CountRequest(t.Context(), grantOf("a", 1000), "GET /me"); !errors.Is(err, usage.ErrRevoked) {
			t.Errorf("%T: got %v at an instance that did not hear of it, want ErrRevoked", e, err)
		}
		checkTotal(t, log, ledger.StreamName("a", plan.PeriodAt(anchor, time.Now()).First), 2)
	}
}

func waitUntil(t *testing.T, holds func() bool) {
	t.Helper()
	deadlinetest.WaitUntil(t, deadlinetest.DefaultLimit, "what the test waits for", holds)
}

// gatedStore is a log that can be shut: appends hang until it is opened and are then unknown, made before or not made.
type gatedStore struct {
	eventstore.Store
	mu               sync.Mutex
	released         chan struct{} // nil: it is open
	appendsWhileShut bool          // what hangs is made all the same
}

func (g *gatedStore) shutGate(made bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.released, g.appendsWhileShut = make(chan struct{}), made
}

func (g *gatedStore) openGate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.released)
	g.released = nil
}

func (g *gatedStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	g.mu.Lock()
	shut, made := g.released, g.appendsWhileShut
	g.mu.Unlock()
	if shut == nil {
		return g.Store.Append(ctx, stream, expected, events)
	}
	if made {
		if _, err := g.Store.Append(ctx, stream, expected, events); err != nil {
			return eventstore.AppendResult{}, err
		}
	}
	select {
	case <-shut:
	case <-ctx.Done():
	}
	return eventstore.AppendResult{}, eventstore.ErrUnknown
}

func TestWhatGotNoAnswerIsNotBilled(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		log := &gatedStore{Store: openLog(t)}
		m := startMeter(t, log, log.Store, &fakeQuotas{caps: map[string]int64{"a": 1000}}, time.Now)
		mustCount(t, m, "a", 1000)
		log.shutGate(made)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				begun := time.Now()
				if _, err := m.CountRequest(t.Context(), grantOf("a", 1000), "GET /me"); !errors.Is(err, usage.ErrUnavailable) {
					t.Errorf("got %v, want ErrUnavailable", err)
				}
				if took := time.Since(begun); took < waitlimit.MaxWait || took > 2*waitlimit.MaxWait {
					t.Errorf("took %v, want %v", took, waitlimit.MaxWait)
				}
			})
		}
		all.Wait()
		log.openGate()
		mustCount(t, m, "a", 1000)
		waitUntil(t, func() bool {
			f, _ := foldStream(t, log, ledger.StreamName("a", plan.PeriodAt(anchor, time.Now()).First))
			return f.Lines.Total() == 2
		})
	}
}
