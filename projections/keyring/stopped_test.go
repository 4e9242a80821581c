package keyring

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/event"
)

// appendUnusable appends an event that cannot be used.
func appendUnusable(t *testing.T, j *journal.Journal, stream, kind, data string) (eventstore.Revision, eventstore.Position) {
	t.Helper()
	done, err := j.Append(t.Context(), stream, eventstore.Any, []eventstore.ProposedEvent{{ID: uuid.New(), Type: kind, Data: []byte(data), Metadata: []byte(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
	return done.Revision, done.Position
}

func eventVoided(at eventstore.Revision) event.EventVoided {
	return event.EventVoided{Revision: int64(at)}
}

// keyState reports whether a key is found, and whether its account is stopped.
func keyState(r *Ring, name string) (found, stopped bool) {
	g, ok := r.FindKey(hash(name), time.Now())
	return ok, g.Stopped
}

// TestUnusableEventStopsTheKeysOfItsAccountAlone: even across restarts, until a correction names the event.
func TestUnusableEventStopsTheKeysOfItsAccountAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ring")
	j, appendEvents := openJournal(t)
	sub := accountOpened("sub")
	sub.Agency = "a"
	appendEvents("account-a", accountOpened("a"), event.AgencyActivated{}, secretIssued("ka"))
	appendEvents("account-sub", sub, secretIssued("ksub"))
	appendEvents("account-b", accountOpened("b"), secretIssued("kb"))
	at, _ := appendUnusable(t, j, "account-a", "account.key-revoked.v1", `[`)
	token, _ := appendUnusable(t, j, "token-t", "token.revoked.v1", `{"token":"t","role":"operator","hash":"AAAA"}`)
	appendEvents("token-t", event.TokenIssued{Token: "t", Role: "operator", Hash: hashBytes("t")})
	end := appendEvents("account-b", secretIssued("kb2"))
	for range 2 {
		r, stop := startRing(t, j, file)
		awaitPosition(t, r, end)
		until(t, "the ring is fresh", func() bool { return isFresh(r) })
		for name, want := range map[string]bool{"ka": true, "ksub": true, "kb": false, "kb2": false} {
			if found, stopped := keyState(r, name); !found || stopped != want {
				t.Errorf("%s: found %v, stopped %v, want %v", name, found, stopped, want)
			}
		}
		if found, ok := r.FindToken(hash("t")); !ok || !found.Stopped {
			t.Errorf("a token that may be revoked: found %v, stopped %v", ok, found.Stopped)
		}
		stop()
	}
	r, _ := startRing(t, j, file)
	appendEvents("token-t", event.TokenEventVoided{EventVoided: eventVoided(token)})
	awaitPosition(t, r, appendEvents("account-a", event.AccountEventVoided{EventVoided: eventVoided(at)}, secretIssued("ka2")))
	for _, name := range []string{"ka", "ka2", "ksub"} {
		if found, stopped := keyState(r, name); !found || stopped {
			t.Errorf("%s: found %v, stopped %v after the correction", name, found, stopped)
		}
	}
	if found, ok := r.FindToken(hash("t")); !ok || found.Stopped {
		t.Error("the token is refused after the correction")
	}
}

func hashBytes(name string) []byte {
	h := hash(name)
	return h[:]
}

func TestCorrectionUndoesAnEventThatWasFolded(t *testing.T) {
	t.Parallel()
	j, appendEvents := openJournal(t)
	appendEvents("account-a", accountOpened("a"), secretIssued("k"))
	r, _ := startRing(t, j, "")
	awaitPosition(t, r, appendEvents("account-a", keyRevoked("k")))
	if hasKey(r, "k") {
		t.Fatal("revoked and found")
	}
	appendEvents("account-a", event.AccountEventVoided{EventVoided: eventVoided(2)})
	until(t, "the key works again", func() bool { return isFresh(r) && hasKey(r, "k") })
	fromZero, _ := startRing(t, j, "")
	until(t, "the key works on an instance that starts", func() bool { return isFresh(fromZero) && hasKey(fromZero, "k") })
}

// TestPollAfterACorrectionDoesNotMakeTheRingFreshBeforeItIsRefolded: the next step of the ring folds the log again.
func TestPollAfterACorrectionDoesNotMakeTheRingFreshBeforeItIsRefolded(t *testing.T) {
	t.Parallel()
	for _, hadOtherLog := range []bool{false, true} {
		l := newFakeLog()
		r := New(l, time.Now, "", slog.New(slog.DiscardHandler))
		l.add("account-a", time.Now(), accountOpened("a"), secretIssued("k"))
		r.pollLog(t.Context())
		if hadOtherLog { // for a moment: the next poll finds the right one
			r.recordReadFailure(&eventstore.DivergedError{IsOtherLog: true}, r.Checkpoint())
			time.Sleep(time.Millisecond) // the poll begins later by the clock
			r.pollLog(t.Context())
		}
		if !isFresh(r) || !hasKey(r, "k") {
			t.Fatalf("the ring does not have the key; another log before: %v", hadOtherLog)
		}
		l.add("account-a", time.Now(), event.AccountEventVoided{EventVoided: eventVoided(0)})
		for range 2 { // the first poll finds the correction
			r.pollLog(t.Context())
			if isFollowing, _ := r.followState(); isFollowing || isFresh(r) {
				t.Fatalf("following %v, fresh %v with an event that a correction names; another log before: %v", isFollowing, isFresh(r), hadOtherLog)
			}
		}
	}
}
