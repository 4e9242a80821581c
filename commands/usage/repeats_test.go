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

// forgetfulStore is a log that forgets which ids it was sent: an append with Any is unknown the first time, although it was
// made, and is made once more when it is sent again.
type forgetfulStore struct {
	eventstore.Store
	mu       sync.Mutex
	sent     map[uuid.UUID]bool
	repeated map[string]int // how often each type of event landed a second time
}

func newForgetfulStore(log eventstore.Store) *forgetfulStore {
	return &forgetfulStore{Store: log, sent: map[uuid.UUID]bool{}, repeated: map[string]int{}}
}

func (f *forgetfulStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if expected != eventstore.Any {
		return f.Store.Append(ctx, stream, expected, events)
	}
	if f.isFirst(events) {
		if _, err := f.Store.Append(ctx, stream, expected, events); err != nil {
			return eventstore.AppendResult{}, err
		}
		return eventstore.AppendResult{}, eventstore.ErrUnknown
	}
	again := slices.Clone(events)
	for i := range again {
		again[i].ID = uuid.New() // the log below does remember
	}
	return f.Store.Append(ctx, stream, expected, again)
}

// isFirst says whether the events were not sent before, and counts those that were.
func (f *forgetfulStore) isFirst(events []eventstore.ProposedEvent) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !f.sent[events[0].ID]
	f.sent[events[0].ID] = true
	for _, e := range events {
		if !first {
			f.repeated[e.Type]++
		}
	}
	return first
}

// TestEventsAppendedWithAnyCountOnceHoweverOftenTheyAreAppended: every writer with Any writes here, and all that it writes lands
// twice.
func TestEventsAppendedWithAnyCountOnceHoweverOftenTheyAreAppended(t *testing.T) {
	t.Parallel()
	const limit = 150
	below, core := openLog(t), openLog(t)
	log := newForgetfulStore(below)
	terms := &fakeQuotas{caps: map[string]int64{"a": limit / 2}}
	var kept atomic.Int64
	running := make([]func(), 2)
	ledgers := make([]*usage.Meter, len(running))
	for i := range ledgers {
		ledgers[i], running[i] = startStoppableMeter(t, log, core, terms)
	}
	spendQuota(t, ledgers, limit/2, &kept)
	terms.set("a", limit)
	appendEvent(t, core, "account-a", event.PlanChanged{})
	spendQuota(t, ledgers, limit, &kept)
	appendEvent(t, core, "account-a", event.KeyRevoked{Key: "key-a", Hash: make([]byte, 32)})
	waitUntil(t, func() bool {
		return errors.Is(ledgers[0].CheckQuota(t.Context(), grantOf("a", limit), "GET /me"), usage.ErrRevoked)
	})
	for _, end := range running {
		end()
	}
	check := refoldLog(t, below, "")
	stream := check.Streams[ledger.StreamName("a", plan.PeriodAt(anchor, time.Now()).First)]
	if got := stream.Used("a"); got != limit || kept.Load() != limit || stream.Lines.Total() != limit {
		t.Errorf("the log says %d used and %d in its lines, %d were served and kept, want %d", got, stream.Lines.Total(), kept.Load(), limit)
	}
	if len(stream.Misstatements) > 0 || len(check.Instances) > 0 {
		t.Errorf("misstatements %v, incarnations that have not ended well %v", stream.Misstatements, check.Instances)
	}
	for _, e := range []event.Event{event.UsageTicked{}, event.UsageRefunded{}, event.UsageCapSet{}, event.UsageKeyRevoked{}, event.InstanceStarted{}, event.InstanceEnded{}} {
		if log.repeated[e.EventType()] == 0 {
			t.Errorf("no %s landed twice", e.EventType())
		}
	}
}

// spendQuota holds requests from all ledgers at once until the cap is reached, and gives each fifth back.
func spendQuota(t *testing.T, ledgers []*usage.Meter, limit int64, kept *atomic.Int64) {
	t.Helper()
	var clients sync.WaitGroup
	for _, m := range ledgers {
		for range 4 {
			clients.Go(func() {
				for n := 1; ; n++ {
					r, err := m.Reserve(t.Context(), grantOf("a", limit), "GET /me")
					var spent *usage.QuotaExceededError
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
						r.Confirm()
					}
				}
			})
		}
	}
	clients.Wait()
}

// startStoppableMeter is a ledger that runs until it is ended in good order.
func startStoppableMeter(t *testing.T, log, core eventstore.Store, terms usage.Quotas) (*usage.Meter, func()) {
	t.Helper()
	m := usage.New(log, eventstore.NewCodec(noVault{}), terms, time.Now, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := m.Run(ctx, core, eventstore.Checkpoint{}); err != nil {
			t.Error(err)
		}
	})
	end := sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(end)
	return m, end
}
