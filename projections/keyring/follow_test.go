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

func opened(id string) event.AccountOpened {
	return event.AccountOpened{Account: id, Plan: plan.Growth, Quota: 500_000, Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}}
}

func hash(s string) token.Hash { return token.HashOf(s) }

func issueSecret(name string) event.SecretKeyIssued {
	h := hash(name)
	return event.SecretKeyIssued{Key: name, Hash: h[:], Hint: "ld_sk_…" + name}
}

func revoke(name string) event.KeyRevoked {
	h := hash(name)
	return event.KeyRevoked{Key: name, Hash: h[:]}
}

// run starts a ring that ends with the test, and gives a way to end it before.
func run(t *testing.T, l eventstore.Store, file string) (*Ring, func()) {
	t.Helper()
	r := New(l, time.Now, file, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var g sync.WaitGroup
	g.Go(func() { r.Run(ctx) })
	end := func() { cancel(); g.Wait() }
	t.Cleanup(end)
	return r, end
}

func has(r *Ring, name string) bool {
	_, ok := r.Find(hash(name), time.Now())
	return ok
}

func fresh(r *Ring) bool { return r.Fresh(time.Now()) }

// bubble runs a test in time of its own, in which waiting costs nothing.
func bubble(t *testing.T, f func(*testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

func TestAKeyWorksFromItsIssueToItsRevocation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		r, _ := run(t, l, "")
		at := l.add("account-a", time.Now(), opened("a"), issueSecret("k"))
		if err := r.Wait(t.Context(), at); err != nil || !has(r, "k") {
			t.Fatalf("issued: found %v, error %v", has(r, "k"), err)
		}
		at = l.add("account-a", time.Now(), revoke("k"))
		if err := r.Wait(t.Context(), at); err != nil || has(r, "k") {
			t.Errorf("revoked: found %v, error %v", has(r, "k"), err)
		}
	})
}

func TestWithASilentSubscriptionTheLooksBringARevocationWithinTheirInterval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.mute = true
		l.add("account-a", time.Now(), opened("a"), issueSecret("k"))
		r, _ := run(t, l, "")
		until(t, "the key is known", func() bool { return has(r, "k") && fresh(r) })
		at, begun := l.add("account-a", time.Now(), revoke("k")), time.Now()
		if err := r.Wait(t.Context(), at); err != nil || has(r, "k") {
			t.Fatalf("found %v, error %v", has(r, "k"), err)
		}
		if took := time.Since(begun); took > every {
			t.Errorf("the revocation took %v, want at most %v", took, every)
		}
	})
}

func TestARingWhoseLogIsAwayGoesStaleWithinASecondAndComesBack(t *testing.T) {
	for name, away := range map[string]func(*ledger){
		"unavailable": func(l *ledger) { l.away = eventstore.ErrUnavailable },
		"hanging":     func(l *ledger) { l.hangs = true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLedger()
				l.add("account-a", time.Now(), opened("a"), issueSecret("k"))
				r, _ := run(t, l, "")
				until(t, "the ring is fresh", func() bool { return fresh(r) })
				l.set(away)
				gone := time.Now()
				until(t, "the ring is stale", func() bool { return !fresh(r) })
				if took := time.Since(gone); took > Staleness {
					t.Errorf("stale after %v, want at most %v", took, Staleness)
				}
				time.Sleep(time.Minute)
				if st := r.Status(time.Now()); st.Fresh || st.Reason == "" {
					t.Errorf("status %+v, want a reason", st)
				}
				l.add("account-a", time.Now(), revoke("k"))
				l.set(func(l *ledger) { l.away, l.hangs = nil, false })
				back := time.Now()
				until(t, "the ring is fresh", func() bool { return fresh(r) })
				if took := time.Since(back); took > every+10*time.Millisecond {
					t.Errorf("back after %v, want at most %v", took, every)
				}
				if has(r, "k") {
					t.Error("fresh, but without the revocation made meanwhile")
				}
			})
		})
	}
}

func TestLooksThatHangOrTakeLongKeepNoRingFromBeingFresh(t *testing.T) {
	for name, trouble := range map[string]func(*ledger){
		"three of four hang": func(l *ledger) { l.hangEvery = 4; l.mute = true },
		"all take long":      func(l *ledger) { l.slow = 700 * time.Millisecond; l.mute = true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLedger()
				l.add("account-a", time.Now(), opened("a"), issueSecret("k"))
				r, _ := run(t, l, "")
				until(t, "the ring is fresh", func() bool { return fresh(r) })
				l.set(trouble)
				stale := 0
				for range 60_000 {
					time.Sleep(time.Millisecond)
					if !fresh(r) {
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
		l := newLedger()
		l.add("account-a", time.Now(), opened("a"), issueSecret("k"))
		r, _ := run(t, l, "")
		until(t, "the ring is fresh", func() bool { return fresh(r) })
		l.set(func(l *ledger) { l.put("account-a", time.Now(), "account.flown.v1", []byte("{}")) })
		l.add("account-a", time.Now(), revoke("k"))
		time.Sleep(time.Minute)
		st := r.Status(time.Now())
		if st.Fresh || !strings.Contains(st.Reason, "account.flown.v1") || st.Position != 20 {
			t.Errorf("status %+v, want stopped at 20 by account.flown.v1", st)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, _ := run(t, newLedger(), "")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := r.Wait(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		if len(r.waits) != 0 {
			t.Errorf("%d waits left behind", len(r.waits))
		}
	})
}

func TestWaitReturnsForAPositionWithNothingForTheRing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		r, _ := run(t, l, "")
		at := l.add("locations-a", time.Now(), event.AccountClosed{})
		if err := r.Wait(t.Context(), at); err != nil {
			t.Error(err)
		}
		if err := r.Wait(t.Context(), at); err != nil {
			t.Error(err)
		}
	})
}

func TestTheStatusTellsWhatIsInAndWhyNot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.hangs = true
		r, _ := run(t, l, "")
		if st := r.Status(time.Now()); st.Fresh || st.Reason == "" || !st.Looked.IsZero() {
			t.Errorf("before the first look: %+v", st)
		}
		at := l.add("account-a", time.Now(), opened("a"), issueSecret("k"), issueSecret("j"), revoke("j"))
		l.set(func(l *ledger) { l.hangs = false })
		until(t, "the ring is fresh", func() bool { return fresh(r) })
		st := r.Status(time.Now())
		if want := (Status{Fresh: true, Position: at, Looked: st.Looked, Keys: 1}); st != want || time.Since(st.Looked) > Staleness {
			t.Errorf("got %+v, want %+v", st, want)
		}
	})
}
