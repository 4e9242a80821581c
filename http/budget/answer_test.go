package budget_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"lieudit/http/budget"
)

const large = budget.SmallAnswer + 1

// newAnswer returns the Answer of an account, and its budget of three large answers, two of them for one account.
func newAnswer(t *testing.T) (*budget.Answer, *budget.Budget) {
	b := budget.New(3*large, 2*large)
	r := budget.NewAnswer(t.Context(), b)
	r.Account = "a"
	return r, b
}

func TestAnAnswerHoldsWhatItBecame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what            string
		reserved, built int64
		want            int64 // of the budget; -1: there is no room
	}{
		{"small", 10, budget.SmallAnswer, 0},
		{"small, where it might have been large", 2 * large, budget.SmallAnswer, 0},
		{"as large as it might have been", large, large, large},
		{"larger than was thought", large, large + 1, large + 1},
		{"large, though nobody thought so", 10, large, large},
		{"larger than the part of an account", 10, 2*large + 1, 2 * large},
		{"larger than the part of an account, all of which is reserved", 9 * large, 3 * large, 2 * large},
		{"less than was reserved", 9 * large, large, large},
	} {
		r, b := newAnswer(t)
		if err := r.Reserve(c.reserved); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		err := r.Fit(c.built)
		if used := b.Status().Used; errors.Is(err, budget.ErrOverloaded) != (c.want < 0) || used != max(c.want, 0) {
			t.Errorf("%s: holds %d, %v", c.what, used, err)
		}
		r.Claim(c.built)
		if used := b.Status().Used; c.built > budget.SmallAnswer && used != c.built {
			t.Errorf("%s: claims %d", c.what, used)
		}
		r.Release()
		if got := b.Status().Used; got != 0 {
			t.Errorf("%s: %d bytes are not given back", c.what, got)
		}
	}
}

func TestAnAnswerLargerThanWasThoughtIsRefusedIfThereIsNoRoom(t *testing.T) {
	t.Parallel()
	r, b := newAnswer(t)
	defer b.ClaimShare("b", 2*large).Release()
	if err := r.Reserve(large); err != nil {
		t.Fatal(err)
	}
	if err := r.Fit(large + 1); !errors.Is(err, budget.ErrOverloaded) {
		t.Errorf("got %v, want ErrOverloaded", err)
	}
	if used := b.Status().Used; used != 2*large {
		t.Errorf("%d bytes are in use", used)
	}
}

func TestALargeAnswerWaitsForItsShareAndASmallOneDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, b := newAnswer(t)
		if err := first.Reserve(100 * large); err != nil || b.Status().Used != 2*large { // all of the account's part
			t.Fatalf("holds %d, %v", b.Status().Used, err)
		}
		small := budget.NewAnswer(t.Context(), b)
		small.Account = "a"
		if err := small.Reserve(budget.SmallAnswer); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := budget.NewAnswer(ctx, b)
		gone.Account = "a"
		go cancel()
		if err := gone.Reserve(large); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that went away: %v", err)
		}
		waiting := budget.NewAnswer(t.Context(), b)
		waiting.Account = "a"
		if err := waiting.Reserve(large); !errors.Is(err, budget.ErrOverloaded) { // after budget.MaxWait
			t.Errorf("got %v, want ErrOverloaded", err)
		}
		first.Release()
		if err := waiting.Reserve(large); err != nil {
			t.Error(err)
		}
	})
}

func TestANilAnswerHoldsNothing(t *testing.T) {
	t.Parallel()
	var r *budget.Answer
	if err := errors.Join(r.Reserve(large), r.Fit(large)); err != nil {
		t.Error(err)
	}
	r.Claim(large)
	r.Release()
}
