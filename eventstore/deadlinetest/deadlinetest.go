// Package deadlinetest defines how long tests wait before they fail. A test waits for an event, never for a time. The limits
// here only turn a hang into a failure, so they are generous, and one variable multiplies all of them on a busy machine.
// Nothing else in a test may depend on that variable.
//
// A test calls Context for work that takes a context, WaitUntil for a condition that becomes true, and Scale if a library
// wants a duration.
package deadlinetest

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"
)

// FactorVariable is the environment variable with the factor for all limits: a whole number, 1 if it is not set.
const FactorVariable = "LIEUDIT_TEST_TIME_FACTOR"

// DefaultLimit is the limit for a test that has no reason for another one.
const DefaultLimit = time.Minute

// pollInterval is how often WaitUntil checks its condition.
const pollInterval = 2 * time.Millisecond

// Scale multiplies a limit by the factor of FactorVariable.
func Scale(d time.Duration) time.Duration {
	factor, err := strconv.Atoi(os.Getenv(FactorVariable))
	if err != nil || factor < 1 {
		return d
	}
	return d * time.Duration(factor)
}

// Context returns a context that ends with the test, or after the limit d.
func Context(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Scale(d))
	t.Cleanup(cancel)
	return ctx
}

// WaitUntil returns once the condition is true. After the limit d it fails the test and names what did not happen.
func WaitUntil(t testing.TB, d time.Duration, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(Scale(d)); !condition(); time.Sleep(pollInterval) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not so: %s", Scale(d), what)
		}
	}
}
