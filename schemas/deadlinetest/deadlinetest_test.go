package deadlinetest_test

import (
	"testing"
	"time"

	"lieudit/schemas/deadlinetest"
)

func TestLimitIsMultipliedByTheVariableAlone(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 2, "3": 6, "0": 2, "-1": 2, "many": 2} {
		t.Setenv(deadlinetest.Variable, value)
		if got := deadlinetest.Limit(2); got != want {
			t.Errorf("%s=%q: got %d, want %d", deadlinetest.Variable, value, got, want)
		}
	}
}
