package usagefold_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

var (
	first = plan.Date{Year: 2026, Month: 11, Day: 21}
	next  = plan.Date{Year: 2026, Month: 12, Day: 21}
	noon  = first.Start().Add(12 * time.Hour)
)

func newTick(sequence int64, counts ...event.UsageCount) event.UsageTicked {
	return event.UsageTicked{InstanceID: "i", Sequence: sequence, Day: first, Counts: counts}
}

func newCount(account string, n int64) event.UsageCount {
	return event.UsageCount{Account: account, Key: "key-" + account, Endpoint: "GET /me", Requests: n}
}

// step is an event and the verdict that it must get.
type step struct {
	e    event.Event
	want usagefold.Verdict
}

func applySteps(t *testing.T, steps []step) *usagefold.PeriodUsage {
	t.Helper()
	f := usagefold.NewPeriodUsage()
	for i, s := range steps {
		if got := f.Apply(s.e, noon); got != s.want {
			t.Errorf("step %d, %T: verdict %d, want %d", i, s.e, got, s.want)
		}
	}
	return f
}

func TestEventsBeforeATickDecideWhetherItCounts(t *testing.T) {
	t.Parallel()
	opened := event.UsageOpened{Contract: "a", First: first, Next: next, Cap: 10}
	f := applySteps(t, []step{
		{newTick(1, newCount("a", 1)), usagefold.PeriodNotOpen},
		{opened, usagefold.Counted},
		{opened, usagefold.Duplicate},
		{newTick(2, newCount("a", 4)), usagefold.Counted},
		{newTick(2, newCount("a", 4)), usagefold.Duplicate},
		{newTick(1, newCount("a", 1)), usagefold.Duplicate},
		{newTick(3, newCount("a", 7)), usagefold.CapReached},
		{event.UsageRefunded{InstanceID: "i", Sequence: 4, Day: first, Counts: []event.UsageCount{newCount("a", 2)}}, usagefold.Counted},
		{newTick(3, newCount("a", 7)), usagefold.Duplicate}, // there is room now, but it was void
		{newTick(5, newCount("a", 8)), usagefold.Counted},
		{newTick(6, newCount("a", 0)), usagefold.CapReached},
		{newTick(7, newCount("a", -1)), usagefold.CapReached},
		{event.UsageCapSet{Account: "a", Cap: 11, AsOfPosition: 1}, usagefold.Counted},
		{event.UsageCapSet{Account: "a", Cap: 99, AsOfPosition: 1}, usagefold.Duplicate},
		{newTick(8, newCount("b", 1)), usagefold.CapUnknown},
		{event.UsageCapSet{Account: "b", Cap: 5, AsOfPosition: 3}, usagefold.Counted},
		{newTick(9, newCount("b", 1)), usagefold.Counted},
		{newTick(10, newCount("b", 1)), usagefold.CapReached}, // the contract's eleven are used
		{event.UsageCapSet{Account: "a", Cap: 20, AsOfPosition: 2}, usagefold.Counted},
		{newTick(11, newCount("a", 1), newCount("b", 5)), usagefold.CapReached}, // as a whole or not at all
		{newTick(12, newCount("a", 1), newCount("b", 4)), usagefold.Counted},
		{event.UsageKeyRevoked{Account: "b", Key: "key-b"}, usagefold.Counted},
		{event.UsageKeyRevoked{Account: "b", Key: "key-b"}, usagefold.Duplicate},
		{newTick(13, newCount("b", 1)), usagefold.KeyRevoked},
		{event.UsageAccountClosed{Account: "a"}, usagefold.Counted},
		{newTick(14, newCount("a", 1)), usagefold.AccountClosed},
		{event.UsageClosed{Total: 16}, usagefold.Counted},
		{event.UsageClosed{Total: 16}, usagefold.PeriodClosed},
		{newTick(15, newCount("a", 1)), usagefold.PeriodClosed},
		{event.UsageRefunded{InstanceID: "i", Sequence: 16, Day: first, Counts: []event.UsageCount{newCount("a", 2)}}, usagefold.PeriodClosed},
		{event.UsageAdjusted{Day: first, Account: "a", Key: "key-a", Endpoint: "GET /me", Requests: -3}, usagefold.Counted},
	})
	if got := f.Lines.Total(); got != 13 {
		t.Errorf("the sum of the lines is %d, want 16 less the adjustment of 3", got)
	}
	if got := [2]int64{f.Used("a"), f.Used("b")}; got != [2]int64{16, 5} {
		t.Errorf("used %v, want 16 by the contract, 5 by b", got)
	}
}

func TestPeriodOpensAtMostAMinuteEarly(t *testing.T) {
	t.Parallel()
	for early, want := range map[time.Duration]usagefold.Verdict{
		0: usagefold.Counted, time.Minute: usagefold.Counted, time.Minute + time.Microsecond: usagefold.PeriodNotOpen, 24 * time.Hour: usagefold.PeriodNotOpen,
	} {
		var b usagefold.PeriodState
		if got := b.Apply(event.UsageOpened{Contract: "a", First: first, Next: next, Cap: 1}, first.Start().Add(-early)); got != want {
			t.Errorf("%v early: verdict %d, want %d", early, got, want)
		}
		if b.IsOpen() != (want == usagefold.Counted) {
			t.Errorf("%v early: opened %v", early, b.IsOpen())
		}
	}
}

// randomEvent is an event as several instances write it, some of it repeated or late.
func randomEvent(r *rand.Rand, n int64) event.Event {
	account := string(rune('a' + r.IntN(4)))
	counts := []event.UsageCount{newCount(account, int64(r.IntN(5)))}
	if r.IntN(2) == 0 {
		counts = append(counts, newCount(string(rune('a'+r.IntN(4))), 1+int64(r.IntN(3))))
	}
	who := fmt.Sprint("i", r.IntN(3))
	switch r.IntN(20) {
	case 0:
		return event.UsageCapSet{Account: account, Cap: int64(r.IntN(60)), AsOfPosition: int64(r.IntN(10))}
	case 1:
		return event.UsageRefunded{InstanceID: who, Sequence: n - int64(r.IntN(3)), Day: first, Counts: counts}
	case 2:
		if r.IntN(10) == 0 {
			return event.UsageKeyRevoked{Account: account, Key: "key-" + account}
		}
	case 3:
		if r.IntN(20) == 0 {
			return event.UsageAccountClosed{Account: account}
		}
	}
	return event.UsageTicked{InstanceID: who, Sequence: n - int64(r.IntN(3)), Day: first, Counts: counts}
}

// A reader that begins at any snapshot finds the same verdicts as one that folds the whole stream.
func TestSnapshotGivesTheSameVerdictsAsTheWholeStream(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		whole := &usagefold.PeriodState{}
		whole.Apply(event.UsageOpened{Contract: "a", First: first, Next: next, Cap: 100}, noon)
		readers := []*usagefold.PeriodState{}
		for n := range int64(200) {
			if r.IntN(40) == 0 {
				readers = append(readers, usagefold.RestorePeriod(whole.Snapshot(n)))
			}
			e := randomEvent(r, n+1)
			want := whole.Apply(e, noon)
			for i, b := range readers {
				if got := b.Apply(e, noon); got != want {
					t.Fatalf("seed %d: event %d %+v: verdict %d by reader %d, %d by the whole stream", seed, n, e, got, i, want)
				}
			}
		}
		for _, b := range readers {
			if diff := cmp.Diff(whole.Snapshot(0), b.Snapshot(0)); diff != "" {
				t.Fatalf("seed %d: %s", seed, diff)
			}
		}
	}
}

// What a draft accepts counts when it is appended next, and what it refused would not count with it.
func TestDraftAcceptsExactlyWhatWouldCount(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		b := &usagefold.PeriodState{}
		b.Apply(event.UsageOpened{Contract: "a", First: first, Next: next, Cap: int64(r.IntN(60))}, noon)
		for n := range int64(r.IntN(60)) {
			b.Apply(randomEvent(r, n+1), noon)
		}
		d, accepted := b.DraftTick(), map[string]int64{}
		var refused event.UsageCount
		for range 40 {
			account := string(rune('a' + r.IntN(4)))
			requests := 1 + int64(r.IntN(4))
			if d.AddRequests(account, "key-"+account, requests) == usagefold.Counted {
				accepted[account] += requests
			} else {
				refused = newCount(account, requests)
			}
		}
		var counts []event.UsageCount
		for account, n := range accepted {
			counts = append(counts, newCount(account, n))
		}
		more := append(counts, refused)
		if refused.Account != "" && usagefold.RestorePeriod(b.Snapshot(0)).Apply(newTick(1000, more...), noon) == usagefold.Counted {
			t.Fatalf("seed %d: %+v counts, but the draft refused %+v", seed, more, refused)
		}
		if v := b.Apply(newTick(1000, counts...), noon); len(counts) > 0 && v != usagefold.Counted {
			t.Fatalf("seed %d: %+v got verdict %d", seed, counts, v)
		}
	}
}

func TestDigestDoesNotDependOnTheOrderOfTicks(t *testing.T) {
	t.Parallel()
	a, b := usagefold.Lines{}, usagefold.Lines{}
	e1, e2 := newTick(1, newCount("a", 2), newCount("b", 1)), newTick(2, newCount("a", 3))
	for _, e := range []event.Event{e1, e2} {
		a.Apply(e, usagefold.Counted)
	}
	for _, e := range []event.Event{e2, e1} {
		b.Apply(e, usagefold.Counted)
	}
	if string(a.Digest()) != string(b.Digest()) {
		t.Error("the order of ticks shows in the digest")
	}
	b.Apply(event.UsageAdjusted{Day: first, Account: "a", Key: "key-a", Endpoint: "GET /me", Requests: 1}, usagefold.Counted)
	if string(a.Digest()) == string(b.Digest()) || a.ClosingEvent().Total != 6 || b.ClosingEvent().Total != 7 {
		t.Errorf("the digest of %+v is that of %+v", a.ClosingEvent(), b.ClosingEvent())
	}
}

func BenchmarkTick(b *testing.B) {
	var state usagefold.PeriodState
	state.Apply(event.UsageOpened{Contract: "a", First: first, Next: next, Cap: 1 << 60}, noon)
	for n := int64(1); b.Loop(); n++ {
		if state.Apply(newTick(n, newCount("a", 1)), noon) != usagefold.Counted {
			b.Fatal("void")
		}
	}
}
