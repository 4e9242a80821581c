package usage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/queries/usage"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// oneKeyVault has the same key for everybody.
type oneKeyVault struct{}

func (oneKeyVault) Key(context.Context, string, bool) ([]byte, error) { return make([]byte, 32), nil }
func (oneKeyVault) DestroyKey(context.Context, string) error          { return nil }
func (oneKeyVault) ForgetKeys()                                       {}

// usageLog is a log of usage, with the rows that its fold gives.
type usageLog struct {
	*journal.Journal
	codec   *eventstore.Codec
	periods []table.UsagePeriod
	lines   []table.UsageLine
}

func openUsageLog(t *testing.T) *usageLog {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return &usageLog{Journal: j, codec: eventstore.NewCodec(oneKeyVault{})}
}

// appendPeriod appends a whole period. Each event has the reason "for NUMBER".
func (l *usageLog) appendPeriod(t *testing.T, contract string, first plan.Date, events ...event.Event) {
	t.Helper()
	stream, folded := usagefold.StreamName(contract, first), usagefold.NewPeriodUsage()
	closed := time.Time{}
	for i, e := range events {
		batch, err := l.codec.Encode(t.Context(), stream, uuid.New(), eventstore.Metadata{Actor: "system", Reason: fmt.Sprint("for ", i)}, []event.Event{e})
		if err == nil {
			_, err = l.Append(t.Context(), stream, eventstore.Any, batch)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.(event.UsageClosed); ok && folded.Apply(e, time.Now()) == usagefold.Counted {
			closed = time.Now()
		} else if !ok {
			folded.Apply(e, time.Now())
		}
	}
	l.periods = append(l.periods, table.UsagePeriod{Stream: stream, Contract: contract, First: first.String(), Next: folded.Period.Next.String(),
		Closed: table.InstantOf(closed), PeriodState: `{"contract":"` + contract + `","first":"` + first.String() + `","next":"` + folded.Period.Next.String() + `"}`})
	for at, n := range folded.Lines {
		l.lines = append(l.lines, table.UsageLine{First: first.String(), Account: at.Account, Contract: contract, Day: at.Day.String(), Key: at.Key, Endpoint: at.Endpoint, Requests: n})
	}
}

func (l *usageLog) read(t *testing.T) *usage.CountReader {
	t.Helper()
	return &usage.CountReader{Log: l, Codec: l.codec, Read: openReader(t, t.TempDir(), l.periods, l.lines)}
}

// randomPeriod makes events of a period of an agency and its sub-client: ticks that count and some that do not, refunds, and perhaps a
// closing with corrections after it.
func randomPeriod(random *rand.Rand, contract string) (events []event.Event) {
	began := plan.Date{Year: 2025, Month: 11, Day: 21}
	events = append(events, event.UsageOpened{Contract: contract, First: began, Next: plan.Date{Year: 2025, Month: 12, Day: 21}, Cap: 900},
		event.UsageCapSet{Account: contract + "-sub", Cap: 400, AsOfPosition: 1})
	randomCount := func() event.UsageCount {
		return event.UsageCount{Account: contract + []string{"", "", "-sub"}[random.IntN(3)], Key: fmt.Sprint("k", random.IntN(3)), Endpoint: []string{"GET /me", "GET /address/verify"}[random.IntN(2)], Requests: random.Int64N(8)}
	}
	randomDay := func() plan.Date { return plan.Date{Year: 2025, Month: 11, Day: 21 + random.IntN(5)} }
	for sequence := int64(1); sequence < 150+random.Int64N(200); sequence++ {
		counts := make([]event.UsageCount, 1+random.IntN(3))
		for i := range counts {
			counts[i] = randomCount()
		}
		n := sequence - random.Int64N(20)/19 // one in twenty repeats the one before it
		if events = append(events, event.UsageTicked{InstanceID: "i", Sequence: n, Day: randomDay(), Counts: counts}); random.IntN(8) == 0 {
			events = append(events, event.UsageRefunded{InstanceID: "j", Sequence: sequence, Day: randomDay(), Counts: counts[:1]})
		}
	}
	if random.IntN(3) == 0 {
		return events
	}
	events = append(events, event.UsageClosed{Total: 1, LineCount: 1})
	for range 1 + random.IntN(9) {
		c := randomCount()
		events = append(events, event.UsageAdjusted{Day: randomDay(), Account: c.Account, Key: c.Key, Endpoint: c.Endpoint, Requests: c.Requests - 4})
	}
	return append(events, event.UsageTicked{InstanceID: "late", Sequence: 1, Day: began, Counts: []event.UsageCount{{Account: contract, Key: "k1", Endpoint: "GET /me", Requests: 3}}})
}

// TestEveryFigureIsTheSumOfItsCounts: whatever the log holds, with refunds, closed periods, corrections, and sub-clients in the stream of
// their agency, the lines of each account are the sums of what is counted for them on the log, for each key, endpoint and day.
func TestEveryFigureIsTheSumOfItsCounts(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random, began := rand.New(rand.NewPCG(seed, 0)), plan.Date{Year: 2025, Month: 11, Day: 21}
	l := openUsageLog(t)
	for i := range 8 {
		contract := fmt.Sprintf("c%d", i)
		l.appendPeriod(t, contract, began, randomPeriod(random, contract)...)
	}
	counts, kinds := l.read(t), map[usage.CountKind]int{}
	for i := range 8 {
		contract := fmt.Sprintf("c%d", i)
		for _, account := range []string{contract, contract + "-sub"} {
			q := usage.Query{Account: account, Contract: contract, First: began, GroupBy: []usage.Dimension{"key", "endpoint", "day"}}
			shown, err := counts.Read.SummarizeAccount(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			compareLines(t, account, shown.Lines, sumCounts(t, counts, usage.CountQuery{Account: account, Contract: contract, First: began}, kinds))
			checkFilters(t, counts, q, shown)
		}
	}
	for _, kind := range []usage.CountKind{usage.CountTicked, usage.CountRefunded, usage.CountAdjusted} {
		if kinds[kind] == 0 {
			t.Errorf("no count of kind %d", kind)
		}
	}
}

func compareLines(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: want (-), got (+)\n%s", what, d)
	}
}

// checkFilters compares the lines of a day, a key and an endpoint, each by itself and all together, with the counts that the same filter
// finds.
func checkFilters(t *testing.T, counts *usage.CountReader, q usage.Query, all usage.Summary) {
	t.Helper()
	if len(all.Lines) == 0 {
		return
	}
	some := all.Lines[len(all.Lines)/2]
	for _, f := range []usage.Line{{Day: some.Day}, {Key: some.Key}, {Endpoint: some.Endpoint}, {Day: some.Day, Key: some.Key, Endpoint: some.Endpoint}, {Key: "none"}} {
		q.Day, q.Key, q.Endpoint = f.Day, f.Key, f.Endpoint
		shown, err := counts.Read.SummarizeAccount(t.Context(), q)
		if err != nil || shown.Total != all.Total {
			t.Errorf("%+v: total %d, want that of all lines, %d; %v", f, shown.Total, all.Total, err)
		}
		for _, l := range shown.Lines {
			if f.Day != (plan.Date{}) && l.Day != f.Day || f.Key != "" && l.Key != f.Key || f.Endpoint != "" && l.Endpoint != f.Endpoint {
				t.Errorf("%+v: the line %+v", f, l)
			}
		}
		compareLines(t, fmt.Sprintf("%s %+v", q.Account, f), shown.Lines, sumCounts(t, counts, usage.CountQuery{
			Account: q.Account, Contract: q.Contract, First: q.First, Day: f.Day, Key: f.Key, Endpoint: f.Endpoint,
		}, map[usage.CountKind]int{}))
	}
}

// sumCounts adds counts up to lines, and counts their kinds.
func sumCounts(t *testing.T, reader *usage.CountReader, q usage.CountQuery, kinds map[usage.CountKind]int) (lines []usage.Line) {
	t.Helper()
	sums := usagefold.Lines{}
	for c, err := range reader.Counts(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Recorded.IsZero() || c.Position == 0 || c.Requests == 0 {
			t.Errorf("a count without its place: %+v", c)
		}
		if (c.Kind == usage.CountAdjusted) != (c.Reason != "") {
			t.Errorf("kind %d has the reason %q", c.Kind, c.Reason)
		}
		kinds[c.Kind]++
		sums[usagefold.LineKey{Day: c.Day, Account: q.Account, Key: c.Key, Endpoint: c.Endpoint}] += c.Requests
	}
	for _, at := range sums.SortedKeys() {
		if sums[at] != 0 {
			lines = append(lines, usage.Line{Day: at.Day, Key: at.Key, Endpoint: at.Endpoint, Requests: sums[at]})
		}
	}
	return lines
}

// TestAccountPeriodsAreThoseWithCounts: the periods of an account that was counted for two agencies, and on days of its own; the latest
// comes first, and periods of others and before the account are not its own.
func TestAccountPeriodsAreThoseWithCounts(t *testing.T) {
	t.Parallel()
	l := openUsageLog(t)
	date := func(year int, month time.Month, day int) plan.Date {
		return plan.Date{Year: year, Month: month, Day: day}
	}
	var sequence int64
	for _, p := range []struct {
		contract string
		first    plan.Date
		account  string
		isClosed bool
	}{
		{"mende", date(2024, 1, 31), "mende", true}, {"mende", date(2024, 2, 29), "mende", true}, {"sud", date(2025, 6, 5), "mende", false},
		{"sud", date(2025, 7, 5), "other", false}, {"mende", date(2020, 1, 1), "mende", true},
	} {
		sequence++
		events := []event.Event{
			event.UsageOpened{Contract: p.contract, First: p.first, Next: plan.PeriodAt(p.first, p.first.Start()).Next, Cap: 100},
			event.UsageCapSet{Account: p.account, Cap: 50, AsOfPosition: 1},
			event.UsageTicked{InstanceID: "i", Sequence: sequence, Day: p.first, Counts: []event.UsageCount{{Account: p.account, Key: "k", Endpoint: "GET /me", Requests: sequence}}},
		}
		if p.isClosed {
			events = append(events, event.UsageClosed{Total: sequence, LineCount: 1})
		}
		l.appendPeriod(t, p.contract, p.first, events...)
	}
	found, err := l.read(t).Read.AccountPeriods(t.Context(), "mende", date(2023, 12, 1), date(2026, 12, 31))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range found {
		got = append(got, fmt.Sprint(p.Contract, " ", p.First, " ", p.Next, " ", !p.Closed.IsZero()))
	}
	compareLines(t, "periods", []string{"sud 2025-06-05 2025-07-05 false", "mende 2024-02-29 2024-03-29 true", "mende 2024-01-31 2024-02-29 true"}, got)
}
