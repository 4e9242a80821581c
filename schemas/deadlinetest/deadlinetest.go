// Package deadlinetest holds how long tests wait before they call something hung. A test waits for an event, never
// for a time: the limits here only turn a hang into a failure, so they are generous, and one variable multiplies all of
// them for a machine that has other work. Nothing else of a test depends on that variable.
//
// A test calls Context for work that takes one, Until for a condition that becomes true, and Limit where a library wants
// a duration.
package deadlinetest

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"
)

// FactorVariable is the factor by which all limits are longer: a whole number, 1 where it is not set.
const FactorVariable = "LIEUDIT_TEST_TIME_FACTOR"

// DefaultLimit is the limit for whatever has no stricter one: a test that waits longer is stuck.
const DefaultLimit = time.Minute

// pollInterval is how often Until looks.
const pollInterval = 2 * time.Millisecond

// Scale is a limit of time as this machine is given it.
func Scale(d time.Duration) time.Duration {
	factor, err := strconv.Atoi(os.Getenv(FactorVariable))
	if err != nil || factor < 1 {
		return d
	}
	return d * time.Duration(factor)
}

// Context ends with the test, or after the limit.
func Context(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Scale(d))
	t.Cleanup(cancel)
	return ctx
}

// WaitUntil returns once the condition holds. After the limit it fails the test and says what did not happen.
func WaitUntil(t testing.TB, d time.Duration, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(Scale(d)); !condition(); time.Sleep(pollInterval) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not so: %s", Scale(d), what)
		}
	}
}
