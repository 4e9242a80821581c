package deadlinetest_test

import (
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
)

func TestLimitIsMultipliedByTheVariableAlone(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 2, "3": 6, "0": 2, "-1": 2, "many": 2} {
		t.Setenv(deadlinetest.FactorVariable, value)
		if got := deadlinetest.Scale(2); got != want {
			t.Errorf("%s=%q: got %d, want %d", deadlinetest.FactorVariable, value, got, want)
		}
	}
}
