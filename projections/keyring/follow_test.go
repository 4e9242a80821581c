package keyring

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

func accountOpened(id string) event.AccountOpened {
	return event.AccountOpened{Account: id, Plan: plan.Growth, Quota: 500_000, Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}}
}

func hash(s string) token.Hash { return token.HashOf(s) }

func secretIssued(name string) event.SecretKeyIssued {
	h := hash(name)
	return event.SecretKeyIssued{Key: name, Hash: h[:], Hint: "ld_sk_…" + name}
}

func keyRevoked(name string) event.KeyRevoked {
	h := hash(name)
	return event.KeyRevoked{Key: name, Hash: h[:]}
}

// startRing starts a ring that ends with the test, and gives a way to end it before.
func startRing(t *testing.T, l eventstore.Store, file string) (*Ring, func()) {
	t.Helper()
	r := New(l, time.Now, file, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var g sync.WaitGroup
	g.Go(func() { r.Run(ctx) })
	end := func() { cancel(); g.Wait() }
	t.Cleanup(end)
	return r, end
}

func hasKey(r *Ring, name string) bool {
	_, ok := r.FindKey(hash(name), time.Now())
	return ok
}

func isFresh(r *Ring) bool { return r.IsFresh(time.Now()) }

// bubble runs a test in time of its own, in which waiting costs nothing.
func bubble(t *testing.T, f func(*testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

func TestAKeyWorksFromItsIssueToItsRevocation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newFakeLog()
		r, _ := startRing(t, l, "")
		at := l.add("account-a", time.Now(), accountOpened("a"), secretIssued("k"))
		if err := r.AwaitPosition(t.Context(), at); err != nil || !hasKey(r, "k") {
			t.Fatalf("issued: found %v, error %v", hasKey(r, "k"), err)
		}
		at = l.add("account-a", time.Now(), keyRevoked("k"))
		if err := r.AwaitPosition(t.Context(), at); err != nil || hasKey(r, "k") {
			t.Errorf("revoked: found %v, error %v", hasKey(r, "k"), err)
		}
	})
}

func TestPollsBringARevocationWhenTheSubscriptionIsSilent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newFakeLog()
		l.isSubscriptionMute = true
		l.add("account-a", time.Now(), accountOpened("a"), secretIssued("k"))
		r, _ := startRing(t, l, "")
		until(t, "the key is known", func() bool { return hasKey(r, "k") && isFresh(r) })
		at, begun := l.add("account-a", time.Now(), keyRevoked("k")), time.Now()
		if err := r.AwaitPosition(t.Context(), at); err != nil || hasKey(r, "k") {
			t.Fatalf("found %v, error %v", hasKey(r, "k"), err)
		}
		if took := time.Since(begun); took > pollInterval {
			t.Errorf("the revocation took %v, want at most %v", took, pollInterval)
		}
	})
}

func TestARingWhoseLogIsAwayGoesStaleWithinASecondAndComesBack(t *testing.T) {
	for name, away := range map[string]func(*fakeLog){
		"unavailable": func(l *fakeLog) { l.readErr = eventstore.ErrUnavailable },
		"hanging":     func(l *fakeLog) { l.isHanging = true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newFakeLog()
				l.add("account-a", time.Now(), accountOpened("a"), secretIssued("k"))
				r, _ := startRing(t, l, "")
				until(t, "the ring is fresh", func() bool { return isFresh(r) })
				l.configure(away)
				gone := time.Now()
				until(t, "the ring is stale", func() bool { return !isFresh(r) })
				if took := time.Since(gone); took > Staleness {
					t.Errorf("stale after %v, want at most %v", took, Staleness)
				}
				time.Sleep(time.Minute)
				if st := r.Status(time.Now()); st.Fresh || st.Reason == "" {
					t.Errorf("status %+v, want a reason", st)
				}
				l.add("account-a", time.Now(), keyRevoked("k"))
				l.configure(func(l *fakeLog) { l.readErr, l.isHanging = nil, false })
				back := time.Now()
				until(t, "the ring is fresh", func() bool { return isFresh(r) })
				if took := time.Since(back); took > pollInterval+10*time.Millisecond {
					t.Errorf("back after %v, want at most %v", took, pollInterval)
				}
				if hasKey(r, "k") {
					t.Error("fresh, but without the revocation made meanwhile")
				}
			})
		})
	}
}

func TestSlowOrHangingPollsKeepTheRingFresh(t *testing.T) {
	for name, trouble := range map[string]func(*fakeLog){
		"three of four hang": func(l *fakeLog) { l.hangEvery = 4; l.isSubscriptionMute = true },
		"all take long":      func(l *fakeLog) { l.readDelay = 700 * time.Millisecond; l.isSubscriptionMute = true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newFakeLog()
				l.add("account-a", time.Now(), accountOpened("a"), secretIssued("k"))
				r, _ := startRing(t, l, "")
				until(t, "the ring is fresh", func() bool { return isFresh(r) })
				l.configure(trouble)
				stale := 0
				for range 60_000 {
					time.Sleep(time.Millisecond)
					if !isFresh(r) {
						stale++
					}
				}
				if limit := 60_000 / 4; stale > limit || name == "all take long" && stale > 0 {
					t.Errorf("stale for %d ms of a minute", stale)
				}
			})
		})
	}
}

func TestAnEventTheRingDoesNotKnowStopsIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newFakeLog()
		l.add("account-a", time.Now(), accountOpened("a"), secretIssued("k"))
		r, _ := startRing(t, l, "")
		until(t, "the ring is fresh", func() bool { return isFresh(r) })
		l.configure(func(l *fakeLog) { l.record("account-a", time.Now(), "account.flown.v1", []byte("{}")) })
		l.add("account-a", time.Now(), keyRevoked("k"))
		time.Sleep(time.Minute)
		st := r.Status(time.Now())
		if st.Fresh || !strings.Contains(st.Reason, "account.flown.v1") || st.Position != 20 {
			t.Errorf("status %+v, want stopped at 20 by account.flown.v1", st)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, _ := startRing(t, newFakeLog(), "")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := r.AwaitPosition(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		if len(r.waiters) != 0 {
			t.Errorf("%d waits left behind", len(r.waiters))
		}
	})
}

func TestWaitReturnsForAPositionWithNothingForTheRing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newFakeLog()
		r, _ := startRing(t, l, "")
		at := l.add("locations-a", time.Now(), event.AccountClosed{})
		if err := r.AwaitPosition(t.Context(), at); err != nil {
			t.Error(err)
		}
		if err := r.AwaitPosition(t.Context(), at); err != nil {
			t.Error(err)
		}
	})
}

func TestStatusSaysWhyTheRingIsStale(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newFakeLog()
		l.isHanging = true
		r, _ := startRing(t, l, "")
		if st := r.Status(time.Now()); st.Fresh || st.Reason == "" || !st.LastPollStart.IsZero() {
			t.Errorf("before the first look: %+v", st)
		}
		at := l.add("account-a", time.Now(), accountOpened("a"), secretIssued("k"), secretIssued("j"), keyRevoked("j"))
		l.configure(func(l *fakeLog) { l.isHanging = false })
		until(t, "the ring is fresh", func() bool { return isFresh(r) })
		st := r.Status(time.Now())
		if want := (Status{Fresh: true, Position: at, LastPollStart: st.LastPollStart, Keys: 1}); st != want || time.Since(st.LastPollStart) > Staleness {
			t.Errorf("got %+v, want %+v", st, want)
		}
	})
}
