package keyring

import (
	"fmt"
	"testing"
	"time"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

func TestRevokedKeysFreeTheirRows(t *testing.T) {
	t.Parallel()
	l := newFakeLog()
	r := New(nil, time.Now, "", nil)
	l.add("account-a", startTime, accountOpened("a"))
	for i := range 20_000 {
		l.add("account-a", startTime, secretIssued(fmt.Sprint(i)), keyRevoked(fmt.Sprint(i-100)))
	}
	feedEvents(t, r, l.events, l)
	s := r.state.Load()
	if s.byHash.live != 100 || s.keys.rows > 110 || len(*s.byHash.slots.Load()) > 1024 {
		t.Errorf("%d keys in %d rows and %d slots", s.byHash.live, s.keys.rows, len(*s.byHash.slots.Load()))
	}
	text := 0
	for _, p := range s.keys.snapshot().pages {
		text += len(p.texts)
	}
	if text > 100*32 {
		t.Errorf("%d bytes of text for 100 keys", text)
	}
}

func TestConcurrentFindsSeeConsistentKeys(t *testing.T) {
	t.Parallel()
	l := newFakeLog()
	l.add("account-a", startTime, accountOpened("a"), secretIssued("stays"))
	r := ringFrom(t, l.events, l)
	done := make(chan struct{})
	failed := make(chan string, 4)
	for range cap(failed) {
		go func() { failed <- queryUntilDone(r, done) }()
	}
	for round := range 8 {
		from := len(l.events)
		for i := range 300 {
			l.add("account-a", startTime, secretIssued(fmt.Sprint(i)), event.PlanChanged{To: plan.Growth, Quota: int64(round)})
		}
		for i := range 300 {
			l.add("account-a", startTime, keyRevoked(fmt.Sprint(i)))
		}
		feedEvents(t, r, l.events[from:], l)
		r.takeSnapshot()
	}
	close(done)
	for range cap(failed) {
		if what := <-failed; what != "" {
			t.Error(what)
		}
	}
}

// queryUntilDone asks for keys that come and go and for one that stays, and says what was wrong with an answer.
func queryUntilDone(r *Ring, done chan struct{}) string {
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
		if g, ok := r.FindKey(hashes[i], startTime); ok && (g.KeyID != names[i] || g.Hint != "ld_sk_…"+names[i] || g.Account != "a") {
			return fmt.Sprintf("asked for %s, got %+v", names[i], g)
		}
		if g, ok := r.FindKey(stays, startTime); !ok || g.KeyID != "stays" || g.Plan != plan.Growth {
			return fmt.Sprintf("asked for stays, got %v, %+v", ok, g)
		}
	}
}
