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
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/usage"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

func TestEveryEventOfItsCategoriesHasAHandler(t *testing.T) {
	t.Parallel()
	if missing := usage.Model.Unhandled(); len(missing) > 0 {
		t.Errorf("usage neither handles nor ignores %v", missing)
	}
}

// TestRowsAreWhatTheFoldOfTheLogGives: whatever the streams hold, however they are split into batches, and however often the
// filling is interrupted, the rows are those of a fold event by event.
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
			s.Append(usagefold.StreamName(l.contract, first), events...)
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

// foldedPeriod is a period as usagefold folds it.
type foldedPeriod struct {
	state       *usagefold.PeriodState
	lines       usagefold.Lines
	revision    int64 // of the last event about it where it is counted
	ownRevision int64
	shared      string
	opened      time.Time
	ended       time.Time
	closed      time.Time
	closing     event.UsageClosed
	uses        map[string]table.Instant
	from, to    map[usagefold.LineKey]int64 // the revisions of the first and the last event of a line in the shared stream
}

// foldedLog is what the streams of a log come to, by own stream.
type foldedLog struct {
	streams usagefold.StreamsState
	periods map[string]*foldedPeriod
}

func foldLog(t *testing.T, log eventstore.Store) map[string]*foldedPeriod {
	t.Helper()
	f := &foldedLog{periods: map[string]*foldedPeriod{}}
	for s, err := range log.ReadAll(t.Context(), eventstore.Checkpoint{}, eventstore.Filter{"usage"}) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Kind != eventstore.EventAppeared {
			continue
		}
		e, err := event.Decode(s.Event.Type, s.Event.Data)
		if err != nil {
			t.Fatal(err)
		}
		f.apply(s.Event, e)
	}
	return f.periods
}

func (f *foldedLog) find(ref event.PeriodRef) *foldedPeriod {
	stream := usagefold.StreamName(ref.Contract, ref.First)
	if f.periods[stream] == nil {
		f.periods[stream] = &foldedPeriod{lines: usagefold.Lines{}, uses: map[string]table.Instant{}, from: map[usagefold.LineKey]int64{}, to: map[usagefold.LineKey]int64{}}
	}
	return f.periods[stream]
}

func (f *foldedLog) apply(r eventstore.RecordedEvent, e event.Event) {
	parts := f.streams.Apply(r.Stream, int64(r.Revision), e, r.Time)
	contract, first, isOwn := usagefold.ParseStreamName(r.Stream)
	own := event.PeriodRef{Contract: contract, First: first}
	in, isShared := f.streams.CountedIn(own)
	if isOwn && isShared {
		p := f.find(own)
		p.shared, p.ownRevision = in, int64(r.Revision)
	}
	for _, part := range parts {
		if part.State == nil {
			continue
		}
		p := f.find(part.PeriodRef)
		if p.state = part.State; !isOwn || !isShared {
			p.revision = int64(r.Revision)
		}
		if part.Verdict == usagefold.Counted {
			p.collect(part.Event, r.Time)
			if !isOwn {
				p.noteRevision(part.Event, int64(r.Revision))
			}
		}
	}
}

// noteRevision notes where an event is in the shared stream.
func (p *foldedPeriod) noteRevision(e event.Event, revision int64) {
	var day plan.Date
	var counts []event.UsageCount
	switch e := e.(type) {
	case event.UsageTicked:
		day, counts = e.Day, e.Counts
	case event.UsageRefunded:
		day, counts = e.Day, e.Counts
	}
	for _, c := range counts {
		at := usagefold.LineKey{Day: day, Account: c.Account, Key: c.Key, Endpoint: c.Endpoint}
		if p.to[at] = revision; p.from[at] == 0 {
			p.from[at] = revision
		}
	}
}

// collect collects an event that counts.
func (p *foldedPeriod) collect(e event.Event, recorded time.Time) {
	p.lines.Apply(e, usagefold.Counted)
	switch e := e.(type) {
	case event.UsageOpened:
		p.opened = recorded
	case event.SharedUsageEnded, event.UsageLinesStated:
		p.ended = recorded
	case event.UsageClosed:
		p.closed, p.closing = recorded, e
	case event.UsageTicked:
		for _, c := range e.Counts {
			p.uses[c.Key] = table.InstantOf(recorded)
		}
	}
}

// checkRows compares all rows with the streams.
func checkRows(t *testing.T, s *projectortest.Fixture, want map[string]*foldedPeriod) {
	t.Helper()
	var lines []table.UsageLine
	var periods []table.UsagePeriod
	uses := map[string]table.Instant{}
	for stream, f := range want {
		if f.state == nil || !f.state.IsOpen() && !f.state.IsEnded() {
			continue
		}
		contract := f.state.Contract
		limit, _, _ := f.state.Cap(contract)
		periods = append(periods, table.UsagePeriod{
			Stream: stream, Contract: contract, First: first.String(), Next: next.String(), Cap: limit, Used: f.state.Used(contract),
			Opened: table.InstantOf(f.opened), Closed: table.InstantOf(f.closed), Total: f.closing.Total, Lines: f.closing.LineCount,
			Digest: fmt.Sprintf("%x", f.closing.Digest), Revision: f.revision, Shared: f.shared, Ended: table.InstantOf(f.ended), OwnRevision: f.ownRevision,
		})
		for _, at := range f.lines.SortedKeys() {
			lines = append(lines, table.UsageLine{Account: at.Account, First: first.String(), Contract: contract, Day: at.Day.String(), Key: at.Key, Endpoint: at.Endpoint, Requests: f.lines[at], SharedFrom: f.from[at], SharedTo: f.to[at]})
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

// sortedLines returns, in a fixed order, the lines that count anything.
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

// TestDuplicateAppendIsCountedOnce: events appended with Any may be added again on a log that has forgotten their ids. The
// rows are those of a log on which that did not happen.
func TestDuplicateAppendIsCountedOnce(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	once, twice := projectortest.Start(t, t.TempDir(), usage.Model), projectortest.Start(t, t.TempDir(), usage.Model)
	l, stream := newEventGenerator(random, "c"), usagefold.StreamName("c", first)
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

// nonZeroLines returns the lines that count anything. Whether a line of zero exists depends on the batches.
func nonZeroLines(s *projectortest.Fixture) []table.UsageLine {
	return slices.DeleteFunc(projectortest.Rows(s, table.UsageModel, table.UsageLines), func(l table.UsageLine) bool { return l.Requests == 0 })
}

// isAppendedWithAny reports whether an event is appended with Any. The others have an expected revision.
func isAppendedWithAny(e event.Event) bool {
	switch e.(type) {
	case event.UsageOpened, event.UsageClosed, event.UsageAdjusted:
		return false
	}
	return true
}

// TestViewsShowUsageUnderPlainNames: a tick that counts, one that would pass the cap, a refund and a correction.
func TestViewsShowUsageUnderPlainNames(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := projectortest.Start(t, address, usage.Model)
		mende := func(key string, requests int64) []event.UsageCount {
			return []event.UsageCount{{Account: "mende", Key: key, Endpoint: "GET /me", Requests: requests}}
		}
		s.Append(usagefold.StreamName("mende", first),
			event.UsageOpened{Contract: "mende", First: first, Next: next, Cap: 10},
			event.UsageTicked{InstanceID: "i", Sequence: 1, Day: first, Counts: mende("k1", 8)},
			event.UsageTicked{InstanceID: "i", Sequence: 2, Day: first, Counts: mende("k2", 3)},
			event.UsageRefunded{InstanceID: "i", Sequence: 3, Day: first, Counts: mende("k1", 1)},
			event.UsageClosed{Total: 7, LineCount: 1, Digest: []byte{0xab}},
			event.UsageAdjusted{Day: first, Account: "mende", Key: "k1", Endpoint: "GET /me", Requests: -2})
		projectortest.Rows(s, table.UsageModel, table.UsageLines) // all is there
		for query, want := range map[string]string{
			"select compte, contrat, periode, jour, cle, endpoint, requetes from usage_par_jour":                   "mende mende 2025-11-21 2025-11-21 k1 GET /me 5",
			"select compte, contrat, periode, requetes from usage_par_periode":                                     "mende mende 2025-11-21 5",
			"select contrat, periode, fin, limite, utilise, restant, total, lignes, empreinte from usage_periodes": "mende 2025-11-21 2025-12-21 10 7 3 7 1 ab",
			"select cle, compte from usage_des_cles":                                                               "k1 mende",
			"select count(*) from usage_periodes where ouverte_le is not null and close_le >= ouverte_le":          "1",
			"select count(*) from usage_des_cles where cast(utilise_le as text) like '20%-%'":                      "1",
		} {
			if got := queryRow(t, s.Registry, address, query); got != want {
				t.Errorf("%s: got %q, want %q", query, got, want)
			}
		}
	})
}

// queryRow returns the one row of a query on the views.
func queryRow(t *testing.T, registry *sqldb.Registry, address, query string) string {
	t.Helper()
	if strings.HasPrefix(address, "postgres") {
		query = strings.Replace(query, " from ", " from lieudit.", 1)
	}
	var text []string
	err := registry.Read(t.Context(), table.UsageModel, func(db *sqldb.DB) error {
		rows, err := db.Query(t.Context(), query)
		if err != nil {
			return err
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		cells, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				return err
			}
			for _, c := range cells {
				text = append(text, fmt.Sprint(c))
			}
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(text, " ")
}
