package usage_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/usage"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/table"
)

func TestEveryEventOfItsCategoriesHasAHandler(t *testing.T) {
	t.Parallel()
	if missing := usage.Model.Unhandled(); len(missing) > 0 {
		t.Errorf("usage neither handles nor ignores %v", missing)
	}
}

// TestRowsAreWhatTheFoldOfTheLogGives: whatever happens in the streams, in whatever batches it is read, and however often
// the filling is broken off, the rows are those of a fold event by event.
func TestRowsAreWhatTheFoldOfTheLogGives(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		m := usage.Model
		s := projectortest.Start(t, address, m)
		generators := make([]*eventGenerator, 6)
		for i := range generators {
			generators[i] = newEventGenerator(random, fmt.Sprintf("c%d", i))
		}
		for range 250 {
			l := generators[random.IntN(len(generators))]
			events := make([]event.Event, 1+random.IntN(6))
			for i := range events {
				events[i] = l.nextEvent()
			}
			s.Append(ledger.StreamName(l.contract, first), events...)
			if random.IntN(25) == 0 {
				m.BatchSize = 1 + random.IntN(60)
				s.Restart(m)
			}
		}
		want := foldLog(t, s.Log)
		checkRows(t, s, want)
		s.Rebuild(table.UsageModel)
		checkRows(t, s, want)
	})
}

// foldedStream is a stream as the ledger has it.
type foldedStream struct {
	ledger.PeriodUsage
	revision eventstore.Revision
	opened   time.Time
	closed   time.Time
	closing  event.UsageClosed
	uses     map[string]table.Instant
}

func foldLog(t *testing.T, log eventstore.Store) map[string]*foldedStream {
	t.Helper()
	all := map[string]*foldedStream{}
	for s, err := range log.ReadAll(t.Context(), eventstore.Checkpoint{}, eventstore.Filter{"usage"}) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Kind == eventstore.EventAppeared {
			foldRecorded(t, all, s.Event)
		}
	}
	return all
}

func foldRecorded(t *testing.T, all map[string]*foldedStream, r eventstore.RecordedEvent) {
	t.Helper()
	e, err := event.Decode(r.Type, r.Data)
	if err != nil {
		t.Fatal(err)
	}
	f := all[r.Stream]
	if f == nil {
		f = &foldedStream{PeriodUsage: *ledger.NewPeriodUsage(), uses: map[string]table.Instant{}}
		all[r.Stream] = f
	}
	f.revision = r.Revision
	if f.Apply(e, r.Time) != ledger.Counted {
		return
	}
	switch e := e.(type) {
	case event.UsageOpened:
		f.opened = r.Time
	case event.UsageClosed:
		f.closed, f.closing = r.Time, e
	case event.UsageTicked:
		for _, c := range e.Counts {
			f.uses[c.Key] = table.InstantOf(r.Time)
		}
	}
}

// checkRows compares all rows with the streams.
func checkRows(t *testing.T, s *projectortest.Fixture, want map[string]*foldedStream) {
	t.Helper()
	var lines []table.UsageLine
	var periods []table.UsagePeriod
	uses := map[string]table.Instant{}
	for stream, f := range want {
		if f.opened.IsZero() {
			continue
		}
		limit, _, _ := f.Cap(f.Contract)
		periods = append(periods, table.UsagePeriod{
			Stream: stream, Contract: f.Contract, First: first.String(), Next: next.String(), Cap: limit, Used: f.Used(f.Contract),
			Opened: table.InstantOf(f.opened), Closed: table.InstantOf(f.closed), Total: f.closing.Total, Lines: f.closing.LineCount,
			Digest: fmt.Sprintf("%x", f.closing.Digest), Revision: int64(f.revision),
		})
		for _, at := range f.Lines.SortedKeys() {
			lines = append(lines, table.UsageLine{Account: at.Account, First: first.String(), Contract: f.Contract, Day: at.Day.String(), Key: at.Key, Endpoint: at.Endpoint, Requests: f.Lines[at]})
		}
		for key, at := range f.uses {
			uses[key] = max(uses[key], at)
		}
	}
	gotPeriods := projectortest.Rows(s, table.UsageModel, table.UsagePeriods)
	for i := range gotPeriods {
		gotPeriods[i].PeriodState = ""
	}
	slices.SortFunc(periods, func(a, b table.UsagePeriod) int { return strings.Compare(a.Stream, b.Stream) })
	diff(t, "periods", periods, gotPeriods)
	diff(t, "lines", sortedLines(lines), sortedLines(projectortest.Rows(s, table.UsageModel, table.UsageLines)))
	gotUses := map[string]table.Instant{}
	for _, u := range projectortest.Rows(s, table.UsageModel, table.KeyUses) {
		gotUses[u.Key] = u.LastUsed
	}
	diff(t, "uses", uses, gotUses)
}

// sortedLines are the lines that say something, in one order.
func sortedLines(lines []table.UsageLine) []table.UsageLine {
	lines = slices.DeleteFunc(lines, func(l table.UsageLine) bool { return l.Requests == 0 })
	slices.SortFunc(lines, func(a, b table.UsageLine) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return lines
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: want (-), got (+)\n%s", what, d)
	}
}
