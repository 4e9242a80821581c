package simulation

import (
	"testing"
	"time"
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

func TestADayStandsOnBothSidesOfABoundary(t *testing.T) {
	t.Parallel()
	found := 0
	for seed := range uint64(20) {
		s := Generate(seed, 20)
		at := s.Begin
		for _, d := range s.Days {
			if boundary := nextBoundary(at.Add(-24*time.Hour), s.Begin); at.Before(boundary) && at.Add(dayLength).After(boundary) {
				found++
			}
			at = at.Add(d.Until)
		}
	}
	if found < 10 {
		t.Errorf("%d of 400 days do", found)
	}
}
