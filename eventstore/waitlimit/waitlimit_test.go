package waitlimit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"lieudit/eventstore/waitlimit"
)

func TestOneAccountTakesAtMostHalfOfTheLimit(t *testing.T) {
	t.Parallel()
	limiter := waitlimit.New(4)
	acquire := func(account string, want bool) func() {
		t.Helper()
		wait := limiter.NewWait(account)
		defer wait.Begin(0)()
		waiting, stop := wait.Start(t.Context(), 0)
		if ok := waiting.Err() == nil; ok != want {
			t.Errorf("%s: let in: %v, want %v, with %d inside", account, ok, want, limiter.Waiting())
		}
		return stop
	}
	releaseFirst := acquire("a", true)
	acquire("a", true)
	acquire("a", false)
	acquire("b", true)
	acquire("c", true)
	acquire("d", false)
	releaseFirst()
	releaseFirst() // again is nothing
	if got := limiter.Waiting(); got != 3 {
		t.Errorf("%d places taken, want 3", got)
	}
	acquire("a", true)
	acquire("d", false)
}

func TestAWaitEndsAfterThreeSecondsOverAllThatARequestWaitsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wait := waitlimit.New(waitlimit.MaxRequests).NewWait("a")
		for _, c := range []struct{ free, silence, takes, want time.Duration }{
			{0, waitlimit.MaxSilence - time.Second, time.Minute, time.Second},
			{waitlimit.UncountedWait, 0, waitlimit.UncountedWait, waitlimit.UncountedWait}, // takes nothing
			{waitlimit.UncountedWait, 0, 500 * time.Millisecond, 500 * time.Millisecond},
			{0, waitlimit.MaxSilence, time.Minute, 0},
			{0, 0, 50 * time.Millisecond, 50 * time.Millisecond},
			{waitlimit.UncountedWait, 0, time.Minute, 1450 * time.Millisecond},
			{0, 0, time.Minute, 0},
			{waitlimit.UncountedWait, 0, time.Minute, waitlimit.UncountedWait},
		} {
			begun, end := time.Now(), wait.Begin(c.free)
			waiting, stop := wait.Start(t.Context(), c.silence)
			select {
			case <-waiting.Done():
			case <-time.After(c.takes):
			}
			stop()
			end()
			if got := time.Since(begun); got != c.want {
				t.Errorf("%+v: waited %v", c, got)
			}
			time.Sleep(time.Minute) // work is not a wait
		}
	})
}
