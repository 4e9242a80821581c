// Package leveltest assigns tests to the levels of cmd/check. A developer runs the quick level in minutes, with only Go; the
// usual level adds Postgres and a browser; the whole level adds everything that seldom breaks or takes long: other systems'
// servers, proxies and clients, and tests that only wait.
//
// Most tests belong to every level and call nothing here. A test that needs a program calls Need, and so does one that takes
// longer than its level allows. The number of inputs that a test generates depends on testing.Short instead, which the quick
// level sets.
package leveltest

import (
	"fmt"
	"os"
	"testing"
)

// Variable is the environment variable in which cmd/check names its level. It is not set under a plain go test.
const Variable = "LIEUDIT_CHECK"

// Level is a level of cmd/check, as Variable names it.
type Level string

const (
	Quick Level = "quick"
	Usual Level = "usual"
	Whole Level = "whole"
)

// levels are all levels. Each also runs the tests of those before it.
var levels = []Level{Quick, Usual, Whole}

// Need skips a test at levels below from. missing describes a requirement of the test that is absent, if any: at the test's
// levels it fails the test. Under a plain go test it skips the test, and nothing else does.
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

// Missing describes what is missing if err is not nil. It is for the last argument of Need.
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
