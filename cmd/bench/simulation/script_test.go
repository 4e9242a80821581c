package simulation

import (
	"slices"
	"testing"
	"time"

	"lieudit/cmd/bench/simulation/customers"
	"lieudit/cmd/bench/simulation/faults"
	"lieudit/schemas/plan"
)

func TestTheNextBoundaryIsWhereSomethingEndsForEverybody(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 20, 7, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ after, want time.Time }{
		"a period":    {time.Date(2026, 2, 3, 7, 0, 0, 0, time.UTC), time.Date(2026, 2, 19, 23, 0, 0, 0, time.UTC)},
		"a month":     {time.Date(2026, 6, 21, 7, 0, 0, 0, time.UTC), time.Date(2026, 6, 30, 22, 0, 0, 0, time.UTC)},
		"winter time": {time.Date(2026, 3, 25, 7, 0, 0, 0, time.UTC), time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)},
		"summer time": {time.Date(2026, 10, 22, 7, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)},
	} {
		if got := nextBoundary(c.after, begin); !got.Equal(c.want) {
			t.Errorf("the end of %s: got %v, want %v", name, got.UTC(), c.want)
		}
	}
}

// drawnDays visits the days of some histories, with the wall time at which each begins.
func drawnDays(visit func(s Script, d Day, at time.Time)) (days int) {
	for seed := range uint64(20) {
		s := Generate(seed, 20)
		at := s.Begin
		for _, d := range s.Days {
			visit(s, d, at)
			at = at.Add(d.Until)
			days++
		}
	}
	return days
}

// endingOn returns the accounts whose periods end in the middle of a day.
func endingOn(s Script, at time.Time) (accounts []int) {
	for account := range s.Accounts {
		if end := plan.PeriodAt(s.anchorOf(account), at).End(); at.Add(dayLength/2).Sub(end).Abs() < time.Second {
			accounts = append(accounts, account)
		}
	}
	return accounts
}

func TestPeriodsEndWhileSomethingIsReserved(t *testing.T) {
	t.Parallel()
	found := 0
	days := drawnDays(func(s Script, d Day, at time.Time) {
		ending, reserving := endingOn(s, at), 0
		for _, a := range d.Acts {
			isNear := (a.At - dayLength/2).Abs() < 5*time.Second
			if isNear && slices.Contains(ending, a.Account) && (a.Kind == "matrix" || a.Kind == "file") {
				reserving++
			}
		}
		isSlow := slices.ContainsFunc(d.Faults, func(f faults.Fault) bool {
			return f.Part == faults.UsageLog && slices.Contains(slowUsage, f.Kind) && f.At <= dayLength/2 && f.At+f.For >= dayLength/2
		})
		if reserving >= 5 && isSlow {
			found++
		}
	})
	if found < days/10 {
		t.Errorf("%d of %d days do", found, days)
	}
}

func TestOneFaultInTenOutlastsAnAppendThatIsSentAgain(t *testing.T) {
	t.Parallel()
	long, all := 0, 0
	drawnDays(func(_ Script, d Day, _ time.Time) {
		for _, f := range d.Faults {
			if all++; f.For > leastLong {
				long++
			}
		}
	})
	if long < all/20 || long > all/5 {
		t.Errorf("%d of %d faults do", long, all)
	}
}

func TestADayStandsOnBothSidesOfABoundary(t *testing.T) {
	t.Parallel()
	found := 0
	days := drawnDays(func(s Script, _ Day, at time.Time) {
		if boundary := nextBoundary(at.Add(-24*time.Hour), s.Begin); at.Before(boundary) && at.Add(dayLength).After(boundary) {
			found++
		}
	})
	if found < days/15 {
		t.Errorf("%d of %d days do", found, days)
	}
}

func TestErasuresMeetFaultsOfTheirSteps(t *testing.T) {
	t.Parallel()
	steps := map[string]int{}
	days := drawnDays(func(_ Script, d Day, _ time.Time) {
		for _, a := range d.Acts {
			if a.Kind != customers.EraseAccount {
				continue
			}
			i := slices.IndexFunc(d.Faults, func(f faults.Fault) bool {
				return f.At == a.At && f.Instance == a.Instance && (f.Part == faults.Vault || f.Part == faults.CoreLog && f.Of == "account")
			})
			if i < 0 {
				t.Fatalf("nothing strikes %+v", a)
			}
			steps[d.Faults[i].Part]++
		}
	})
	if steps[faults.Vault] < days/40 || steps[faults.CoreLog] < days/40 {
		t.Errorf("on %d days, by what is struck: %v", days, steps)
	}
}
