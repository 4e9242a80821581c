package tally_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/projections/projector/projectortest"
	"lieudit/projections/tally"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/table"
)

// TestWhatLandsTwiceIsBilledOnce: what is appended with Any may land again on a log that has forgotten its ids. The rows are
// those of a log on which it did not.
func TestWhatLandsTwiceIsBilledOnce(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	once, twice := projectortest.Start(t, t.TempDir(), tally.Model), projectortest.Start(t, t.TempDir(), tally.Model)
	l, stream := newLife(random, "c"), ledger.Stream("c", first)
	opened := event.UsageOpened{Contract: "c", First: first, Next: next, Cap: 100_000, AsOf: 0}
	once.Append(stream, opened)
	twice.Append(stream, opened)
	for range 200 {
		e := l.next()
		once.Append(stream, e)
		twice.Append(stream, e)
		if withAny(e) {
			twice.Append(stream, e)
		}
	}
	if diff := cmp.Diff(billed(once), billed(twice)); diff != "" {
		t.Errorf("lines (-once +twice):\n%s", diff)
	}
	for i, p := range projectortest.Rows(once, table.Usage, table.UsagePeriods) {
		if got := projectortest.Rows(twice, table.Usage, table.UsagePeriods)[i]; got.Used != p.Used || got.Cap != p.Cap {
			t.Errorf("%s: used %d of %d, want %d of %d", p.Stream, got.Used, got.Cap, p.Used, p.Cap)
		}
	}
}

// billed are the lines that come to anything. One that comes to nothing is there or not, as its events fell into batches.
func billed(s *projectortest.Stage) []table.UsageLine {
	return slices.DeleteFunc(projectortest.Rows(s, table.Usage, table.UsageLines), func(l table.UsageLine) bool { return l.Requests == 0 })
}

// withAny says whether an event is appended whatever its stream holds. The others have an expected revision.
func withAny(e event.Event) bool {
	switch e.(type) {
	case event.UsageOpened, event.UsageClosed, event.UsageAdjusted:
		return false
	}
	return true
}
