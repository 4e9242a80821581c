package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

var (
	first = plan.Date{Year: 2026, Month: 11, Day: 21}
	next  = plan.Date{Year: 2026, Month: 12, Day: 21}
	noon  = first.Start().Add(12 * time.Hour)
)

func tick(sequence int64, counts ...event.UsageCount) event.UsageTicked {
	return event.UsageTicked{Incarnation: "i", Sequence: sequence, Day: first, Counts: counts}
}

func count(account string, n int64) event.UsageCount {
	return event.UsageCount{Account: account, Key: "key-" + account, Endpoint: "GET /me", Requests: n}
}

// step is an event and what it has to come to.
type step struct {
	e    event.Event
	want ledger.Verdict
}

func play(t *testing.T, steps []step) *ledger.Folding {
	t.Helper()
	f := ledger.NewFolding()
	for i, s := range steps {
		if got := f.Apply(s.e, noon); got != s.want {
			t.Errorf("step %d, %T: verdict %d, want %d", i, s.e, got, s.want)
		}
	}
	return f
}

func TestWhatStandsBeforeATickDecides(t *testing.T) {
	t.Parallel()
	opened := event.UsageOpened{Contract: "a", First: first, Next: next, Cap: 10}
	f := play(t, []step{
		{tick(1, count("a", 1)), ledger.Unopened},
		{opened, ledger.Counts},
		{opened, ledger.Repeated},
		{tick(2, count("a", 4)), ledger.Counts},
		{tick(2, count("a", 4)), ledger.Repeated},
		{tick(1, count("a", 1)), ledger.Repeated},
		{tick(3, count("a", 7)), ledger.Spent},
		{event.UsageRefunded{Incarnation: "i", Sequence: 4, Day: first, Counts: []event.UsageCount{count("a", 2)}}, ledger.Counts},
		{tick(3, count("a", 7)), ledger.Repeated}, // there is room now, but it was void
		{tick(5, count("a", 8)), ledger.Counts},
		{tick(6, count("a", 0)), ledger.Spent},
		{tick(7, count("a", -1)), ledger.Spent},
		{event.UsageCapSet{Account: "a", Cap: 11, AsOf: 1}, ledger.Counts},
		{event.UsageCapSet{Account: "a", Cap: 99, AsOf: 1}, ledger.Repeated},
		{tick(8, count("b", 1)), ledger.Uncapped},
		{event.UsageCapSet{Account: "b", Cap: 5, AsOf: 3}, ledger.Counts},
		{tick(9, count("b", 1)), ledger.Counts},
		{tick(10, count("b", 1)), ledger.Spent}, // the contract's eleven are used
		{event.UsageCapSet{Account: "a", Cap: 20, AsOf: 2}, ledger.Counts},
		{tick(11, count("a", 1), count("b", 5)), ledger.Spent}, // as a whole or not at all
		{tick(12, count("a", 1), count("b", 4)), ledger.Counts},
		{event.UsageKeyRevoked{Account: "b", Key: "key-b"}, ledger.Counts},
		{event.UsageKeyRevoked{Account: "b", Key: "key-b"}, ledger.Repeated},
		{tick(13, count("b", 1)), ledger.Revoked},
		{event.UsageAccountClosed{Account: "a"}, ledger.Counts},
		{tick(14, count("a", 1)), ledger.Shut},
		{event.UsageClosed{Total: 16}, ledger.Counts},
		{event.UsageClosed{Total: 16}, ledger.Ended},
		{tick(15, count("a", 1)), ledger.Ended},
		{event.UsageRefunded{Incarnation: "i", Sequence: 16, Day: first, Counts: []event.UsageCount{count("a", 2)}}, ledger.Ended},
		{event.UsageAdjusted{Day: first, Account: "a", Key: "key-a", Endpoint: "GET /me", Requests: -3}, ledger.Counts},
	})
	if got := f.Lines.Total(); got != 13 {
		t.Errorf("the lines come to %d, want 16 less the adjustment of 3", got)
	}
	if got := [2]int64{f.Used("a"), f.Used("b")}; got != [2]int64{16, 5} {
		t.Errorf("used %v, want 16 by the contract, 5 by b", got)
	}
}

func TestAPeriodOpensNoMoreThanAMinuteEarly(t *testing.T) {
	t.Parallel()
	for early, want := range map[time.Duration]ledger.Verdict{
		0: ledger.Counts, time.Minute: ledger.Counts, time.Minute + time.Microsecond: ledger.Unopened, 24 * time.Hour: ledger.Unopened,
	} {
		var b ledger.Book
		if got := b.Apply(event.UsageOpened{Contract: "a", First: first, Next: next, Cap: 1}, first.Start().Add(-early)); got != want {
			t.Errorf("%v early: verdict %d, want %d", early, got, want)
		}
		if b.Opened() != (want == ledger.Counts) {
			t.Errorf("%v early: opened %v", early, b.Opened())
		}
	}
}

// random is an event of a stream as several instances and a careless network may make it.
func random(r *rand.Rand, n int64) event.Event {
	account := string(rune('a' + r.IntN(4)))
	counts := []event.UsageCount{count(account, int64(r.IntN(5)))}
	if r.IntN(2) == 0 {
		counts = append(counts, count(string(rune('a'+r.IntN(4))), 1+int64(r.IntN(3))))
	}
	who := fmt.Sprint("i", r.IntN(3))
	switch r.IntN(20) {
	case 0:
		return event.UsageCapSet{Account: account, Cap: int64(r.IntN(60)), AsOf: int64(r.IntN(10))}
	case 1:
		return event.UsageRefunded{Incarnation: who, Sequence: n - int64(r.IntN(3)), Day: first, Counts: counts}
	case 2:
		if r.IntN(10) == 0 {
			return event.UsageKeyRevoked{Account: account, Key: "key-" + account}
		}
	case 3:
		if r.IntN(20) == 0 {
			return event.UsageAccountClosed{Account: account}
		}
	}
	return event.UsageTicked{Incarnation: who, Sequence: n - int64(r.IntN(3)), Day: first, Counts: counts}
}

// TestABalanceIsAsGoodAsTheWholeStream: from whatever balance a reader begins, it finds the same verdicts.
func TestABalanceIsAsGoodAsTheWholeStream(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		whole := &ledger.Book{}
		whole.Apply(event.UsageOpened{Contract: "a", First: first, Next: next, Cap: 100}, noon)
		readers := []*ledger.Book{}
		for n := range int64(200) {
			if r.IntN(40) == 0 {
				readers = append(readers, ledger.Resume(whole.Balance(n)))
			}
			e := random(r, n+1)
			want := whole.Apply(e, noon)
			for i, b := range readers {
				if got := b.Apply(e, noon); got != want {
					t.Fatalf("seed %d: event %d %+v: verdict %d by reader %d, %d by the whole stream", seed, n, e, got, i, want)
				}
			}
		}
		for _, b := range readers {
			if diff := cmp.Diff(whole.Balance(0), b.Balance(0)); diff != "" {
				t.Fatalf("seed %d: %s", seed, diff)
			}
		}
	}
}

// TestADraftCountsNextAndNoMoreWould: what a draft takes counts when it is appended next, and one more would not.
func TestADraftCountsNextAndNoMoreWould(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		b := &ledger.Book{}
		b.Apply(event.UsageOpened{Contract: "a", First: first, Next: next, Cap: int64(r.IntN(60))}, noon)
		for n := range int64(r.IntN(60)) {
			b.Apply(random(r, n+1), noon)
		}
		d, taken := b.Draft(), map[string]int64{}
		refused := ""
		for range 40 {
			account := string(rune('a' + r.IntN(4)))
			if d.Take(account, "key-"+account) == ledger.Counts {
				taken[account]++
			} else {
				refused = account
			}
		}
		var counts []event.UsageCount
		for account, n := range taken {
			counts = append(counts, count(account, n))
		}
		more := append(counts, count(refused, 1))
		if refused != "" && ledger.Resume(b.Balance(0)).Apply(tick(1000, more...), noon) == ledger.Counts {
			t.Fatalf("seed %d: %+v counts, but the draft refused %s", seed, more, refused)
		}
		if v := b.Apply(tick(1000, counts...), noon); len(counts) > 0 && v != ledger.Counts {
			t.Fatalf("seed %d: %+v came to verdict %d", seed, counts, v)
		}
	}
}

func TestTheDigestIsOfTheLinesWhateverTheirOrder(t *testing.T) {
	t.Parallel()
	a, b := ledger.Lines{}, ledger.Lines{}
	e1, e2 := tick(1, count("a", 2), count("b", 1)), tick(2, count("a", 3))
	for _, e := range []event.Event{e1, e2} {
		a.Apply(e, ledger.Counts)
	}
	for _, e := range []event.Event{e2, e1} {
		b.Apply(e, ledger.Counts)
	}
	if string(a.Digest()) != string(b.Digest()) {
		t.Error("the order of ticks shows in the digest")
	}
	b.Apply(event.UsageAdjusted{Day: first, Account: "a", Key: "key-a", Endpoint: "GET /me", Requests: 1}, ledger.Counts)
	if string(a.Digest()) == string(b.Digest()) || a.Closing().Total != 6 || b.Closing().Total != 7 {
		t.Errorf("the digest does not tell %+v from %+v", a.Closing(), b.Closing())
	}
}

func BenchmarkTick(b *testing.B) {
	var book ledger.Book
	book.Apply(event.UsageOpened{Contract: "a", First: first, Next: next, Cap: 1 << 60}, noon)
	for n := int64(1); b.Loop(); n++ {
		if book.Apply(tick(n, count("a", 1)), noon) != ledger.Counts {
			b.Fatal("void")
		}
	}
}
