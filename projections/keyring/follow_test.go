package keyring

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
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

func TestARestartGoesOnFromTheSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, file := newLedger(), filepath.Join(t.TempDir(), "ring")
		l.add("account-a", time.Now(), opened("a"), issueSecret("k"), issueSecret("j"), revoke("j"))
		r, end := run(t, l, file)
		until(t, "the key is known", func() bool { return fresh(r) })
		end()
		l.set(func(l *ledger) { l.away = eventstore.ErrUnavailable })
		again, _ := run(t, l, file)
		until(t, "the key is known", func() bool { return has(again, "k") })
		if fresh(again) || has(again, "j") {
			t.Errorf("fresh %v, revoked key found %v, want neither", fresh(again), has(again, "j"))
		}
		l.set(func(l *ledger) { l.away = nil })
		l.add("account-a", time.Now(), revoke("k"))
		until(t, "the ring is fresh", func() bool { return fresh(again) })
		if has(again, "k") {
			t.Error("revoked key found")
		}
	})
}

func TestALogSwappedUnderneathStopsTheRingUntilTheRightOneIsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLedger()
		l.add("account-a", time.Now(), opened("a"), issueSecret("k"))
		r, _ := run(t, l, "")
		until(t, "the ring is fresh", func() bool { return fresh(r) })
		all := l.events
		l.set(func(l *ledger) { l.events = slices.Clone(all[:1]) })
		until(t, "the ring is stopped", func() bool { return !fresh(r) })
		l.set(func(l *ledger) {
			l.put("account-a", time.Now(), "account.closed.v1", []byte("{}"))
			l.events[1].ID[0]++
		})
		time.Sleep(time.Minute)
		if st := r.Status(time.Now()); st.Fresh || st.Reason == "" || st.Position != 20 {
			t.Errorf("status %+v, want stopped at 20 with a reason", st)
		}
		l.set(func(l *ledger) { l.events = all })
		until(t, "the ring is fresh", func() bool { return fresh(r) })
		if !has(r, "k") {
			t.Error("the key is gone")
		}
	})
}

func TestASnapshotOfAnotherLogIsNotUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, file := newLedger(), filepath.Join(t.TempDir(), "ring")
		l.add("account-a", time.Now(), opened("a"), issueSecret("k"))
		r, end := run(t, l, file)
		until(t, "the ring is fresh", func() bool { return fresh(r) })
		end()
		other := newLedger()
		other.add("account-b", time.Now(), opened("b"), issueSecret("j"))
		again, _ := run(t, other, file)
		until(t, "the ring is fresh", func() bool { return fresh(again) })
		if has(again, "k") || !has(again, "j") {
			t.Errorf("old log's key %v, this log's key %v", has(again, "k"), has(again, "j"))
		}
	})
}
