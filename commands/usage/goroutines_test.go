package usage_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/clock/clocktest"
	"lieudit/schemas/event"
)

// runUntilStopped runs a meter; the function that it returns ends it and waits for its end.
func runUntilStopped(t *testing.T, log eventstore.Store) (m *usage.Meter, stop func()) {
	t.Helper()
	m = usage.New(log, newCodec(), &fakeQuotas{caps: map[string]int64{"a": 1 << 40, "b": 1000}}, keptTerms, newLimiter(), clocktest.Follow(time.Now), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx, log, eventstore.Checkpoint{}) })
	return m, func() {
		cancel()
		running.Wait()
	}
}

func TestARequestAfterTheMetersEndIsNotCounted(t *testing.T) {
	t.Parallel()
	m, stop := runUntilStopped(t, openLog(t))
	counted, err := m.Charge(t.Context(), newWait("a"), grantOf("a", 1000), "/me", 1)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := m.Charge(t.Context(), newWait("a"), grantOf("a", 1000), "/me", 1); !errors.Is(err, usage.ErrUnavailable) {
		t.Errorf("a request of an open period: %v, want %v", err, usage.ErrUnavailable)
	}
	if _, err := m.Charge(t.Context(), newWait("b"), grantOf("b", 1000), "/me", 1); !errors.Is(err, usage.ErrUnavailable) {
		t.Errorf("a request that opens a period: %v, want %v", err, usage.ErrUnavailable)
	}
	if err := m.Settle(t.Context(), counted, 1); !errors.Is(err, usage.ErrUnavailable) {
		t.Errorf("a refund: %v, want %v", err, usage.ErrUnavailable)
	}
}

// Requests that outlive the time that a stopping instance gives them may come while the meter waits for its last batch.
func TestRequestsMayComeWhileTheMeterEnds(t *testing.T) {
	t.Parallel()
	for range 20 {
		m, stop := runUntilStopped(t, openLog(t))
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				for range 50 {
					c, err := m.Charge(t.Context(), newWait("a"), grantOf("a", 1<<40), "/me", 2)
					if err == nil {
						err = m.Settle(t.Context(), c, 1)
					}
					if err != nil && !errors.Is(err, usage.ErrUnavailable) {
						t.Error(err)
					}
				}
			})
		}
		stop()
		clients.Wait()
	}
}

func TestAnInstanceThatCutRequestsDoesNotEndInGoodOrder(t *testing.T) {
	t.Parallel()
	for _, hasCut := range []bool{false, true} {
		log := openLog(t)
		m, stop := runUntilStopped(t, log)
		if _, err := m.Charge(t.Context(), newWait("a"), grantOf("a", 1000), "/me", 1); err != nil {
			t.Fatal(err)
		}
		if hasCut {
			m.NoteCutRequests()
		}
		stop()
		hasEnded := false
		readDecoded(t, log, "incarnation-"+m.InstanceID(), func(e event.Event, _ eventstore.RecordedEvent) {
			_, isEnd := e.(event.InstanceEnded)
			hasEnded = hasEnded || isEnd
		})
		if hasEnded == hasCut {
			t.Errorf("requests were cut: %v; the log has the instance's end: %v", hasCut, hasEnded)
		}
	}
}
