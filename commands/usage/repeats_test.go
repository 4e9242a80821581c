package usage_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// forgetful is a log that forgets which ids it was sent: an append with Any is unknown the first time, although it was
// made, and is made once more when it is sent again.
type forgetful struct {
	eventstore.Store
	mu     sync.Mutex
	sent   map[uuid.UUID]bool
	landed map[string]int // how often each type of event landed a second time
}

func newForgetful(log eventstore.Store) *forgetful {
	return &forgetful{Store: log, sent: map[uuid.UUID]bool{}, landed: map[string]int{}}
}

func (f *forgetful) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (eventstore.Committed, error) {
	if expected != eventstore.Any {
		return f.Store.Append(ctx, stream, expected, events)
	}
	if f.isFirst(events) {
		if _, err := f.Store.Append(ctx, stream, expected, events); err != nil {
			return eventstore.Committed{}, err
		}
		return eventstore.Committed{}, eventstore.ErrUnknown
	}
	again := slices.Clone(events)
	for i := range again {
		again[i].ID = uuid.New() // the log below does remember
	}
	return f.Store.Append(ctx, stream, expected, again)
}

// isFirst says whether the events were not sent before, and counts those that were.
func (f *forgetful) isFirst(events []eventstore.Proposed) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !f.sent[events[0].ID]
	f.sent[events[0].ID] = true
	for _, e := range events {
		if !first {
			f.landed[e.Type]++
		}
	}
	return first
}

// TestWhatIsAppendedWithAnyCountsOnceHoweverOftenItLands: every writer with Any writes here, and all that it writes lands
// twice.
func TestWhatIsAppendedWithAnyCountsOnceHoweverOftenItLands(t *testing.T) {
	t.Parallel()
	const limit = 150
	below, core := openLog(t), openLog(t)
	log := newForgetful(below)
	terms := &volumes{caps: map[string]int64{"a": limit / 2}}
	var kept atomic.Int64
	running := make([]func(), 2)
	ledgers := make([]*usage.Ledger, len(running))
	for i := range ledgers {
		ledgers[i], running[i] = runUntil(t, log, core, terms)
	}
	spend(t, ledgers, limit/2, &kept)
	terms.set("a", limit)
	write(t, core, "account-a", event.PlanChanged{})
	spend(t, ledgers, limit, &kept)
	write(t, core, "account-a", event.KeyRevoked{Key: "key-a", Hash: make([]byte, 32)})
	until(t, func() bool {
		return errors.Is(ledgers[0].Admit(t.Context(), holder("a", limit), "GET /me"), usage.ErrRevoked)
	})
	for _, end := range running {
		end()
	}
	check := look(t, below, "")
	stream := check.Streams[ledger.Stream("a", plan.PeriodAt(anchor, time.Now()).First)]
	if got := stream.Used("a"); got != limit || kept.Load() != limit || stream.Lines.Total() != limit {
		t.Errorf("the log says %d used and %d in its lines, %d were served and kept, want %d", got, stream.Lines.Total(), kept.Load(), limit)
	}
	if len(stream.Wrong) > 0 || len(check.Incarnations) > 0 {
		t.Errorf("misstatements %v, incarnations that have not ended well %v", stream.Wrong, check.Incarnations)
	}
	for _, e := range []event.Event{event.UsageTicked{}, event.UsageRefunded{}, event.UsageCapSet{}, event.UsageKeyRevoked{}, event.IncarnationStarted{}, event.IncarnationEnded{}} {
		if log.landed[e.EventType()] == 0 {
			t.Errorf("no %s landed twice", e.EventType())
		}
	}
}

// spend holds requests from all ledgers at once until the cap is reached, and gives each fifth back.
func spend(t *testing.T, ledgers []*usage.Ledger, limit int64, kept *atomic.Int64) {
	t.Helper()
	var clients sync.WaitGroup
	for _, l := range ledgers {
		for range 4 {
			clients.Go(func() {
				for n := 1; ; n++ {
					r, err := l.Hold(t.Context(), holder("a", limit), "GET /me")
					var spent *usage.SpentError
					switch {
					case errors.As(err, &spent):
						return
					case err != nil:
						t.Errorf("a request that is not refused for its cap: %v", err)
						return
					case n%5 == 0:
						if err := r.Refund(t.Context()); err != nil {
							t.Error(err)
						}
					default:
						kept.Add(1)
						r.Keep()
					}
				}
			})
		}
	}
	clients.Wait()
}

// runUntil is a ledger that runs until it is ended in good order.
func runUntil(t *testing.T, log, core eventstore.Store, terms usage.Terms) (*usage.Ledger, func()) {
	t.Helper()
	l := usage.New(log, eventstore.NewCodec(noVault{}), terms, time.Now, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := l.Run(ctx, core, eventstore.Mark{}); err != nil {
			t.Error(err)
		}
	})
	end := sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(end)
	return l, end
}
