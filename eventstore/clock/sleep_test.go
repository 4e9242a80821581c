package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/eventstore/clock"
)

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule             string
		end              time.Duration // when the context ends; negative: it has ended
		sleep, wantSlept time.Duration
		want             bool
	}{
		{"the whole time", time.Hour, time.Minute, time.Minute, true},
		{"no time", time.Hour, 0, 0, true},
		{"cut short", time.Second, time.Minute, time.Second, false},
		{"no time after the end", -1, 0, 0, false},
		{"some time after the end", -1, time.Minute, 0, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.end)
				defer cancel()
				begun := time.Now()
				got := clock.Sleep(ctx, c.sleep)
				if slept := time.Since(begun); got != c.want || slept != c.wantSlept {
					t.Errorf("got %v after %v, want %v after %v", got, slept, c.want, c.wantSlept)
				}
			})
		})
	}
}
