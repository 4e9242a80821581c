package keyring

import (
	"bytes"
	"os"
	"reflect"
	"testing"
	"time"

	"lieudit/schemas/access"
)

// expectedTerms is the plainest reading of the rules.
func (c *randomHistory) expectedTerms(id string, at time.Time) (t access.Terms, open bool) {
	a := c.accounts[id]
	t = access.Terms{Plan: a.plan.At(at), Quota: a.terms.At(at).quota, Anchor: a.anchor, Agency: a.agency.At(at)}
	if t.Agency == "" {
		return t, !a.closed
	}
	agency := c.accounts[t.Agency]
	t.Plan, t.Anchor = agency.plan.At(at), agency.anchor
	return t, !a.closed && !agency.closed
}

// checkAnswers asks a ring everything, at an instant.
func (c *randomHistory) checkAnswers(t *testing.T, r *Ring, at time.Time) {
	t.Helper()
	for key, g := range c.keys {
		want, wantOK := *g, false
		want.Terms, wantOK = c.expectedTerms(g.Account, at)
		got, ok := r.FindKey(hash(key), at)
		if ok != wantOK || ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v, %v", key, got, ok, want, wantOK)
		}
	}
	for _, id := range c.names {
		want, wantOK := c.expectedTerms(id, at)
		if got, ok := r.Terms(id, at); ok != wantOK || ok && got != want {
			t.Errorf("%s: got %+v, %v, want %+v, %v", id, got, ok, want, wantOK)
		}
	}
	for id, want := range c.tokens {
		wantOK := want.Account == "" || !c.accounts[want.Account].closed
		if got, ok := r.FindToken(hash(id)); ok != wantOK || ok && got != *want {
			t.Errorf("%s: got %+v, %v, want %+v, %v", id, got, ok, *want, wantOK)
		}
	}
}

// ringFromSnapshot goes on from a snapshot that another ring took somewhere on the way, and is told some of it twice.
func (c *randomHistory) ringFromSnapshot(t *testing.T) *Ring {
	t.Helper()
	at := c.IntN(len(c.events) + 1)
	var file bytes.Buffer
	if err := ringFrom(t, c.events[:at], c.fakeLog).takeSnapshot().marshal(&file); err != nil {
		t.Fatal(err)
	}
	s, checkpoint, err := unmarshalSnapshot(file.Bytes())
	if err != nil || checkpoint != c.checkpointAt(at) {
		t.Fatalf("mark %v, error %v, want %v", checkpoint, err, c.checkpointAt(at))
	}
	r := New(nil, time.Now, "", nil)
	r.adoptState(s, checkpoint)
	for at < len(c.events) {
		from, to := c.IntN(at+1), min(len(c.events), at+1+c.IntN(20))
		feedEvents(t, r, c.events[from:to], c.fakeLog)
		at = to
	}
	return r
}

func TestAnyHistoryGivesTheSameAnswersFromZeroFromASnapshotAndByTheRules(t *testing.T) {
	t.Parallel()
	runs := 60
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		runs = 3000
	}
	for seed := range runs {
		c := newRandomHistory(uint64(seed))
		for range 50 + c.IntN(400) {
			c.appendRandom()
		}
		whole, twin := ringFrom(t, c.events, c.fakeLog), c.ringFromSnapshot(t)
		for _, wait := range []time.Duration{0, 50 * time.Hour, 1000 * time.Hour} {
			c.checkAnswers(t, whole, c.now.Add(wait))
			c.checkAnswers(t, twin, c.now.Add(wait))
		}
		if a, b := whole.state.Load().byHash.live, len(c.keys)+len(c.tokens); a != b {
			t.Errorf("%d credentials, want %d", a, b)
		}
		if t.Failed() {
			t.Fatalf("seed %d, %d events", seed, len(c.events))
		}
	}
}
