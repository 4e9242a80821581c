// Package leveltest assigns tests to the levels of cmd/check. A developer runs the quick level in minutes, with Go alone; the usual
// level adds Postgres and a browser; the whole level adds everything that seldom breaks or takes long: other systems' servers,
// proxies and clients, and tests that only wait.
//
// Most tests belong to every level and call nothing here. A test that needs a program calls Need, and so does one that takes
// longer than its level allows. The number of inputs that a test generates depends on testing.Short instead, which the quick level sets.
package leveltest

import (
	"fmt"
	"os"
	"testing"
)

// Variable is the environment variable in which cmd/check names its level. It is not set if somebody runs go test.
const Variable = "LIEUDIT_CHECK"

// Level is a level of cmd/check, as Variable names it.
type Level string

const (
	Quick Level = "quick"
	Usual Level = "usual"
	Whole Level = "whole"
)

// levels are all levels. Each runs the tests of those before it.
var levels = []Level{Quick, Usual, Whole}

// Need skips a test that the running level leaves out, because the test belongs to the level from and those after it. What is
// missing of what the test needs, if anything, fails the test at its levels. If somebody runs go test, what is missing skips it, and
// nothing else does.
func Need(t testing.TB, from Level, missing string) {
	t.Helper()
	switch running := Level(os.Getenv(Variable)); {
	case running == "" && missing != "":
		t.Skip(missing)
	case running == "":
	case rank(t, running) < rank(t, from):
		t.Skipf("left to the %s level of cmd/check", from)
	case missing != "":
		t.Fatal(missing)
	}
}

// Missing says what is missing if err is not nil. It is for the last argument of Need.
func Missing(what string, err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%s: %v", what, err)
}

// rank is the position of a level among the levels.
func rank(t testing.TB, l Level) int {
	t.Helper()
	for i, other := range levels {
		if l == other {
			return i
		}
	}
	t.Fatalf("%s=%s: want one of %v", Variable, l, levels)
	return 0
}
