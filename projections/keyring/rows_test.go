package keyring

import (
	"fmt"
	"testing"
	"time"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

func TestRevokedKeysLeaveTheirPlaceToOthers(t *testing.T) {
	t.Parallel()
	l := newLedger()
	r := New(nil, time.Now, "", nil)
	l.add("account-a", start, opened("a"))
	for i := range 20_000 {
		l.add("account-a", start, issueSecret(fmt.Sprint(i)), revoke(fmt.Sprint(i-100)))
	}
	feed(t, r, l.events, l)
	s := r.state.Load()
	if s.byHash.live != 100 || s.keys.rows > 110 || len(*s.byHash.slots.Load()) > 1024 {
		t.Errorf("%d keys in %d rows and %d slots", s.byHash.live, s.keys.rows, len(*s.byHash.slots.Load()))
	}
	text := 0
	for _, p := range s.keys.freeze().pages {
		text += len(p.texts)
	}
	if text > 100*32 {
		t.Errorf("%d bytes of text for 100 keys", text)
	}
}

func TestThoseWhoAskWhileTheRingChangesGetAWholeAnswer(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.add("account-a", start, opened("a"), issueSecret("stays"))
	r := folded(t, l.events, l)
	done := make(chan struct{})
	failed := make(chan string, 4)
	for range cap(failed) {
		go func() { failed <- ask(r, done) }()
	}
	for round := range 8 {
		from := len(l.events)
		for i := range 300 {
			l.add("account-a", start, issueSecret(fmt.Sprint(i)), event.PlanChanged{To: plan.Growth, Quota: int64(round)})
		}
		for i := range 300 {
			l.add("account-a", start, revoke(fmt.Sprint(i)))
		}
		feed(t, r, l.events[from:], l)
		r.freeze()
	}
	close(done)
	for range cap(failed) {
		if what := <-failed; what != "" {
			t.Error(what)
		}
	}
}

// ask asks for keys that come and go and for one that stays, and says what was wrong with an answer.
func ask(r *Ring, done chan struct{}) string {
	names := make([]string, 300)
	hashes := make([]token.Hash, len(names))
	for i := range names {
		names[i] = fmt.Sprint(i)
		hashes[i] = hash(names[i])
	}
	stays := hash("stays")
	for i := 0; ; i = (i + 1) % len(names) {
		select {
		case <-done:
			return ""
		default:
		}
		if g, ok := r.Find(hashes[i], start); ok && (g.Key != names[i] || g.Hint != "ld_sk_…"+names[i] || g.Account != "a") {
			return fmt.Sprintf("asked for %s, got %+v", names[i], g)
		}
		if g, ok := r.Find(stays, start); !ok || g.Key != "stays" || g.Plan != plan.Growth {
			return fmt.Sprintf("asked for stays, got %v, %+v", ok, g)
		}
	}
}
