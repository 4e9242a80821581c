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
	"lieudit/eventstore/clock"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// appendEvent appends an event to a log as a command does.
func appendEvent(t *testing.T, store eventstore.Store, stream string, e event.Event) {
	t.Helper()
	batch, err := newCodec().Encode(t.Context(), stream, uuid.New(), eventstore.Metadata{}, []event.Event{e})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Append(t.Context(), stream, eventstore.Any, batch); err != nil {
		t.Fatal(err)
	}
}

func TestARevokedKeyCountsUpToItsRevocationInTheStream(t *testing.T) {
	t.Parallel()
	for _, e := range []event.Event{event.KeyRevoked{Key: "key-a", Hash: make([]byte, 32)}, event.AccountClosed{}} {
		log, core := openLog(t), openLog(t)
		quotas := &fakeQuotas{caps: map[string]int64{"a": 1000}}
		informed, uninformed := startMeter(t, log, core, quotas, time.Now), startMeter(t, log, openLog(t), quotas, time.Now)
		mustCount(t, uninformed, "a", 1000)
		mustCount(t, informed, "a", 1000)
		appendEvent(t, core, "account-a", e)
		waitUntil(t, func() bool {
			return errors.Is(informed.CheckQuota(t.Context(), newWait("a"), grantOf("a", 1000), "GET /me"), usage.ErrRevoked)
		})
		if _, err := countRequest(t.Context(), uninformed, newWait("a"), grantOf("a", 1000), "GET /me"); !errors.Is(err, usage.ErrRevoked) {
			t.Errorf("%T: got %v at an instance that follows another log, want ErrRevoked", e, err)
		}
		checkTotal(t, log, usagefold.StreamName("a", plan.PeriodAt(anchor, time.Now()).First), 2)
	}
}

func waitUntil(t *testing.T, holds func() bool) {
	t.Helper()
	deadlinetest.WaitUntil(t, deadlinetest.DefaultLimit, "what the test waits for", holds)
}

// blockingStore is a log whose appends can be blocked. A blocked append hangs and then returns ErrUnknown; it is made or not.
type blockingStore struct {
	eventstore.Store
	mu                  sync.Mutex
	released            chan struct{} // closed when the blocking ends; nil: appends are not blocked
	appendsWhileBlocked bool          // an append that is blocked is made
}

func (g *blockingStore) blockAppends(made bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.released, g.appendsWhileBlocked = make(chan struct{}), made
}

func (g *blockingStore) unblockAppends() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.released)
	g.released = nil
}

func (g *blockingStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	g.mu.Lock()
	blocked, made := g.released, g.appendsWhileBlocked
	g.mu.Unlock()
	if blocked == nil {
		return g.Store.Append(ctx, stream, expected, events)
	}
	if made {
		if _, err := g.Store.Append(ctx, stream, expected, events); err != nil {
			return eventstore.AppendResult{}, err
		}
	}
	select {
	case <-blocked:
	case <-ctx.Done():
	}
	return eventstore.AppendResult{}, eventstore.ErrUnknown
}

func TestRequestsWithoutAnAnswerAreRefunded(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		log := &blockingStore{Store: openLog(t)}
		m := startMeter(t, log, log.Store, &fakeQuotas{caps: map[string]int64{"a": 1000}}, time.Now)
		mustCount(t, m, "a", 1000)
		log.blockAppends(made)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				begun := time.Now()
				if _, err := countRequest(t.Context(), m, newWait("a"), grantOf("a", 1000), "GET /me"); !errors.Is(err, usage.ErrUnavailable) {
					t.Errorf("got %v, want ErrUnavailable", err)
				}
				if took := time.Since(begun); took < waitlimit.MaxWait || took > 2*waitlimit.MaxWait {
					t.Errorf("took %v, want %v", took, waitlimit.MaxWait)
				}
			})
		}
		all.Wait()
		log.unblockAppends()
		mustCount(t, m, "a", 1000)
		waitUntil(t, func() bool {
			f, _ := foldStream(t, log, usagefold.StreamName("a", plan.PeriodAt(anchor, time.Now()).First))
			return f.Lines.Total() == 2
		})
	}
}

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
		again[i].ID = uuid.New() // the inner store remembers ids
	}
	return f.Store.Append(ctx, stream, expected, again)
}

// isFirst reports whether the events are sent for the first time, and counts those that are not.
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

// hasRepeated reports whether an event of a type landed a second time.
func (f *forgetfulStore) hasRepeated(e event.Event) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.repeated[e.EventType()] > 0
}

// TestEventsAppendedWithAnyCountOnceHoweverOftenTheyAreAppended: every kind of event that is appended with Any is appended here,
// and all of them are on the log twice.
func TestEventsAppendedWithAnyCountOnceHoweverOftenTheyAreAppended(t *testing.T) {
	t.Parallel()
	const limit = 150
	inner, core := openLog(t), openLog(t)
	log := newForgetfulStore(inner)
	quotas := &fakeQuotas{caps: map[string]int64{"a": limit / 2}}
	var kept atomic.Int64
	running := make([]func(), 2)
	meters := make([]*usage.Meter, len(running))
	for i := range meters {
		meters[i], running[i] = startStoppableMeter(t, log, core, quotas)
	}
	spendQuota(t, meters, limit/2, &kept)
	quotas.set("a", limit)
	appendEvent(t, core, "account-a", event.PlanChanged{})
	spendQuota(t, meters, limit, &kept)
	appendEvent(t, core, "account-a", event.KeyRevoked{Key: "key-a", Hash: make([]byte, 32)})
	waitUntil(t, func() bool {
		return errors.Is(meters[0].CheckQuota(t.Context(), newWait("a"), grantOf("a", limit), "GET /me"), usage.ErrRevoked) &&
			log.hasRepeated(writtenAs(event.UsageKeyRevoked{})) // the revocation acts as soon as it landed once
	})
	for _, end := range running {
		end()
	}
	check := refoldLog(t, inner, "")
	stream := check.Streams[usagefold.StreamName("a", plan.PeriodAt(anchor, time.Now()).First)]
	if got := stream.Used("a"); got != limit || kept.Load() != limit || stream.Lines.Total() != limit {
		t.Errorf("the log says %d used and %d in its lines, %d were served and kept, want %d", got, stream.Lines.Total(), kept.Load(), limit)
	}
	if len(stream.Misstatements) > 0 || len(check.Instances) > 0 {
		t.Errorf("misstatements %v, incarnations that have not ended well %v", stream.Misstatements, check.Instances)
	}
	for _, e := range []event.Event{event.UsageTicked{}, event.UsageRefunded{}, event.UsageCapSet{}, event.UsageKeyRevoked{}, event.InstanceStarted{}, event.InstanceEnded{}} {
		if e = writtenAs(e); log.repeated[e.EventType()] == 0 {
			t.Errorf("no %s landed twice", e.EventType())
		}
	}
}

// spendQuota reserves requests on all meters at once until the cap is reached, and refunds each fifth.
func spendQuota(t *testing.T, meters []*usage.Meter, limit int64, kept *atomic.Int64) {
	t.Helper()
	var clients sync.WaitGroup
	for _, m := range meters {
		for range 4 {
			clients.Go(func() {
				for n := 1; ; n++ {
					r, err := m.Charge(t.Context(), newWait("a"), grantOf("a", limit), "GET /me", 1)
					var spent *usage.QuotaExceededError
					switch {
					case errors.As(err, &spent):
						return
					case err != nil:
						t.Errorf("a request that is not refused for its cap: %v", err)
						return
					case n%5 == 0:
						if err := m.Settle(t.Context(), r, 1); err != nil {
							t.Error(err)
						}
					default:
						kept.Add(1)
						if err := m.Settle(t.Context(), r, 0); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
	clients.Wait()
}

// startStoppableMeter starts a meter and returns the function that ends it in good order.
func startStoppableMeter(t *testing.T, log, core eventstore.Store, quotas usage.Quotas) (*usage.Meter, func()) {
	t.Helper()
	m := usage.New(log, newCodec(), quotas, keptTerms, newLimiter(), clock.New(clock.Options{}), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		m.Run(ctx, core, eventstore.Checkpoint{})
	})
	end := sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(end)
	return m, end
}
