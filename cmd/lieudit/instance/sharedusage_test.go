package instance_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/projector/projectortest"
	projection "lieudit/projections/usage"
	"lieudit/queries/usage"
	"lieudit/queries/usage/reconcile"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// usageWriter writes the same requests to a log as before shared streams, or in shared streams.
type usageWriter struct {
	*projectortest.Fixture
	isShared bool
	streams  usagefold.StreamsState
	written  map[string]int64 // events by stream
	lines    map[event.PeriodRef]*usagefold.PeriodUsage
}

func newUsageWriter(t *testing.T, address string, isShared bool) *usageWriter {
	return &usageWriter{
		Fixture: projectortest.Start(t, address, projection.Model), isShared: isShared,
		written: map[string]int64{}, lines: map[event.PeriodRef]*usagefold.PeriodUsage{},
	}
}

// write appends an event and folds it.
func (w *usageWriter) write(stream string, e event.Event) {
	w.Append(stream, e)
	for _, part := range w.streams.Apply(stream, w.written[stream], e, time.Now()) {
		if part.State == nil {
			continue
		}
		u := w.lines[part.PeriodRef]
		if u == nil {
			u = usagefold.NewPeriodUsage()
			w.lines[part.PeriodRef] = u
		}
		u.PeriodState = *part.State
		u.Lines.Apply(part.Event, part.Verdict)
	}
	w.written[stream]++
}

func ownStream(ref event.PeriodRef) string { return usagefold.StreamName(ref.Contract, ref.First) }

// sharedStream is one of two for each month.
func sharedStream(ref event.PeriodRef) string {
	return usagefold.SharedStreamName(usagefold.MonthOf(ref.First), usagefold.ShardOf(ref.Contract, 2))
}

func (w *usageWriter) open(ref event.PeriodRef, next plan.Date, limit int64) {
	opened := event.UsageOpened{Contract: ref.Contract, First: ref.First, Next: next, Cap: limit}
	if !w.isShared {
		w.write(ownStream(ref), opened)
		return
	}
	w.write(ownStream(ref), event.UsageCountedIn{PeriodRef: ref, Stream: sharedStream(ref)})
	w.write(sharedStream(ref), opened)
}

// happen writes an event about a period in the form that its stream has for it.
func (w *usageWriter) happen(ref event.PeriodRef, e event.Event) {
	if !w.isShared {
		w.write(ownStream(ref), e)
		return
	}
	w.write(sharedStream(ref), (&usagefold.SharedState{}).Event(ref, e))
}

// tick counts lines of several periods: in one tick for each stream.
func (w *usageWriter) tick(instance string, sequence int64, day plan.Date, lines []usagefold.SharedLine) {
	byStream := map[string][]usagefold.SharedLine{}
	for _, l := range lines {
		stream := ownStream(l.PeriodRef)
		if w.isShared {
			stream = sharedStream(l.PeriodRef)
		}
		byStream[stream] = append(byStream[stream], l)
	}
	for stream, lines := range byStream {
		slices.SortFunc(lines, usagefold.CompareLines)
		if w.isShared {
			w.write(stream, (&usagefold.SharedState{}).BuildTick(event.SharedUsageTicked{InstanceID: instance, Sequence: sequence, Day: day}, lines))
			continue
		}
		e := event.UsageTicked{InstanceID: instance, Sequence: sequence, Day: day}
		for _, l := range lines {
			e.Counts = append(e.Counts, event.UsageCount{Account: l.Account, Key: l.Key, Endpoint: l.Endpoint, Requests: l.Requests})
		}
		w.write(stream, e)
	}
}

// close ends a period, and states its lines if they are not on its own stream.
func (w *usageWriter) close(ref event.PeriodRef) {
	if u := w.lines[ref]; w.isShared && u.IsOpen() {
		w.write(sharedStream(ref), event.SharedUsageEnded{PeriodRef: ref})
		for _, e := range u.Statements() {
			w.write(ownStream(ref), e)
		}
	}
	w.write(ownStream(ref), w.lines[ref].Lines.ClosingEvent())
}

// contractAccounts are the accounts that count for each contract: the first is an agency.
var contractAccounts = map[string][]string{"gevaudan": {"gevaudan", "mende", "florac"}, "aubrac": {"aubrac"}, "causse": {"causse"}, "margeride": {"margeride"}}

// usagePlay has the same things happen to several logs.
type usagePlay struct {
	*rand.Rand
	logs []*usageWriter
}

var (
	playedContracts = []string{"gevaudan", "aubrac", "causse", "margeride"}
	playedFirsts    = []plan.Date{{Year: 2025, Month: 10, Day: 21}, {Year: 2025, Month: 11, Day: 21}}
)

func (p usagePlay) each(do func(*usageWriter)) {
	for _, w := range p.logs {
		do(w)
	}
}

// run plays two periods of each contract. At least one of them is closed.
func (p usagePlay) run() {
	for _, contract := range playedContracts {
		for _, first := range playedFirsts {
			ref := event.PeriodRef{Contract: contract, First: first}
			p.each(func(w *usageWriter) {
				w.open(ref, plan.Date{Year: 2025, Month: first.Month + 1, Day: 21}, 700)
				for _, account := range contractAccounts[contract][1:] {
					w.happen(ref, event.UsageCapSet{Account: account, Cap: 150, AsOfPosition: 1})
				}
			})
		}
	}
	for sequence := int64(1); sequence <= 400; sequence++ {
		p.step(sequence)
	}
	p.each(func(w *usageWriter) { w.close(event.PeriodRef{Contract: "causse", First: playedFirsts[0]}) })
}

func (p usagePlay) randomLine(first plan.Date) usagefold.SharedLine {
	contract := playedContracts[p.IntN(len(playedContracts))]
	account := contractAccounts[contract][p.IntN(len(contractAccounts[contract]))]
	return usagefold.SharedLine{
		UsedKey:  event.UsedKey{PeriodRef: event.PeriodRef{Contract: contract, First: first}, Account: account, Key: fmt.Sprint(account, "-", p.IntN(2))},
		Endpoint: fmt.Sprint("GET /", p.IntN(3)), Requests: 1 + p.Int64N(9),
	}
}

// step is mostly a tick.
func (p usagePlay) step(sequence int64) {
	first := playedFirsts[p.IntN(2)]
	day := plan.Date{Year: 2025, Month: first.Month, Day: 21 + p.IntN(5)}
	var lines []usagefold.SharedLine
	for range 1 + p.IntN(6) {
		lines = append(lines, p.randomLine(first))
	}
	l, instance := lines[0], fmt.Sprint("i", p.IntN(2))
	switch n := p.IntN(40); {
	case n == 0:
		p.each(func(w *usageWriter) {
			w.happen(l.PeriodRef, event.UsageKeyRevoked{Account: l.Account, Key: l.Key})
		})
	case n < 4:
		limit := p.Int64N(900)
		p.each(func(w *usageWriter) {
			w.happen(l.PeriodRef, event.UsageCapSet{Account: l.Account, Cap: limit, AsOfPosition: sequence})
		})
	case n < 7:
		count := event.UsageCount{Account: l.Account, Key: l.Key, Endpoint: l.Endpoint, Requests: 1}
		p.each(func(w *usageWriter) {
			w.happen(l.PeriodRef, event.UsageRefunded{InstanceID: "r", Sequence: sequence, Day: day, Counts: []event.UsageCount{count}})
		})
	case n == 7 && sequence > 200:
		p.each(func(w *usageWriter) {
			w.close(l.PeriodRef)
			w.write(ownStream(l.PeriodRef), event.UsageAdjusted{Day: day, Account: l.Account, Key: l.Key, Endpoint: l.Endpoint, Requests: 3})
		})
	default:
		p.each(func(w *usageWriter) { w.tick(instance, sequence, day, slices.Clone(lines)) })
	}
}

// shownUsage is all that readers say of a log, without times and revisions.
func shownUsage(t *testing.T, w *usageWriter) map[string]any {
	t.Helper()
	shown := map[string]any{}
	var periods []table.UsagePeriod
	for _, p := range projectortest.Rows(w.Fixture, table.UsageModel, table.UsagePeriods) {
		isClosed := p.Closed != 0
		p.Opened, p.Closed, p.Ended, p.Revision, p.OwnRevision, p.Shared, p.PeriodState = 0, 0, 0, 0, 0, "", fmt.Sprint(isClosed)
		periods = append(periods, p)
	}
	shown["periods"] = periods
	lines := slices.DeleteFunc(projectortest.Rows(w.Fixture, table.UsageModel, table.UsageLines), func(l table.UsageLine) bool { return l.Requests == 0 })
	for i := range lines {
		lines[i].SharedFrom, lines[i].SharedTo = 0, 0 // differ, as the streams do
	}
	shown["lines"] = lines
	keys := []string{}
	for _, u := range projectortest.Rows(w.Fixture, table.UsageModel, table.KeyUses) {
		keys = append(keys, u.Account+" "+u.Key)
	}
	shown["keys"] = keys
	reader := usage.New(w.Registry)
	for ref := range w.lines {
		for _, account := range contractAccounts[ref.Contract] {
			addShownAccount(t, w, reader, shown, account, ref)
		}
	}
	var exported []usage.InvoiceLine
	for l, err := range reader.ExportLines(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		exported = append(exported, l)
	}
	shown["export"] = exported
	listed, _, err := reader.ListPeriods(t.Context(), "", usage.PeriodID{}, 100)
	for i := range listed {
		listed[i].Closed = time.Time{}
	}
	unclosed, unclosedErr := reader.UnclosedPeriods(t.Context(), plan.Date{Year: 2026, Month: 1, Day: 1}, 100)
	ahead, aheadErr := reader.PeriodsAhead(t.Context(), plan.Date{Year: 2025, Month: 11, Day: 1}, 100)
	if err := cmp.Or(err, unclosedErr, aheadErr); err != nil {
		t.Fatal(err)
	}
	shown["listed"], shown["unclosed"], shown["ahead"] = listed, unclosed, ahead
	return shown
}

// addShownAccount adds what readers say of an account in a period.
func addShownAccount(t *testing.T, w *usageWriter, reader *usage.Reader, shown map[string]any, account string, ref event.PeriodRef) {
	t.Helper()
	name := fmt.Sprint(account, " from ", ref.First)
	u, err := reader.SummarizeAccount(t.Context(), usage.Query{Account: account, Contract: ref.Contract, First: ref.First, GroupBy: []usage.Dimension{usage.ByDay, usage.ByKey, usage.ByEndpoint}})
	if err != nil {
		t.Fatal(err)
	}
	isClosed := !u.Closed.IsZero()
	u.Entries, u.Closed = 0, time.Time{}
	shown["usage of "+name], shown["closing of "+name] = u, isClosed
	var parts []usage.Count
	counts := &usage.CountReader{Log: w.Log, Codec: w.Codec, Read: reader}
	for c, err := range counts.Counts(t.Context(), usage.CountQuery{Account: account, Contract: ref.Contract, First: ref.First}) {
		if err != nil {
			t.Fatal(err)
		}
		c.Position, c.Recorded = 0, time.Time{}
		parts = append(parts, c)
	}
	shown["counts of "+name] = parts
}

func reconciledUsage(t *testing.T, w *usageWriter) string {
	t.Helper()
	r := reconcile.Reconciler{
		Log: w.Log, Read: usage.New(w.Registry), WaitForUsage: func(context.Context) {},
		RunningInstances: func(context.Context) (map[string]bool, error) { return nil, nil },
	}
	var all []string
	for _, period := range []string{"", "2025-11", "2025-10-21"} {
		found, err := r.Run(t.Context(), period)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d periods, %d lines, %d requests, differences %v", found.Periods, found.Lines, found.Requests, found.Differences))
	}
	return strings.Join(all, "; ")
}

// The same requests show the same rows, answers, exports and reconciliation, whether each period is counted in a stream of its own or they
// share streams.
func TestUsageIsTheSameInSharedStreams(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		old, shared := newUsageWriter(t, address, false), newUsageWriter(t, otherAddress(t, address), true)
		usagePlay{rand.New(rand.NewPCG(seed, 0)), []*usageWriter{old, shared}}.run()
		want, got := shownUsage(t, old), shownUsage(t, shared)
		for name, w := range want {
			if d := gocmp.Diff(w, got[name]); d != "" {
				t.Errorf("%s: (-in their own streams +in shared ones): %s", name, d)
			}
		}
		wantFound, gotFound := reconciledUsage(t, old), reconciledUsage(t, shared)
		if wantFound != gotFound || strings.Count(gotFound, "differences []") != 3 {
			t.Errorf("reconciliation: %s, in shared streams %s", wantFound, gotFound)
		}
	})
}

// otherAddress is a second database of the same kind.
func otherAddress(t *testing.T, address string) string {
	t.Helper()
	if strings.HasPrefix(address, "postgres") {
		return sqldbtest.NewPostgresDatabase(t)
	}
	return t.TempDir()
}
