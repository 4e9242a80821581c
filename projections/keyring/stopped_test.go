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

// damage appends an event that cannot be used.
func damage(t *testing.T, j *journal.Journal, stream, kind, data string) (eventstore.Revision, eventstore.Position) {
	t.Helper()
	done, err := j.Append(t.Context(), stream, eventstore.Any, []eventstore.Proposed{{ID: uuid.New(), Type: kind, Data: []byte(data), Metadata: []byte(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
	return done.Revision, done.Position
}

func voids(at eventstore.Revision) event.EventVoided { return event.EventVoided{Revision: int64(at)} }

// stands is how a key stands: whether it is found, and whether its account is stopped.
func stands(r *Ring, name string) (found, stopped bool) {
	g, ok := r.Find(hash(name), time.Now())
	return ok, g.Stopped
}

// TestUnusableEventStopsTheKeysOfItsAccountAlone, over restarts, until a correction names it.
func TestUnusableEventStopsTheKeysOfItsAccountAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ring")
	j, say := book(t)
	sub := opened("sub")
	sub.Agency = "a"
	say("account-a", opened("a"), event.AgencyActivated{}, issueSecret("ka"))
	say("account-sub", sub, issueSecret("ksub"))
	say("account-b", opened("b"), issueSecret("kb"))
	at, _ := damage(t, j, "account-a", "account.key-revoked.v1", `[`)
	token, _ := damage(t, j, "token-t", "token.revoked.v1", `{"token":"t","role":"operator","hash":"AAAA"}`)
	say("token-t", event.TokenIssued{Token: "t", Role: "operator", Hash: hashBytes("t")})
	end := say("account-b", issueSecret("kb2"))
	for range 2 {
		r, stop := run(t, j, file)
		await(t, r, end)
		until(t, "the ring is fresh", func() bool { return fresh(r) })
		for name, want := range map[string]bool{"ka": true, "ksub": true, "kb": false, "kb2": false} {
			if found, stopped := stands(r, name); !found || stopped != want {
				t.Errorf("%s: found %v, stopped %v, want %v", name, found, stopped, want)
			}
		}
		if _, ok := r.FindPass(hash("t")); ok {
			t.Error("a token that may be revoked lets in")
		}
		stop()
	}
	r, _ := run(t, j, file)
	say("token-t", event.TokenEventVoided{EventVoided: voids(token)})
	await(t, r, say("account-a", event.AccountEventVoided{EventVoided: voids(at)}, issueSecret("ka2")))
	for _, name := range []string{"ka", "ka2", "ksub"} {
		if found, stopped := stands(r, name); !found || stopped {
			t.Errorf("%s: found %v, stopped %v after the correction", name, found, stopped)
		}
	}
	if _, ok := r.FindPass(hash("t")); !ok {
		t.Error("the token is refused after the correction")
	}
}

func hashBytes(name string) []byte {
	h := hash(name)
	return h[:]
}

func TestCorrectionOfAnEventThatWasFoldedTakesItBack(t *testing.T) {
	t.Parallel()
	j, say := book(t)
	say("account-a", opened("a"), issueSecret("k"))
	r, _ := run(t, j, "")
	await(t, r, say("account-a", revoke("k")))
	if has(r, "k") {
		t.Fatal("revoked and found")
	}
	say("account-a", event.AccountEventVoided{EventVoided: voids(2)})
	until(t, "the key works again", func() bool { return fresh(r) && has(r, "k") })
	fromZero, _ := run(t, j, "")
	until(t, "the key works on an instance that starts", func() bool { return fresh(fromZero) && has(fromZero, "k") })
}

// TestALookThatBeginsAfterACorrectionDoesNotMakeTheRingFreshBeforeItIsFoldedAgain: the ring's next turn folds it.
func TestALookThatBeginsAfterACorrectionDoesNotMakeTheRingFreshBeforeItIsFoldedAgain(t *testing.T) {
	t.Parallel()
	l := newLedger()
	r := New(l, time.Now, "", slog.New(slog.DiscardHandler))
	l.add("account-a", time.Now(), opened("a"), issueSecret("k"))
	r.look(t.Context())
	if !fresh(r) || !has(r, "k") {
		t.Fatal("the ring does not have the key")
	}
	l.add("account-a", time.Now(), event.AccountEventVoided{EventVoided: voids(0)})
	for range 2 { // the first finds the correction
		r.look(t.Context())
		if standing, _ := r.standing(); standing || fresh(r) {
			t.Fatalf("standing %v, fresh %v with an event that a correction names", standing, fresh(r))
		}
	}
}
