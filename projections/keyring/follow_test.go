package keyring

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/journal"
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

// startRing starts a ring that ends with the test, and returns a function that ends it sooner.
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

// bubble runs a test in a synctest bubble, in which waiting takes no time.
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

func TestPollsReadARevocationWhenTheSubscriptionDeliversNothing(t *testing.T) {
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

func TestRingWhoseLogIsUnavailableIsStaleWithinASecondAndRecovers(t *testing.T) {
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

func TestUnknownEventTypeStopsTheRing(t *testing.T) {
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

// noVault has no keys: neither the ring nor these events need any.
type noVault struct{ eventstore.Vault }

// openJournal opens a journal, and returns it with a function that appends to it.
func openJournal(t *testing.T) (*journal.Journal, func(stream string, events ...event.Event) eventstore.Position) {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	codec := eventstore.NewCodec(noVault{})
	return j, func(stream string, events ...event.Event) eventstore.Position {
		t.Helper()
		batch, err := codec.Encode(t.Context(), stream, uuid.New(), eventstore.Metadata{}, events)
		if err != nil {
			t.Fatal(err)
		}
		at, err := j.Append(t.Context(), stream, eventstore.Any, batch)
		if err != nil {
			t.Fatal(err)
		}
		return at.Position
	}
}

func awaitPosition(t *testing.T, r *Ring, at eventstore.Position) {
	t.Helper()
	if err := r.AwaitPosition(deadlinetest.Context(t, deadlinetest.DefaultLimit), at); err != nil {
		t.Fatal(err)
	}
}

func TestTwoRingsOfOneJournalSeeEveryRevocationAtOnce(t *testing.T) {
	t.Parallel()
	j, appendEvents := openJournal(t)
	one, _ := startRing(t, j, "")
	two, _ := startRing(t, j, "")
	appendEvents("account-a", accountOpened("a"))
	for range 20 {
		at := appendEvents("account-a", secretIssued("k"))
		awaitPosition(t, one, at)
		awaitPosition(t, two, at)
		if !hasKey(one, "k") || !hasKey(two, "k") {
			t.Fatal("issued and not found")
		}
		at = appendEvents("account-a", keyRevoked("k"))
		awaitPosition(t, one, at)
		awaitPosition(t, two, at)
		if hasKey(one, "k") || hasKey(two, "k") {
			t.Fatal("revoked and found")
		}
	}
}

func TestARingOfAJournalGoesOnFromItsSnapshotAndLeavesThatOfAnother(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ring")
	j, appendEvents := openJournal(t)
	appendEvents("account-a", accountOpened("a"), secretIssued("k"))
	r, end := startRing(t, j, file)
	until(t, "the ring is fresh", func() bool { return isFresh(r) })
	end()
	at := appendEvents("account-a", keyRevoked("k"), secretIssued("j"))
	r, end = startRing(t, j, file)
	awaitPosition(t, r, at)
	if hasKey(r, "k") || !hasKey(r, "j") {
		t.Errorf("revoked %v, issued %v", hasKey(r, "k"), hasKey(r, "j"))
	}
	end()
	other, appendEvents := openJournal(t)
	appendEvents("account-b", accountOpened("b"), secretIssued("i"))
	r, _ = startRing(t, other, file)
	until(t, "the ring is fresh", func() bool { return isFresh(r) })
	if hasKey(r, "j") || !hasKey(r, "i") {
		t.Errorf("of the other log %v, of this one %v", hasKey(r, "j"), hasKey(r, "i"))
	}
}

func TestARingIsStaleASecondAfterItsJournalIsClosed(t *testing.T) {
	t.Parallel()
	j, appendEvents := openJournal(t)
	appendEvents("account-a", accountOpened("a"), secretIssued("k"))
	r, _ := startRing(t, j, "")
	until(t, "the ring is fresh", func() bool { return isFresh(r) })
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	closed := time.Now()
	until(t, "the ring says why it is stale", func() bool { return r.Status(time.Now()).Reason != "" })
	if r.IsFresh(closed.Add(Staleness)) {
		t.Errorf("fresh a second after: %+v", r.Status(closed.Add(Staleness)))
	}
}
