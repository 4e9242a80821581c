package tally_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/tally"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

func TestEveryEventOfItsCategoriesHasARule(t *testing.T) {
	t.Parallel()
	if missing := tally.Model.Unruled(); len(missing) > 0 {
		t.Errorf("usage neither handles nor ignores %v", missing)
	}
}

// TestRowsAreWhatTheFoldOfTheLogGives: whatever happens in the streams, in whatever batches it is read, and however often
// the filling is broken off, the rows are those of a fold event by event.
func TestRowsAreWhatTheFoldOfTheLogGives(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		m := tally.Model
		s := projectortest.Start(t, address, m)
		lives := make([]*life, 6)
		for i := range lives {
			lives[i] = newLife(random, fmt.Sprintf("c%d", i))
		}
		for range 250 {
			l := lives[random.IntN(len(lives))]
			events := make([]event.Event, 1+random.IntN(6))
			for i := range events {
				events[i] = l.next()
			}
			s.Append(ledger.Stream(l.contract, first), events...)
			if random.IntN(25) == 0 {
				m.Batch = 1 + random.IntN(60)
				s.Restart(m)
			}
		}
		want := refold(t, s.Log)
		check(t, s, want)
		s.Rebuild(table.Usage)
		check(t, s, want)
	})
}

// folded is a stream as the ledger has it.
type folded struct {
	ledger.Folding
	revision eventstore.Revision
	opened   time.Time
	closed   time.Time
	closing  event.UsageClosed
	uses     map[string]table.Instant
}

func refold(t *testing.T, log eventstore.Store) map[string]*folded {
	t.Helper()
	all := map[string]*folded{}
	for s, err := range log.ReadAll(t.Context(), eventstore.Mark{}, eventstore.Filter{"usage"}) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Kind == eventstore.Event {
			take(t, all, s.Event)
		}
	}
	return all
}

func take(t *testing.T, all map[string]*folded, r eventstore.Recorded) {
	t.Helper()
	e, err := event.Decode(r.Type, r.Data)
	if err != nil {
		t.Fatal(err)
	}
	f := all[r.Stream]
	if f == nil {
		f = &folded{Folding: *ledger.NewFolding(), uses: map[string]table.Instant{}}
		all[r.Stream] = f
	}
	f.revision = r.Revision
	if f.Apply(e, r.Time) != ledger.Counts {
		return
	}
	switch e := e.(type) {
	case event.UsageOpened:
		f.opened = r.Time
	case event.UsageClosed:
		f.closed, f.closing = r.Time, e
	case event.UsageTicked:
		for _, c := range e.Counts {
			f.uses[c.Key] = table.At(r.Time)
		}
	}
}

// check compares all rows with the streams.
func check(t *testing.T, s *projectortest.Stage, want map[string]*folded) {
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
			Opened: table.At(f.opened), Closed: table.At(f.closed), Total: f.closing.Total, Lines: f.closing.Lines,
			Digest: fmt.Sprintf("%x", f.closing.Digest), Revision: int64(f.revision),
		})
		for _, at := range f.Lines.Sorted() {
			lines = append(lines, table.UsageLine{Account: at.Account, First: first.String(), Contract: f.Contract, Day: at.Day.String(), Key: at.Key, Endpoint: at.Endpoint, Requests: f.Lines[at]})
		}
		for key, at := range f.uses {
			uses[key] = max(uses[key], at)
		}
	}
	gotPeriods := projectortest.Rows(s, table.Usage, table.UsagePeriods)
	for i := range gotPeriods {
		gotPeriods[i].Book = ""
	}
	slices.SortFunc(periods, func(a, b table.UsagePeriod) int { return strings.Compare(a.Stream, b.Stream) })
	diff(t, "periods", periods, gotPeriods)
	diff(t, "lines", sorted(lines), sorted(projectortest.Rows(s, table.Usage, table.UsageLines)))
	gotUses := map[string]table.Instant{}
	for _, u := range projectortest.Rows(s, table.Usage, table.KeyUses) {
		gotUses[u.Key] = u.Last
	}
	diff(t, "uses", uses, gotUses)
}

// sorted are the lines that say something, in one order.
func sorted(lines []table.UsageLine) []table.UsageLine {
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
