package keyring

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWhoWaitsForAFreshRingIsReleasedByTheFirstLookAfterTheSilence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.add("account-a", time.Now(), opened("a"), issueSecret("k"))
		r, _ := run(t, l, "")
		if err := r.AwaitFresh(t.Context()); err != nil || !fresh(r) {
			t.Fatalf("at the start: %v", err)
		}
		l.set(func(l *ledger) { l.hangs = true })
		until(t, "the ring is stale", func() bool { return !fresh(r) })
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.AwaitFresh(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("in the silence: %v, want the context's error", err)
		}
		l.add("account-a", time.Now(), revoke("k"))
		time.AfterFunc(time.Second, func() { l.set(func(l *ledger) { l.hangs = false }) })
		begun := time.Now()
		if err := r.AwaitFresh(t.Context()); err != nil || has(r, "k") {
			t.Errorf("after it: %v, the revoked key is there: %v", err, has(r, "k"))
		}
		if took := time.Since(begun) - time.Second; took > every+10*time.Millisecond {
			t.Errorf("released %v after the silence, want at most %v", took, every)
		}
		if got := time.Until(r.FreshUntil()); got <= 0 || got > Staleness {
			t.Errorf("fresh for %v, want at most %v", got, Staleness)
		}
	})
}
