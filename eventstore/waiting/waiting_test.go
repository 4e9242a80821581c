package waiting_test

import (
	"testing"

	"lieudit/eventstore/waiting"
)

func TestOneAccountGetsHalfOfThePlaces(t *testing.T) {
	t.Parallel()
	r := waiting.NewRoom(4)
	enter := func(account string, want bool) func() {
		t.Helper()
		leave, ok := r.Enter(account)
		if ok != want {
			t.Errorf("%s: let in: %v, want %v, with %d inside", account, ok, want, r.Taken())
		}
		return leave
	}
	first := enter("a", true)
	enter("a", true)
	enter("a", false)
	enter("b", true)
	enter("c", true)
	enter("d", false)
	first()
	first() // again is nothing
	if got := r.Taken(); got != 3 {
		t.Errorf("%d places taken, want 3", got)
	}
	enter("a", true)
	enter("d", false)
}
