package usage_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/usage"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// stopOwner makes a Reader of rows of which an owner is stopped.
func stopOwner(t *testing.T, address, owner string, periods []table.UsagePeriod, lines []table.UsageLine) *usage.Reader {
	t.Helper()
	registry, db, promote := sqldbtest.NewGeneration(t, address, table.UsageModel)
	err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
		return errors.Join(sqldb.Upsert(t.Context(), tx, table.UsagePeriods, periods), sqldb.Upsert(t.Context(), tx, table.UsageLines, lines),
			sqldb.Upsert(t.Context(), tx, table.AccountStatuses, []table.AccountStatus{{Account: owner, Kind: table.AccountUnusable, Stream: "usage-2026-11.0", Revision: 7}}))
	})
	if err != nil {
		t.Fatal(err)
	}
	promote()
	return usage.New(registry)
}

// sharedRows are periods of contracts, with the stream in which each is counted.
func sharedRows(t *testing.T) (rows []table.UsagePeriod) {
	t.Helper()
	for contract, shared := range map[string]string{"gevaudan": "usage-2026-11.0", "same": "usage-2026-11.0", "other": "usage-2026-11.1", "alone": ""} {
		row := periodRow(t)
		row.Stream, row.Contract, row.Shared, row.Closed = usagefold.StreamName(contract, first), contract, shared, 0
		rows = append(rows, row)
	}
	return rows
}

func isStopped(err error) bool {
	var stopped *table.StoppedError
	return errors.As(err, &stopped)
}

// A period is not shown while its own stream or its shared one is stopped; the others of the shared stream are shown only in the first case.
func TestAStoppedSharedStreamHidesItsPeriods(t *testing.T) {
	t.Parallel()
	for owner, want := range map[string][]string{ // contracts that are shown
		"/usage-2026-11.0": {"alone", "other"},
		"/" + usagefold.StreamName("gevaudan", first): {"alone", "other", "same"},
		"/usage-2026-12.0":                            {"alone", "gevaudan", "other", "same"},
	} {
		sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
			rows := sharedRows(t)
			c := stopOwner(t, address, owner, rows, nil)
			for list, got := range listedContracts(t, c) {
				if !slices.Equal(got, want) {
					t.Errorf("%s stopped: %s: %v are shown, want %v", owner, list, got, want)
				}
			}
			for _, row := range rows {
				_, err := c.SummarizeAccount(t.Context(), usage.Query{Account: row.Contract, Contract: row.Contract, First: first, IsRunning: true})
				_, readErr := c.ReadPeriods(t.Context(), []usage.PeriodID{{Contract: row.Contract, First: row.First}})
				if isShown := slices.Contains(want, row.Contract); isStopped(err) == isShown || isStopped(readErr) == isShown {
					t.Errorf("%s stopped: %s is shown: %v, %v", owner, row.Contract, err, readErr)
				}
			}
		})
	}
}

// listedContracts returns the contracts that each list of periods has, sorted.
func listedContracts(t *testing.T, c *usage.Reader) map[string][]string {
	t.Helper()
	unclosed, err := c.UnclosedPeriods(t.Context(), next, 10)
	listed, _, listErr := c.ListPeriods(t.Context(), "", usage.PeriodID{}, 10)
	ahead, aheadErr := c.PeriodsAhead(t.Context(), plan.Date{Year: 2026, Month: 1, Day: 1}, 10)
	if err := errors.Join(err, listErr, aheadErr); err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, p := range unclosed {
		found["unclosed"] = append(found["unclosed"], p.Contract)
	}
	for _, p := range listed {
		found["listed"] = append(found["listed"], p.Contract)
	}
	for _, p := range ahead {
		found["ahead"] = append(found["ahead"], p.Contract)
	}
	for _, contracts := range found {
		slices.Sort(contracts)
	}
	return found
}

// An export fails if a stopped stream may hold lines of its periods.
func TestAStoppedSharedStreamFailsTheExportsOfItsMonth(t *testing.T) {
	t.Parallel()
	for owner, fails := range map[string]string{
		"/usage-2026-11.0": " 2026 2026-11 2026-11-21",
		"/" + usagefold.StreamName("gevaudan", first): " 2026 2026-11 2026-11-21",
		"/usage-2026-12.0":                            " 2026 2026-12-01",
	} {
		c := stopOwner(t, t.TempDir(), owner, sharedRows(t), []table.UsageLine{line("gevaudan", "2026-11-21", "k", "GET /me", 5)})
		var got []string
		for _, period := range []string{"", "2026", "2026-10", "2026-11", "2026-11-21", "2026-12-01"} {
			for _, err := range c.ExportLines(t.Context(), period) {
				if isStopped(err) {
					got = append(got, period)
				}
			}
		}
		if text := strings.Join(got, " "); text != fails {
			t.Errorf("%s stopped: the exports of %q fail, want %q", owner, text, fails)
		}
	}
}

// Nothing can be taken back from a period that has ended, and it still has to be closed.
func TestAnEndedPeriodIsNotAheadAndNotClosed(t *testing.T) {
	t.Parallel()
	december, january := plan.Date{Year: 2026, Month: 12, Day: 21}, plan.Date{Year: 2027, Month: 1, Day: 21}
	ended, endedNow := usedPeriod("ended", december, january), usedPeriod("early", first, next)
	ended.Ended, endedNow.Ended = table.InstantOf(closed), table.InstantOf(closed)
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		c := openReader(t, address, []table.UsagePeriod{ended, endedNow, usedPeriod("early", december, january), usedPeriod("ahead", december, january)}, nil)
		found, err := c.PeriodsAhead(t.Context(), second, 10)
		if err != nil || len(found) != 1 || found[0].Contract != "ahead" {
			t.Errorf("ahead: %v, %v", found, err)
		}
		unclosed, err := c.UnclosedPeriods(t.Context(), next, 10)
		if err != nil || len(unclosed) != 1 || unclosed[0].Contract != "early" {
			t.Errorf("to be closed: %v, %v", unclosed, err)
		}
	})
}

// A correction on the own stream of a period changes its lines as a request does: what is kept of their sums is then old.
func TestACorrectionAfterASharedStreamChangesWhatIsShown(t *testing.T) {
	t.Parallel()
	row := periodRow(t)
	row.Shared, row.Revision, row.OwnRevision = "usage-2026-11.0", 40, 2
	registry, db, promote := sqldbtest.NewGeneration(t, t.TempDir(), table.UsageModel)
	write := func(row table.UsagePeriod, requests int64) {
		err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
			return errors.Join(sqldb.Upsert(t.Context(), tx, table.UsagePeriods, []table.UsagePeriod{row}),
				sqldb.Upsert(t.Context(), tx, table.UsageLines, []table.UsageLine{line("gevaudan", "2026-11-21", "k", "GET /me", requests)}))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	write(row, 5)
	promote()
	c := usage.New(registry)
	for i, want := range []int64{5, 4} {
		u, err := c.SummarizeAccount(t.Context(), usage.Query{Account: "gevaudan", Contract: "gevaudan", First: first})
		if err != nil || u.Total != want || u.Entries != int64(44+i) {
			t.Errorf("%d requests as of %d entries, want %d; %v", u.Total, u.Entries, want, err)
		}
		row.OwnRevision++
		write(row, -1)
	}
}

// A log that was restored may have as many entries again, other ones: its read model is another generation, and what was kept of the sums of
// the one before is not shown.
func TestSumsOfAnotherGenerationAreNotShown(t *testing.T) {
	t.Parallel()
	registry, db, promote := sqldbtest.NewGeneration(t, t.TempDir(), table.UsageModel)
	write := func(db *sqldb.DB, requests int64) {
		err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
			return errors.Join(sqldb.Upsert(t.Context(), tx, table.UsagePeriods, []table.UsagePeriod{periodRow(t)}),
				sqldb.Upsert(t.Context(), tx, table.UsageLines, []table.UsageLine{line("gevaudan", "2026-11-21", "k", "GET /me", requests)}))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c := usage.New(registry)
	total := func() int64 {
		u, err := c.SummarizeAccount(t.Context(), usage.Query{Account: "gevaudan", Contract: "gevaudan", First: first})
		if err != nil {
			t.Fatal(err)
		}
		return u.Total
	}
	write(db, 5)
	if promote(); total() != 5 {
		t.Fatalf("%d requests, want 5", total())
	}
	next, err := registry.BuildGeneration(t.Context(), table.UsageModel, false)
	if err != nil {
		t.Fatal(err)
	}
	nextDB, release, err := registry.OpenGeneration(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	write(nextDB, 7)
	if err := registry.PromoteGeneration(t.Context(), table.UsageModel, next); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); total() != 7; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d requests, want 7", total())
		}
	}
}
