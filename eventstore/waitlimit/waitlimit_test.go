package waitlimit_test

import (
	"testing"

	"lieudit/eventstore/waitlimit"
)

func TestOneAccountTakesAtMostHalfOfTheLimit(t *testing.T) {
	t.Parallel()
	limiter := waitlimit.New(4)
	acquire := func(account string, want bool) func() {
		t.Helper()
		release, ok := limiter.Acquire(account)
		if ok != want {
			t.Errorf("%s: let in: %v, want %v, with %d inside", account, ok, want, limiter.Waiting())
		}
		return release
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
