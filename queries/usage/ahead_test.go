package usage_test

import (
	"slices"
	"testing"

	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/usagefold"
)

// usedPeriod is a row of a contract's period that holds requests.
func usedPeriod(contract string, first, next plan.Date) table.UsagePeriod {
	return table.UsagePeriod{Stream: usagefold.StreamName(contract, first), Contract: contract, First: first.String(), Next: next.String(), Used: 1}
}

func TestPeriodsAheadAreThoseWithRequestsBeforeTheyBegin(t *testing.T) {
	t.Parallel()
	december, january := plan.Date{Year: 2026, Month: 12, Day: 21}, plan.Date{Year: 2027, Month: 1, Day: 21}
	unused, closedAhead, closedNow := usedPeriod("unused", december, january), usedPeriod("closed", december, january), usedPeriod("early", first, next)
	unused.Used, closedAhead.Closed, closedNow.Closed = 0, table.InstantOf(closed), table.InstantOf(closed)
	rows := []table.UsagePeriod{
		usedPeriod("ahead", december, january), usedPeriod("farther", january, plan.Date{Year: 2027, Month: 2, Day: 21}), usedPeriod("ahead", first, next),
		unused, closedAhead, closedNow, usedPeriod("early", december, january), // what is closed early is counted in the next one
	}
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		c := openReader(t, address, rows, nil)
		for _, x := range []struct {
			today plan.Date
			limit int
			want  []string
		}{
			{second, 10, []string{"ahead", "farther"}},
			{second, 1, []string{"ahead"}},
			{december, 10, []string{"farther"}},
			{january, 10, nil},
		} {
			found, err := c.PeriodsAhead(t.Context(), x.today, x.limit)
			var got []string
			for _, p := range found {
				if p.Contract == "ahead" && (p.First != december || p.Next != january) {
					t.Errorf("on %s: %v", x.today, p)
				}
				got = append(got, p.Contract)
			}
			if !slices.Equal(got, x.want) || err != nil {
				t.Errorf("on %s: %v, %v, want %v", x.today, got, err, x.want)
			}
		}
	})
}
