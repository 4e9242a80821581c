package reconcile_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/usage"
	"lieudit/queries/usage/reconcile"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// sharedLog is a log with a shared stream, and its fold.
type sharedLog struct {
	eventstore.Store
	t        *testing.T
	name     string
	state    usagefold.SharedState
	lines    map[string]*usagefold.PeriodUsage // by contract
	revision int64
	sequence int64
}

// newSharedLog has contracts counted in one stream.
func newSharedLog(t *testing.T, contracts ...string) *sharedLog {
	t.Helper()
	l := &sharedLog{Store: openLog(t), t: t, name: usagefold.SharedStreamName("2025-11", 0), lines: map[string]*usagefold.PeriodUsage{}, revision: -1}
	for _, c := range contracts {
		l.lines[c] = usagefold.NewPeriodUsage()
		appendEvents(t, l, usagefold.StreamName(c, firstDay), event.UsageCountedIn{PeriodRef: refOf(c), Stream: l.name})
		l.append(event.UsageOpened{Contract: c, First: firstDay, Next: lastDay, Cap: 100})
	}
	return l
}

func refOf(contract string) event.PeriodRef {
	return event.PeriodRef{Contract: contract, First: firstDay}
}

// append appends an event to the shared stream.
func (l *sharedLog) append(e event.Event) {
	l.t.Helper()
	appendEvents(l.t, l, l.name, e)
	l.revision++
	for _, part := range l.state.Apply(e, time.Now()) {
		if u := l.lines[part.Contract]; u != nil && part.State != nil {
			u.PeriodState = *part.State
			u.Lines.Apply(part.Event, part.Verdict)
		}
	}
}

// tick counts requests of each contract, as one instance.
func (l *sharedLog) tick(instance string, requests int64, contracts ...string) {
	l.t.Helper()
	l.sequence++
	var lines []usagefold.SharedLine
	for _, c := range contracts {
		lines = append(lines, usagefold.SharedLine{UsedKey: event.UsedKey{PeriodRef: refOf(c), Account: c, Key: c + "-k"}, Endpoint: "GET /me", Requests: requests})
	}
	l.append(l.state.BuildTick(event.SharedUsageTicked{InstanceID: instance, Sequence: l.sequence, Day: firstDay}, lines))
}

// appendOwn appends events to the own stream of a period.
func (l *sharedLog) appendOwn(contract string, events ...event.Event) {
	l.t.Helper()
	appendEvents(l.t, l, usagefold.StreamName(contract, firstDay), events...)
}

// finish ends the counting of a contract and states its lines.
func (l *sharedLog) finish(contract string) (closing event.UsageClosed) {
	l.t.Helper()
	l.append(event.SharedUsageEnded{PeriodRef: refOf(contract)})
	for _, e := range l.lines[contract].Statements() {
		l.appendOwn(contract, e)
	}
	return l.lines[contract].Lines.ClosingEvent()
}

func (l *sharedLog) misstatements(contract string) string {
	l.t.Helper()
	return fmt.Sprint(refoldLog(l.t, l, "").Streams[usagefold.StreamName(contract, firstDay)].Misstatements)
}

func TestRefoldAddsUpSharedStreams(t *testing.T) {
	t.Parallel()
	l := newSharedLog(t, "a", "b")
	l.tick("i", 3, "a", "b")
	l.tick("j", 98, "a") // more than its cap
	l.tick("i", 2, "b")
	closing := l.finish("a")
	l.appendOwn("a", closing, event.UsageAdjusted{Day: firstDay, Account: "a", Key: "a-k", Endpoint: "GET /me", Requests: -1})
	l.tick("i", 5, "a", "b")
	f := refoldLog(t, l, "2025-11-21")
	a, b := f.Streams[usagefold.StreamName("a", firstDay)], f.Streams[usagefold.StreamName("b", firstDay)]
	if a.Lines.Total() != 2 || a.Used("a") != 3 || !a.IsClosed() || a.Closing.Total != 3 || a.OwnRevision != 3 || a.Misstatements != nil {
		t.Errorf("a: %d in lines, %d used, closed by %+v at %d, wrong %v", a.Lines.Total(), a.Used("a"), a.Closing, a.OwnRevision, a.Misstatements)
	}
	if b.Lines.Total() != 10 || b.Used("b") != 10 || b.IsClosed() || b.OwnRevision != 0 {
		t.Errorf("b: %d in lines, %d used at %d", b.Lines.Total(), b.Used("b"), b.OwnRevision)
	}
	if diff := cmp.Diff(l.lines["b"].Lines, b.Lines); diff != "" {
		t.Error(diff)
	}
	if others := refoldLog(t, l, "2025-12").Streams; len(others) != 0 {
		t.Errorf("folded %d periods of another month", len(others))
	}
}

func TestWrongStatementsAndClosingsAfterASharedStreamAreReported(t *testing.T) {
	t.Parallel()
	wrongUsed := func(e event.UsageLinesStated) event.UsageLinesStated { e.Used++; return e }
	wrongCap := func(e event.UsageLinesStated) event.UsageLinesStated {
		e.Accounts = []event.UsageAccountState{{Account: "a", Cap: 7, Used: e.Used}}
		return e
	}
	wrongLine := func(e event.UsageLinesStated) event.UsageLinesStated {
		e.Lines = []event.UsageLineStated{{Day: lastDay, UsageCount: e.Lines[0].UsageCount}}
		return e
	}
	for rule, c := range map[string]struct {
		change  func(event.UsageLinesStated) event.UsageLinesStated
		closing func(event.UsageClosed) event.UsageClosed
		notOver bool
		want    string
	}{
		"all is right":                        {want: "[]"},
		"another sum":                         {change: wrongUsed, want: "[{1 usage.lines-stated.v1}]"},
		"another cap":                         {change: wrongCap, want: "[{1 usage.lines-stated.v1}]"},
		"another line":                        {change: wrongLine, want: "[{1 usage.lines-stated.v1}]"},
		"a closing with another total":        {closing: func(e event.UsageClosed) event.UsageClosed { e.Total++; return e }, want: "[{2 usage.closed.v1}]"},
		"a closing with other lines":          {closing: func(e event.UsageClosed) event.UsageClosed { e.Digest = nil; return e }, want: "[{2 usage.closed.v1}]"},
		"while requests may still be counted": {notOver: true, want: "[{1 usage.lines-stated.v1} {2 usage.closed.v1}]"},
	} {
		l := newSharedLog(t, "a")
		l.tick("i", 3, "a")
		if !c.notOver {
			l.append(event.SharedUsageEnded{PeriodRef: refOf("a")})
		}
		stated, closing := l.lines["a"].Statements()[0], l.lines["a"].Lines.ClosingEvent()
		if c.change != nil {
			stated = c.change(stated)
		}
		if c.closing != nil {
			closing = c.closing(closing)
		}
		l.appendOwn("a", stated, closing)
		if got := l.misstatements("a"); got != c.want {
			t.Errorf("%s: got %s, want %s", rule, got, c.want)
		}
	}
	l := newSharedLog(t, "a")
	l.tick("i", 3, "a")
	l.append(event.SharedUsageEnded{PeriodRef: refOf("a")})
	l.appendOwn("a", l.lines["a"].Lines.ClosingEvent())
	if got := l.misstatements("a"); got != "[{1 usage.closed.v1}]" {
		t.Errorf("a closing without statements: %s", got)
	}
}

func TestWrongSnapshotsOfSharedStreamsAreReported(t *testing.T) {
	t.Parallel()
	for rule, c := range map[string]struct {
		change func([]event.SharedUsageSnapshotTaken)
		later  bool // the snapshot is as of an earlier event
		wrong  bool
	}{
		"right":                    {func([]event.SharedUsageSnapshotTaken) {}, false, false},
		"right, as of an earlier":  {func([]event.SharedUsageSnapshotTaken) {}, true, false},
		"another sum":              {func(p []event.SharedUsageSnapshotTaken) { p[0].Periods[0].Used++ }, false, true},
		"another number of a key":  {func(p []event.SharedUsageSnapshotTaken) { p[0].Keys[0], p[0].Keys[1] = p[0].Keys[1], p[0].Keys[0] }, false, true},
		"a sequence that is lost":  {func(p []event.SharedUsageSnapshotTaken) { p[0].Sequences = nil }, false, true},
		"as of what is to come":    {func(p []event.SharedUsageSnapshotTaken) { p[0].AsOfRevision = 99 }, false, true},
		"a part that cannot be":    {func(p []event.SharedUsageSnapshotTaken) { p[0].Part = 2 }, false, true},
		"a part of more, the rest": {func(p []event.SharedUsageSnapshotTaken) { p[0].Parts, p[0].Periods = 2, nil }, false, false},
	} {
		l := newSharedLog(t, "a", "b")
		l.tick("i", 3, "a", "b")
		parts := l.state.Snapshot("i", l.revision)
		if c.change(parts); c.later {
			l.tick("i", 4, "b")
		}
		for _, p := range parts {
			l.append(p)
		}
		result, err := (&reconcile.Reconciler{Log: l, Read: openRows(t), WaitForUsage: noWait, RunningInstances: noInstances}).Run(t.Context(), "2025-11")
		if err != nil {
			t.Fatal(err)
		}
		wrong := false
		for _, d := range result.Differences {
			wrong = wrong || d.Kind == "solde" && d.Shown == fmt.Sprintf("%s@%d", l.name, l.revision) && d.Period == "2025-11"
		}
		if wrong != c.wrong {
			t.Errorf("%s: reported %t, want %t: %v", rule, wrong, c.wrong, result.Differences)
		}
	}
}

func TestUnansweredLinesOfSharedTicksAreThoseThatCount(t *testing.T) {
	t.Parallel()
	l := newSharedLog(t, "a", "b")
	l.tick("crashed", 90, "a")
	l.tick("crashed", 20, "a", "b") // a has no 20 left
	l.tick("ended", 1, "a")
	appendEvents(t, l, "incarnation-ended", event.InstanceEnded{InstanceID: "ended"})
	result, err := (&reconcile.Reconciler{Log: l, Read: openRows(t), WaitForUsage: noWait, RunningInstances: noInstances}).Run(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Unanswered) != 1 || result.Unanswered[0].InstanceID != "crashed" || result.Unanswered[0].Requests != 20 || result.Unanswered[0].Lines[0].Contract != "b" {
		t.Errorf("got %+v", result.Unanswered)
	}
	if line := result.Unanswered[0].Lines[0]; line.Period != firstDay.String() || line.Day != (plan.Date{Year: 2025, Month: 11, Day: 21}).String() {
		t.Errorf("got %+v", line)
	}
}

// openRows makes a Reader of a read model without rows.
func openRows(t *testing.T) *usage.Reader {
	t.Helper()
	registry, _, promote := sqldbtest.NewGeneration(t, t.TempDir(), table.UsageModel)
	promote()
	return usage.New(registry)
}

func noWait(context.Context) {}

func noInstances(context.Context) (map[string]bool, error) { return nil, nil }

// shortLog is a log that ends early for those who read all of it, as if the rest were appended meanwhile.
type shortLog struct {
	eventstore.Store
	events int
}

func (l shortLog) ReadAll(ctx context.Context, from eventstore.Checkpoint, filter eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		n := 0
		for s, err := range l.Store.ReadAll(ctx, from, filter) {
			if s.Kind == eventstore.EventAppeared {
				n++
			}
			if n > l.events || !yield(s, err) {
				return
			}
		}
	}
}

// row is the period of a contract as the read model has it now.
func (l *sharedLog) row(contract string, own int64) (table.UsagePeriod, []table.UsageLine) {
	u := l.lines[contract]
	limit, _, _ := u.Cap(contract)
	row := table.UsagePeriod{
		Stream: usagefold.StreamName(contract, firstDay), Contract: contract, First: firstDay.String(), Next: lastDay.String(), Cap: limit, Used: u.Used(contract),
		Opened: 1, Revision: l.revision, Shared: l.name, OwnRevision: own,
	}
	if u.IsEnded() {
		c := u.Lines.ClosingEvent()
		row.Ended, row.Closed, row.Total, row.Lines, row.Digest = 2, 3, c.Total, c.LineCount, fmt.Sprintf("%x", c.Digest)
	}
	var lines []table.UsageLine
	for at, n := range u.Lines {
		lines = append(lines, table.UsageLine{First: row.First, Account: at.Account, Contract: contract, Day: at.Day.String(), Key: at.Key, Endpoint: at.Endpoint, Requests: n})
	}
	return row, lines
}

// The read model is ahead of the fold of the log, and each period of the shared stream is at another revision.
func TestPeriodsOfASharedStreamAreComparedEachAtItsOwnRevision(t *testing.T) {
	t.Parallel()
	contracts := []string{"a", "b", "c", "d"}
	l := newSharedLog(t, contracts[:3]...)
	l.tick("i", 1, "a", "b", "c")
	short := shortLog{l, 7}
	var rows []table.UsagePeriod
	var lines []table.UsageLine
	keep := func(contract string, own int64) {
		row, of := l.row(contract, own)
		rows, lines = append(rows, row), append(lines, of...)
	}
	l.tick("i", 2, "a", "c")
	l.append(event.SharedUsageCapSet{PeriodRef: refOf("b"), UsageCapSet: event.UsageCapSet{Account: "b", Cap: 90, AsOfPosition: 5}})
	keep("b", 0)
	l.append(event.SharedUsageCapSet{PeriodRef: refOf("b"), UsageCapSet: event.UsageCapSet{Account: "b", Cap: 70, AsOfPosition: 6}})
	l.lines["d"] = usagefold.NewPeriodUsage()
	l.appendOwn("d", event.UsageCountedIn{PeriodRef: refOf("d"), Stream: l.name})
	l.append(event.UsageOpened{Contract: "d", First: firstDay, Next: lastDay, Cap: 10})
	l.tick("i", 3, "a", "d", "b")
	keep("a", 0)
	l.tick("i", 4, "a", "d", "c")
	keep("d", 0)
	closing := l.finish("c")
	l.appendOwn("c", closing)
	keep("c", 2)
	l.tick("i", 5, "a", "b", "d")
	r := reconcile.Reconciler{Log: short, Read: openReader(t, rows, lines), WaitForUsage: noWait, RunningInstances: noInstances}
	found, err := r.Run(t.Context(), "")
	if err != nil || len(found.Differences) > 0 || found.Periods != len(contracts) || found.Requests != 6+1+7+7 {
		t.Errorf("%d periods, %d requests, %+v, %v", found.Periods, found.Requests, found.Differences, err)
	}
	lines[0].Requests++
	r.Read = openReader(t, rows, lines)
	if found, err := r.Run(t.Context(), ""); err != nil || len(found.Differences) != 1 || found.Differences[0].Kind != "ligne" {
		t.Errorf("with a wrong line: %+v, %v", found.Differences, err)
	}
}

// A period's own stream has every figure once the shared stream is gone.
func TestAClosedPeriodIsComparedWithItsStatementsIfItsSharedStreamIsGone(t *testing.T) {
	t.Parallel()
	whole := newSharedLog(t, "a")
	whole.tick("i", 3, "a")
	closing := whole.finish("a")
	row, lines := whole.row("a", 2)
	row.Revision, row.Opened = 0, 0
	log := openLog(t)
	appendEvents(t, log, row.Stream, event.UsageCountedIn{PeriodRef: refOf("a"), Stream: whole.name}, whole.lines["a"].Statements()[0], closing)
	r := reconcile.Reconciler{Log: log, Read: openReader(t, []table.UsagePeriod{row}, lines), WaitForUsage: noWait, RunningInstances: noInstances}
	if found, err := r.Run(t.Context(), ""); err != nil || len(found.Differences) > 0 || found.Requests != 3 {
		t.Errorf("%d requests, %+v, %v", found.Requests, found.Differences, err)
	}
	wrong := closing
	wrong.Total++
	log = openLog(t)
	appendEvents(t, log, row.Stream, event.UsageCountedIn{PeriodRef: refOf("a"), Stream: whole.name}, whole.lines["a"].Statements()[0], wrong)
	r.Log = log
	if found, err := r.Run(t.Context(), ""); err != nil || !slices.ContainsFunc(found.Differences, func(d body.UsageDifference) bool { return d.Kind == "cloture" }) {
		t.Errorf("a closing with another total: %+v, %v", found.Differences, err)
	}
}
