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

// Variable is the factor by which all limits are longer: a whole number, 1 where it is not set.
const Variable = "LIEUDIT_TEST_TIME_FACTOR"

// Hang is the limit for whatever has no stricter one: a test that waits longer is stuck.
const Hang = time.Minute

// pollEvery is how often Until looks.
const pollEvery = 2 * time.Millisecond

// Limit is a limit of time as this machine is given it.
func Limit(d time.Duration) time.Duration {
	factor, err := strconv.Atoi(os.Getenv(Variable))
	if err != nil || factor < 1 {
		return d
	}
	return d * time.Duration(factor)
}

// Context ends with the test, or after the limit.
func Context(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Limit(d))
	t.Cleanup(cancel)
	return ctx
}

// Until returns once the condition holds. After the limit it fails the test and says what did not happen.
func Until(t testing.TB, d time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Limit(d)); !holds(); time.Sleep(pollEvery) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not so: %s", Limit(d), what)
		}
	}
}
