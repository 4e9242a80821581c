package body_test

import (
	"testing"
	"time"

	"lieudit/schemas/body"
)

func TestAPeriodIsRunningUntilItsEndAndThenToBeClosed(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 12, 20, 23, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		now      time.Time
		end      time.Time
		isClosed bool
		want     body.PeriodState
	}{
		{end.Add(-time.Nanosecond), end, false, body.PeriodRunning},
		{end, end, false, body.PeriodEnded},
		{end.AddDate(1, 0, 0), end, false, body.PeriodEnded}, // whose closing is overdue
		{end.Add(time.Hour), end, true, body.PeriodClosed},
		{end, time.Time{}, false, body.PeriodRunning}, // of which nothing is known
	} {
		if got := body.PeriodStateAt(c.now, c.end, c.isClosed); got != c.want {
			t.Errorf("at %v, closed %v: got %s, want %s", c.now, c.isClosed, got, c.want)
		}
	}
}
