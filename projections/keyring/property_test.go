package keyring

import (
	"bytes"
	"os"
	"reflect"
	"testing"
	"time"

	"lieudit/schemas/grant"
)

// terms is the plainest reading of the rules.
func (c *chance) terms(id string, at time.Time) (t grant.Terms, open bool) {
	a := c.accounts[id]
	t = grant.Terms{Plan: a.plan.At(at), Quota: a.terms.At(at).quota, Anchor: a.anchor, Agency: a.agency.At(at)}
	if t.Agency == "" {
		return t, !a.closed
	}
	agency := c.accounts[t.Agency]
	t.Plan, t.Anchor = agency.plan.At(at), agency.anchor
	return t, !a.closed && !agency.closed
}

// compare asks a ring everything, at an instant.
func (c *chance) compare(t *testing.T, r *Ring, at time.Time) {
	t.Helper()
	for key, g := range c.keys {
		want, wantOK := *g, false
		want.Terms, wantOK = c.terms(g.Account, at)
		got, ok := r.Find(hash(key), at)
		if ok != wantOK || ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v, %v", key, got, ok, want, wantOK)
		}
	}
	for _, id := range c.names {
		want, wantOK := c.terms(id, at)
		if got, ok := r.Terms(id, at); ok != wantOK || ok && got != want {
			t.Errorf("%s: got %+v, %v, want %+v, %v", id, got, ok, want, wantOK)
		}
	}
	for id, want := range c.passes {
		wantOK := want.Account == "" || !c.accounts[want.Account].closed
		if got, ok := r.FindPass(hash(id)); ok != wantOK || ok && got != *want {
			t.Errorf("%s: got %+v, %v, want %+v, %v", id, got, ok, *want, wantOK)
		}
	}
}

// twin goes on from a snapshot that another ring took somewhere on the way, and is told some of it twice.
func (c *chance) twin(t *testing.T) *Ring {
	t.Helper()
	at := c.IntN(len(c.events) + 1)
	var file bytes.Buffer
	if err := folded(t, c.events[:at], c.ledger).freeze().encode(&file); err != nil {
		t.Fatal(err)
	}
	s, mark, err := decode(file.Bytes())
	if err != nil || mark != c.mark(at) {
		t.Fatalf("mark %v, error %v, want %v", mark, err, c.mark(at))
	}
	r := New(nil, time.Now, "", nil)
	r.begin(s, mark)
	for at < len(c.events) {
		from, to := c.IntN(at+1), min(len(c.events), at+1+c.IntN(20))
		feed(t, r, c.events[from:to], c.ledger)
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
		c := newChance(uint64(seed))
		for range 50 + c.IntN(400) {
			c.step()
		}
		whole, twin := folded(t, c.events, c.ledger), c.twin(t)
		for _, wait := range []time.Duration{0, 50 * time.Hour, 1000 * time.Hour} {
			c.compare(t, whole, c.now.Add(wait))
			c.compare(t, twin, c.now.Add(wait))
		}
		if a, b := whole.state.Load().byHash.live, len(c.keys)+len(c.passes); a != b {
			t.Errorf("%d credentials, want %d", a, b)
		}
		if t.Failed() {
			t.Fatalf("seed %d, %d events", seed, len(c.events))
		}
	}
}
