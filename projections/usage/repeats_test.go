package usage_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/projections/projector/projectortest"
	"lieudit/projections/usage"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/table"
)

// TestDuplicateAppendIsCountedOnce: what is appended with Any may land again on a log that has forgotten its ids. The rows are
// those of a log on which it did not.
func TestDuplicateAppendIsCountedOnce(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	once, twice := projectortest.Start(t, t.TempDir(), usage.Model), projectortest.Start(t, t.TempDir(), usage.Model)
	l, stream := newEventGenerator(random, "c"), ledger.StreamName("c", first)
	opened := event.UsageOpened{Contract: "c", First: first, Next: next, Cap: 100_000, AsOfPosition: 0}
	once.Append(stream, opened)
	twice.Append(stream, opened)
	for range 200 {
		e := l.nextEvent()
		once.Append(stream, e)
		twice.Append(stream, e)
		if isAppendedWithAny(e) {
			twice.Append(stream, e)
		}
	}
	if diff := cmp.Diff(nonZeroLines(once), nonZeroLines(twice)); diff != "" {
		t.Errorf("lines (-once +twice):\n%s", diff)
	}
	for i, p := range projectortest.Rows(once, table.UsageModel, table.UsagePeriods) {
		if got := projectortest.Rows(twice, table.UsageModel, table.UsagePeriods)[i]; got.Used != p.Used || got.Cap != p.Cap {
			t.Errorf("%s: used %d of %d, want %d of %d", p.Stream, got.Used, got.Cap, p.Used, p.Cap)
		}
	}
}

// nonZeroLines are the lines that come to anything. One that comes to nothing is there or not, as its events fell into batches.
func nonZeroLines(s *projectortest.Fixture) []table.UsageLine {
	return slices.DeleteFunc(projectortest.Rows(s, table.UsageModel, table.UsageLines), func(l table.UsageLine) bool { return l.Requests == 0 })
}

// isAppendedWithAny says whether an event is appended whatever its stream holds. The others have an expected revision.
func isAppendedWithAny(e event.Event) bool {
	switch e.(type) {
	case event.UsageOpened, event.UsageClosed, event.UsageAdjusted:
		return false
	}
	return true
}
