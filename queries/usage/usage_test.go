package usage_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/usage"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

var (
	first  = plan.Date{Year: 2026, Month: 11, Day: 21}
	second = plan.Date{Year: 2026, Month: 11, Day: 22}
	next   = plan.Date{Year: 2026, Month: 12, Day: 21}
	closed = time.Date(2026, 12, 22, 8, 0, 0, 0, time.UTC)
)

// openReader makes a Reader of the given rows.
func openReader(t *testing.T, address string, periods []table.UsagePeriod, lines []table.UsageLine, uses ...table.KeyUse) *usage.Reader {
	t.Helper()
	registry, db, promote := sqldbtest.NewGeneration(t, address, table.UsageModel)
	err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
		if err := sqldb.Upsert(t.Context(), tx, table.UsagePeriods, periods); err != nil {
			return err
		}
		if err := sqldb.Upsert(t.Context(), tx, table.KeyUses, uses); err != nil {
			return err
		}
		return sqldb.Upsert(t.Context(), tx, table.UsageLines, lines)
	})
	if err != nil {
		t.Fatal(err)
	}
	promote()
	return usage.New(registry)
}

// periodRow is the period of an agency: 100 requests, 30 of its own, and 15 of its sub-client mende's 20.
func periodRow(t *testing.T) table.UsagePeriod {
	t.Helper()
	book, err := json.Marshal(event.UsageSnapshotTaken{Contract: "gevaudan", First: first, Next: next, Used: 45, Accounts: []event.UsageAccountState{
		{Account: "gevaudan", Cap: 100, Used: 30}, {Account: "mende", Cap: 20, Used: 15}, {Account: "florac", Cap: 90, Used: 0},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return table.UsagePeriod{Stream: usagefold.StreamName("gevaudan", first), Contract: "gevaudan", First: "2026-11-21", Next: "2026-12-21",
		Cap: 100, Used: 45, Closed: table.InstantOf(closed), PeriodState: string(book)}
}

func line(account, day, key, endpoint string, requests int64) table.UsageLine {
	return table.UsageLine{First: "2026-11-21", Account: account, Contract: "gevaudan", Day: day, Key: key, Endpoint: endpoint, Requests: requests}
}

func TestUsageOfAnAccountIsGroupedAsAsked(t *testing.T) {
	t.Parallel()
	other := line("mende", "2026-10-30", "k1", "GET /me", 7)
	other.First = "2026-10-21"
	lines := []table.UsageLine{
		line("mende", "2026-11-21", "k1", "GET /me", 5), line("mende", "2026-11-21", "k2", "GET /me", 3),
		line("mende", "2026-11-22", "k1", "GET /address/verify", 7), line("mende", "2026-11-22", "k2", "GET /me", 0), // refunded
		line("gevaudan", "2026-11-22", "k9", "GET /me", 30), other,
	}
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		c := openReader(t, address, []table.UsagePeriod{periodRow(t)}, lines)
		for rule, q := range map[string]struct {
			by   []usage.Dimension
			want []usage.Line
		}{
			"not at all": {nil, []usage.Line{{Requests: 15}}},
			"by day":     {[]usage.Dimension{"day"}, []usage.Line{{Day: first, Requests: 8}, {Day: second, Requests: 7}}},
			"by key":     {[]usage.Dimension{"key"}, []usage.Line{{Key: "k1", Requests: 12}, {Key: "k2", Requests: 3}}},
			"by all, in whatever order": {[]usage.Dimension{"endpoint", "key", "day"}, []usage.Line{
				{first, "k1", "GET /me", 5}, {first, "k2", "GET /me", 3}, {second, "k1", "GET /address/verify", 7},
			}},
		} {
			got, err := c.SummarizeAccount(t.Context(), usage.Query{Account: "mende", Contract: "mende", First: first, GroupBy: q.by})
			want := usage.Summary{Contract: "gevaudan", Next: next, Limit: 20, Total: 15, Remaining: 5, Closed: closed, Entries: 1, Lines: q.want}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v %s", rule, err, diff)
			}
		}
	})
}

func TestASubClientHasNoMoreLeftThanItsAgency(t *testing.T) {
	t.Parallel()
	c := openReader(t, t.TempDir(), []table.UsagePeriod{periodRow(t)}, nil)
	for account, want := range map[string]usage.Summary{
		"gevaudan": {Contract: "gevaudan", Next: next, Limit: 100, Remaining: 55, Closed: closed, Entries: 1},
		"florac":   {Contract: "gevaudan", Next: next, Limit: 90, Remaining: 55, Closed: closed, Entries: 1},
		"nobody":   {Contract: "gevaudan", Next: next, Limit: 40, Remaining: 40, Closed: closed, Entries: 1},
	} {
		got, err := c.SummarizeAccount(t.Context(), usage.Query{Account: account, Contract: "gevaudan", Quota: 40, First: first})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", account, err, diff)
		}
	}
	got, err := c.SummarizeAccount(t.Context(), usage.Query{Account: "a", Contract: "a", Quota: 40, First: first})
	if diff := cmp.Diff(usage.Summary{Contract: "a", Limit: 40, Remaining: 40}, got); diff != "" || err != nil {
		t.Errorf("of a period that was not opened: %v %s", err, diff)
	}
}

// The period was opened with a cap of 100 for its account and of 90 for its sub-client.
func TestTheRunningPeriodHasTheQuotaOfNow(t *testing.T) {
	t.Parallel()
	c := openReader(t, t.TempDir(), []table.UsagePeriod{periodRow(t)}, nil)
	for account, want := range map[string]usage.Summary{
		"gevaudan": {Contract: "gevaudan", Next: next, Limit: 1000, Remaining: 955, Closed: closed, Entries: 1},
		"florac":   {Contract: "gevaudan", Next: next, Limit: 1000, Remaining: 55, Closed: closed, Entries: 1},
	} {
		got, err := c.SummarizeAccount(t.Context(), usage.Query{Account: account, Contract: "gevaudan", Quota: 1000, IsRunning: true, First: first})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", account, err, diff)
		}
	}
}

// TestExportYieldsEveryLineOfThePeriodsOnce has more lines than an export reads at once.
func TestExportYieldsEveryLineOfThePeriodsOnce(t *testing.T) {
	t.Parallel()
	const accounts = 1100
	var lines []table.UsageLine
	for i := range accounts {
		for _, period := range []string{"2026-10-31", "2026-11-05", "2026-11-30", "2026-12-01"} {
			l := line(fmt.Sprintf("a%04d", i), "2026-11-22", "k", "GET /me", int64(i%3)) // a third of them says nothing
			l.First = period
			lines = append(lines, l)
		}
	}
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		c := openReader(t, address, nil, lines)
		for period, want := range map[string]int{"": 4, "2026-11": 2, "2026-11-30": 1, "2026": 4, "2027-01": 0} {
			seen := map[usage.InvoiceLine]bool{}
			last := ""
			for b, err := range c.ExportLines(t.Context(), period) {
				if err != nil {
					t.Fatal(err)
				}
				if at := b.Period + b.Account; seen[b] || at < last || b.Requests == 0 {
					t.Fatalf("%q: %+v after %s", period, b, last)
				} else {
					last = at
				}
				seen[b] = true
			}
			if want *= accounts - (accounts+2)/3; len(seen) != want {
				t.Errorf("%q: %d lines, want %d", period, len(seen), want)
			}
		}
	})
}

// A line reports whether its period is closed, and until when it runs; of a period that has no row of its own neither is known.
func TestAnExportedLineSaysHowFarItsPeriodIs(t *testing.T) {
	t.Parallel()
	lines := []table.UsageLine{}
	for i, period := range []string{"2026-09-05", "2026-10-05", "2026-11-05"} {
		l := line("a", period, "k", "GET /me", int64(i+1))
		l.First = period
		lines = append(lines, l)
	}
	contract := lines[0].Contract
	periods := []table.UsagePeriod{
		{Stream: usagefold.StreamName(contract, plan.Date{Year: 2026, Month: 9, Day: 5}), Contract: contract, First: "2026-09-05", Next: "2026-10-05", Closed: table.InstantOf(time.Date(2026, 10, 5, 1, 0, 0, 0, time.UTC))},
		{Stream: usagefold.StreamName(contract, plan.Date{Year: 2026, Month: 10, Day: 5}), Contract: contract, First: "2026-10-05", Next: "2026-11-05"},
		{Stream: usagefold.StreamName("other", plan.Date{Year: 2026, Month: 11, Day: 5}), Contract: "other", First: "2026-11-05", Next: "2026-12-05"},
	}
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		c := openReader(t, address, periods, lines)
		type state struct {
			next     string
			isClosed bool
		}
		var got []state
		for l, err := range c.ExportLines(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, state{l.Next, l.IsClosed})
		}
		if want := []state{{"2026-10-05", true}, {"2026-11-05", false}, {"", false}}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestAStoppedPeriodFailsTheExportsThatIncludeIt: a stream that bills nothing stops no export.
func TestPeriodsAreListedFromTheLastToBegin(t *testing.T) {
	t.Parallel()
	october, november, december := plan.Date{Year: 2026, Month: 10, Day: 21}, first, next
	rows := []table.UsagePeriod{
		usedPeriod("a", october, november), usedPeriod("b", october, november), usedPeriod("a", november, december), usedPeriod("c", november, december),
	}
	rows[0].Closed, rows[2].Cap = table.InstantOf(closed), 100
	counted := func(contract, account string, first plan.Date, requests int64) table.UsageLine {
		return table.UsageLine{First: first.String(), Account: account, Contract: contract, Day: first.String(), Key: "k", Endpoint: "GET /me", Requests: requests}
	}
	lines := []table.UsageLine{counted("a", "a", october, 5), counted("a", "sub", october, 2), counted("a", "a", november, 9), counted("b", "b", october, 1)}
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		c := openReader(t, address, rows, lines)
		for _, x := range []struct {
			prefix string
			want   []string
		}{
			{"", []string{"2026-11-21 a 9", "2026-11-21 c 0", "2026-10-21 a 7 closed", "2026-10-21 b 1"}},
			{"2026-10", []string{"2026-10-21 a 7 closed", "2026-10-21 b 1"}},
			{"2026-11-21", []string{"2026-11-21 a 9", "2026-11-21 c 0"}},
			{"2026-12", nil},
		} {
			for limit := 1; limit <= 5; limit++ {
				var got []string
				var after usage.PeriodID
				for more := true; more; {
					found, hasMore, err := c.ListPeriods(t.Context(), x.prefix, after, limit)
					if err != nil || len(found) > limit {
						t.Fatal(len(found), err)
					}
					more = hasMore
					for _, p := range found {
						text := fmt.Sprintf("%s %s %d", p.First, p.Contract, p.Requests)
						if !p.Closed.IsZero() {
							text += " closed"
						}
						got, after = append(got, text), usage.PeriodID{Contract: p.Contract, First: p.First.String()}
					}
				}
				if !slices.Equal(got, x.want) {
					t.Errorf("%q by %d: got %v, want %v", x.prefix, limit, got, x.want)
				}
			}
		}
	})
}

func TestAStoppedPeriodFailsTheExportsThatIncludeIt(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]map[string]bool{
		usagefold.StreamName("gevaudan", first): {"": true, "2026-11": true, "2026-12": false},
		"usage-nonsense":                        {"": true, "2026-11": true, "2026-12": true},
		"incarnation-x":                         {"": false, "2026-11": false, "2026-12": false},
	} {
		registry, err := sqldb.OpenRegistry(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer registry.Close()
		c, err := registry.BuildGeneration(t.Context(), table.UsageModel, false)
		if err == nil {
			err = registry.PromoteGeneration(t.Context(), table.UsageModel, c)
		}
		if err == nil {
			err = registry.Read(t.Context(), table.UsageModel, func(db *sqldb.DB) error {
				return db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
					stopped := table.AccountStatus{Account: table.StreamOwner(stream), Kind: table.AccountUnusable, Stream: stream}
					return sqldb.Upsert(t.Context(), tx, table.AccountStatuses, []table.AccountStatus{stopped})
				})
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		for period, refused := range want {
			var stopped *table.StoppedError
			for _, err := range usage.New(registry).ExportLines(t.Context(), period) {
				if !errors.As(err, &stopped) {
					t.Errorf("%s, %q: %v", stream, period, err)
				}
			}
			if (stopped != nil) != refused {
				t.Errorf("%s, %q: got %v, want it refused: %v", stream, period, stopped, refused)
			}
		}
	}
}

func TestLastUseOfKeysIsThatOfTheirAccount(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		c := openReader(t, address, nil, nil, table.KeyUse{Key: "k1", Account: "a", LastUsed: table.InstantOf(closed)}, table.KeyUse{Key: "k2", Account: "a", LastUsed: 5})
		got, err := c.LastUsed(t.Context(), []string{"k1", "k3"})
		if diff := cmp.Diff(map[string]time.Time{"k1": closed}, got); diff != "" || err != nil {
			t.Error(err, diff)
		}
		for range c.ExportLines(t.Context(), "") {
			t.Error("a line where there is none")
		}
	})
}

func TestKeysHaveNoLastUseBeforeTheReadModelServes(t *testing.T) {
	t.Parallel()
	registry, err := sqldb.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.Close() })
	if got, err := usage.New(registry).LastUsed(t.Context(), []string{"k"}); len(got) > 0 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAPeriodIsReadAsOfOneMoment(t *testing.T) {
	t.Parallel()
	row := periodRow(t)
	row.Revision, row.Total, row.Lines, row.Digest = 12, 45, 2, "ab"
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		c := openReader(t, address, []table.UsagePeriod{row}, []table.UsageLine{
			line("mende", "2026-11-21", "k1", "GET /me", 15), line("gevaudan", "2026-11-22", "k9", "GET /me", 30), line("gevaudan", "2026-11-22", "k8", "GET /me", 0),
			{First: "2026-12-01", Account: "a", Contract: "a", Day: "2026-12-01", Key: "k", Endpoint: "GET /me", Requests: 1},
		})
		all, err := c.PeriodIDs(t.Context(), "")
		if diff := cmp.Diff([]usage.PeriodID{{Contract: "a", First: "2026-12-01"}, {Contract: "gevaudan", First: "2026-11-21"}}, all); diff != "" || err != nil {
			t.Fatal(err, diff)
		}
		want := []usage.StoredPeriod{
			{Lines: usagefold.Lines{{Day: plan.Date{Year: 2026, Month: 12, Day: 1}, Account: "a", Key: "k", Endpoint: "GET /me"}: 1}},
			{
				Row: &table.UsagePeriod{Revision: 12, Cap: 100, Used: 45, Closed: table.InstantOf(closed), Total: 45, Lines: 2, Digest: "ab"},
				Lines: usagefold.Lines{
					{Day: first, Account: "mende", Key: "k1", Endpoint: "GET /me"}: 15, {Day: second, Account: "gevaudan", Key: "k9", Endpoint: "GET /me"}: 30,
				},
			},
		}
		for i, p := range all {
			if got, err := c.ReadPeriods(t.Context(), []usage.PeriodID{p}); err != nil || cmp.Diff(want[i], got[p]) != "" || len(got) != 1 {
				t.Error(p, err, cmp.Diff(want[i], got[p]))
			}
		}
		absent := usage.PeriodID{Contract: "nobody", First: "2026-11-21"}
		got, err := c.ReadPeriods(t.Context(), []usage.PeriodID{all[1], absent})
		if diff := cmp.Diff(map[usage.PeriodID]usage.StoredPeriod{all[1]: want[1], absent: {Lines: usagefold.Lines{}}}, got); err != nil || diff != "" {
			t.Errorf("of one that is there and one that is not: %v %s", err, diff)
		}
		if some, err := c.PeriodIDs(t.Context(), "2026-12"); err != nil || len(some) != 1 || some[0].Contract != "a" {
			t.Errorf("of December: %v, %v", some, err)
		}
	})
}

func TestUnclosedPeriodsAreTheEndedOnesOldestFirst(t *testing.T) {
	t.Parallel()
	period := func(contract, first, next string, closed table.Instant) table.UsagePeriod {
		return table.UsagePeriod{Stream: "usage-" + contract + "-" + first, Contract: contract, First: first, Next: next, Closed: closed}
	}
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		c := openReader(t, address, []table.UsagePeriod{
			period("a", "2026-10-21", "2026-11-21", 0),
			period("a", "2026-11-21", "2026-12-21", 0),
			period("b", "2026-09-30", "2026-10-31", 0),
			period("b", "2026-08-31", "2026-09-30", 1),
			period("c", "2026-10-21", "2026-11-21", 0),
		}, nil)
		by := plan.Date{Year: 2026, Month: 11, Day: 21}
		for limit, want := range map[int]string{10: "b2026-09-30 a2026-10-21 c2026-10-21 ", 2: "b2026-09-30 a2026-10-21 "} {
			periods, err := c.UnclosedPeriods(t.Context(), by, limit)
			if err != nil {
				t.Fatal(err)
			}
			if got := periodNames(periods); got != want {
				t.Errorf("at most %d: %q, want %q", limit, got, want)
			}
		}
	})
}

func periodNames(periods []usage.Period) (all string) {
	for _, p := range periods {
		all += p.Contract + p.Name() + " "
	}
	return all
}

// TestSumsFollowTheRecord: an answer that was given before is given again only while the record of the period has as many entries.
func TestSumsFollowTheRecord(t *testing.T) {
	t.Parallel()
	registry, db, promote := sqldbtest.NewGeneration(t, t.TempDir(), table.UsageModel)
	promote()
	c, q := usage.New(registry), usage.Query{Account: "mende", Contract: "gevaudan", First: first, GroupBy: []usage.Dimension{usage.ByKey}}
	for n := range int64(5) {
		period := periodRow(t)
		period.Revision = n
		err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
			if err := sqldb.Upsert(t.Context(), tx, table.UsagePeriods, []table.UsagePeriod{period}); err != nil {
				return err
			}
			return sqldb.Upsert(t.Context(), tx, table.UsageLines, []table.UsageLine{line("mende", "2026-11-21", fmt.Sprint("k", n), "GET /me", n+1)})
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"", "k0", ""} { // the same again, and another question between
			q.Key = key
			want := n + 1
			if key == "k0" {
				want = 1
			}
			got, err := c.SummarizeAccount(t.Context(), q)
			if err != nil || int64(len(got.Lines)) != want || got.Total != (n+1)*(n+2)/2 || got.Entries != n+1 {
				t.Errorf("with %d entries, key %q: %+v %v, want %d lines", n+1, key, got, err, want)
			}
		}
	}
}
