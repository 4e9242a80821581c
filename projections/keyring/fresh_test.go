package keyring

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAwaitFreshReturnsAfterTheFirstSuccessfulPoll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newFakeLog()
		l.add("account-a", time.Now(), accountOpened("a"), secretIssued("k"))
		r, _ := startRing(t, l, "")
		if err := r.AwaitFresh(t.Context()); err != nil || !isFresh(r) {
			t.Fatalf("at the start: %v", err)
		}
		l.configure(func(l *fakeLog) { l.isHanging = true })
		until(t, "the ring is stale", func() bool { return !isFresh(r) })
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.AwaitFresh(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("in the silence: %v, want the context's error", err)
		}
		l.add("account-a", time.Now(), keyRevoked("k"))
		time.AfterFunc(time.Second, func() { l.configure(func(l *fakeLog) { l.isHanging = false }) })
		begun := time.Now()
		if err := r.AwaitFresh(t.Context()); err != nil || hasKey(r, "k") {
			t.Errorf("after it: %v, the revoked key is there: %v", err, hasKey(r, "k"))
		}
		if took := time.Since(begun) - time.Second; took > pollInterval+10*time.Millisecond {
			t.Errorf("released %v after the silence, want at most %v", took, pollInterval)
		}
		if got := time.Until(r.FreshUntil()); got <= 0 || got > Staleness {
			t.Errorf("fresh for %v, want at most %v", got, Staleness)
		}
	})
}
