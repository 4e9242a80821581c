package usage_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/queries/usage"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

const (
	sharedStream      = "usage-2025-11.0"
	eventsPerSnapshot = 50
)

var sharedFirst, sharedNext = plan.Date{Year: 2025, Month: 11, Day: 21}, plan.Date{Year: 2025, Month: 12, Day: 21}

// sharedLog is a usageLog with a stream that contracts share, and its fold. It counts the events that are read of that stream.
type sharedLog struct {
	*usageLog
	random   *rand.Rand
	fold     usagefold.StreamsState
	shared   *usagefold.SharedState // the stream's
	rows     map[event.PeriodRef]*table.UsagePeriod
	sums     map[event.PeriodRef]map[usagefold.LineKey]*table.UsageLine
	sequence int64
	revision int64 // of the shared stream
	read     int
}

// ReadStream implements eventstore.Store.
func (l *sharedLog) ReadStream(ctx context.Context, stream string, from eventstore.Revision, d eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		for r, err := range l.usageLog.ReadStream(ctx, stream, from, d) {
			if stream == sharedStream {
				l.read++
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func refOf(contract string) event.PeriodRef {
	return event.PeriodRef{Contract: contract, First: sharedFirst}
}

// append appends an event and folds it into the rows.
func (l *sharedLog) append(t *testing.T, stream string, e event.Event) {
	t.Helper()
	batch, err := l.codec.Encode(t.Context(), stream, uuid.New(), eventstore.Metadata{Actor: "system", Reason: "for the test"}, []event.Event{e})
	if err != nil {
		t.Fatal(err)
	}
	done, err := l.Append(t.Context(), stream, eventstore.Any, batch)
	if err != nil {
		t.Fatal(err)
	}
	recorded, revision := time.Now(), int64(done.Revision)
	if stream == sharedStream {
		l.shared.Apply(e, recorded)
		l.revision = revision
	}
	for _, part := range l.fold.Apply(stream, revision, e, recorded) {
		if part.Verdict == usagefold.Counted {
			l.addRows(stream, revision, part, recorded)
		}
	}
}

// addRows adds to the rows what counts.
func (l *sharedLog) addRows(stream string, revision int64, part usagefold.PeriodEvent, recorded time.Time) {
	row := l.rows[part.PeriodRef]
	switch part.Event.(type) {
	case event.SharedUsageEnded:
		row.Ended = table.InstantOf(recorded)
	case event.UsageClosed:
		row.Closed = table.InstantOf(recorded)
	}
	added, touched := usagefold.Lines{}, map[usagefold.LineKey]bool{}
	added.Apply(part.Event, part.Verdict)
	switch e := part.Event.(type) {
	case event.UsageTicked:
		touch(touched, e.Day, e.Counts)
	case event.UsageRefunded:
		touch(touched, e.Day, e.Counts)
	}
	for at := range added {
		touched[at] = true
	}
	for at := range touched {
		line := l.sums[part.PeriodRef][at]
		if line == nil {
			line = &table.UsageLine{First: sharedFirst.String(), Account: at.Account, Contract: part.Contract, Day: at.Day.String(), Key: at.Key, Endpoint: at.Endpoint}
			l.sums[part.PeriodRef][at] = line
		}
		line.Requests += added[at]
		if stream == sharedStream {
			if line.SharedTo = revision; line.SharedFrom == 0 {
				line.SharedFrom = revision
			}
		}
	}
}

func touch(touched map[usagefold.LineKey]bool, day plan.Date, counts []event.UsageCount) {
	for _, c := range counts {
		touched[usagefold.LineKey{Day: day, Account: c.Account, Key: c.Key, Endpoint: c.Endpoint}] = true
	}
}

// openSharedLog makes a log in which contracts have opened a period that is counted in one stream.
func openSharedLog(t *testing.T, random *rand.Rand, contracts []string) *sharedLog {
	t.Helper()
	l := &sharedLog{usageLog: openUsageLog(t), random: random, shared: &usagefold.SharedState{}, rows: map[event.PeriodRef]*table.UsagePeriod{}, sums: map[event.PeriodRef]map[usagefold.LineKey]*table.UsageLine{}}
	for _, c := range contracts {
		ref := refOf(c)
		l.rows[ref] = &table.UsagePeriod{
			Stream: usagefold.StreamName(c, sharedFirst), Contract: c, First: sharedFirst.String(), Next: sharedNext.String(), Shared: sharedStream,
			PeriodState: fmt.Sprintf(`{"contract":%q,"first":%q,"next":%q}`, c, sharedFirst, sharedNext),
		}
		l.sums[ref] = map[usagefold.LineKey]*table.UsageLine{}
		l.append(t, usagefold.StreamName(c, sharedFirst), event.UsageCountedIn{PeriodRef: ref, Stream: sharedStream})
		l.append(t, sharedStream, event.UsageOpened{Contract: c, First: sharedFirst, Next: sharedNext, Cap: 3000})
		l.append(t, sharedStream, event.SharedUsageCapSet{PeriodRef: ref, UsageCapSet: event.UsageCapSet{Account: c + "-sub", Cap: 100, AsOfPosition: 1}})
	}
	return l
}

// appendTick appends a tick of some contracts on a day, now and then one that is on the log already, with a refund or a snapshot after it.
func (l *sharedLog) appendTick(t *testing.T, day plan.Date, contracts []string) {
	t.Helper()
	var lines []usagefold.SharedLine
	for _, c := range contracts {
		lines = append(lines, usagefold.SharedLine{
			UsedKey:  event.UsedKey{PeriodRef: refOf(c), Account: c + []string{"", "", "-sub"}[l.random.IntN(3)], Key: fmt.Sprint("k", l.random.IntN(3))},
			Endpoint: []string{"GET /me", "GET /address/verify"}[l.random.IntN(2)], Requests: 1 + l.random.Int64N(5),
		})
	}
	l.sequence++
	tick := l.shared.BuildTick(event.SharedUsageTicked{InstanceID: "i", Sequence: l.sequence - l.random.Int64N(20)/19, Day: day, AsOfRevision: l.revision}, lines)
	l.append(t, sharedStream, tick)
	if some := lines[0]; l.random.IntN(6) == 0 {
		l.append(t, sharedStream, event.SharedUsageRefunded{PeriodRef: some.PeriodRef, UsageRefunded: event.UsageRefunded{
			InstanceID: "j", Sequence: l.sequence, Day: day, Counts: []event.UsageCount{{Account: some.Account, Key: some.Key, Endpoint: some.Endpoint, Requests: some.Requests}},
		}})
	}
	if l.sequence%eventsPerSnapshot == 0 {
		for _, part := range l.shared.Snapshot("i", l.revision) {
			l.append(t, sharedStream, part)
		}
	}
}

// end ends the counting of a contract's period, states and closes it, and corrects it.
func (l *sharedLog) end(t *testing.T, contract string) {
	t.Helper()
	ref := refOf(contract)
	own := usagefold.StreamName(contract, sharedFirst)
	l.append(t, sharedStream, event.SharedUsageEnded{PeriodRef: ref})
	whole := &usagefold.PeriodUsage{PeriodState: *l.shared.Period(ref), Lines: usagefold.Lines{}}
	for at, line := range l.sums[ref] {
		if line.Requests != 0 {
			whole.Lines[at] = line.Requests
		}
	}
	for _, e := range whole.Statements() {
		l.append(t, own, e)
	}
	l.append(t, own, whole.Lines.ClosingEvent())
	l.append(t, own, event.UsageAdjusted{Day: sharedFirst, Account: contract, Key: "k1", Endpoint: "GET /me", Requests: 2})
	l.append(t, own, event.UsageAdjusted{Day: sharedFirst, Account: contract, Key: "new", Endpoint: "GET /me", Requests: 1})
}

// reader returns a CountReader over the log and its rows.
func (l *sharedLog) reader(t *testing.T) *usage.CountReader {
	t.Helper()
	var lines []table.UsageLine
	var periods []table.UsagePeriod
	for ref, sums := range l.sums {
		periods = append(periods, *l.rows[ref])
		for _, line := range sums {
			lines = append(lines, *line)
		}
	}
	return &usage.CountReader{Log: l, Codec: l.codec, Read: openReader(t, t.TempDir(), periods, lines)}
}

// TestFiguresOfSharedStreamsAreTheSumsOfTheirCounts is TestEveryFigureIsTheSumOfItsCounts for periods that are counted in one stream, those
// that are open and those that were closed and corrected. A quiet contract, used on one day, is read without the month of the others.
func TestFiguresOfSharedStreamsAreTheSumsOfTheirCounts(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	contracts := []string{"open", "closed", "quiet", "quiet-and-closed", "unused", "unused-and-closed"}
	l := openSharedLog(t, rand.New(rand.NewPCG(seed, 0)), contracts)
	const days, ticksPerDay = 20, 60
	for n := range days * ticksPerDay {
		busy := []string{"open", "closed"}
		if n/ticksPerDay == 12 {
			busy = append(busy, "quiet", "quiet-and-closed")
		}
		l.appendTick(t, plan.DateOf(sharedFirst.Start().AddDate(0, 0, n/ticksPerDay)), busy[l.random.IntN(2):])
	}
	for _, c := range []string{"closed", "quiet-and-closed", "unused-and-closed"} {
		l.end(t, c)
	}
	counts, kinds := l.reader(t), map[usage.CountKind]int{}
	for _, contract := range contracts {
		for _, account := range []string{contract, contract + "-sub"} {
			q := usage.Query{Account: account, Contract: contract, First: sharedFirst, GroupBy: []usage.Dimension{"key", "endpoint", "day"}}
			shown, err := counts.Read.SummarizeAccount(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			l.read = 0
			compareLines(t, account, shown.Lines, sumCounts(t, counts, usage.CountQuery{Account: account, Contract: contract, First: sharedFirst}, kinds))
			if most := 3*ticksPerDay + 3*eventsPerSnapshot; contract != "open" && contract != "closed" && l.read > most {
				t.Errorf("%s: %d of %d events were read, more than %d", account, l.read, l.revision, most)
			}
			checkFilters(t, counts, q, shown)
		}
	}
	for _, kind := range []usage.CountKind{usage.CountTicked, usage.CountRefunded, usage.CountAdjusted} {
		if kinds[kind] == 0 {
			t.Errorf("no count of kind %d", kind)
		}
	}
}
