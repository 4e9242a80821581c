package usage_test

import (
	"testing"

	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/usage"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

func TestPeriodsThatEndedAndAreOpenAreToldOldestFirst(t *testing.T) {
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
			if got := names(periods); got != want {
				t.Errorf("at most %d: %q, want %q", limit, got, want)
			}
		}
	})
}

func names(periods []usage.Period) (all string) {
	for _, p := range periods {
		all += p.Contract + p.Name() + " "
	}
	return all
}
