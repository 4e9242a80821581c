package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// unreadables are accounts that are stopped, and which keys are back.
type unreadables struct {
	all    []string
	back   map[string]bool
	asked  int
	folded []string
}

func (u *unreadables) reopener() *reopener {
	return &reopener{
		accounts: func(_ context.Context, after string, limit int) ([]string, error) {
			var found []string
			for _, a := range u.all {
				if a > after && len(found) < limit {
					found = append(found, a)
				}
			}
			return found, nil
		},
		opens: func(_ context.Context, account string) error {
			if u.asked++; !u.back[account] {
				return errors.New("no key")
			}
			return nil
		},
		refold: func(_ context.Context, accounts ...string) error {
			u.folded = append(u.folded, accounts...)
			return nil
		},
		tried: map[string]trial{},
	}
}

func TestAllUnreadableAccountsAreTriedInTurn(t *testing.T) {
	t.Parallel()
	u := &unreadables{back: map[string]bool{}}
	for i := range 250 {
		u.all = append(u.all, fmt.Sprintf("a%03d", i))
	}
	u.back["a001"], u.back["a240"] = true, true
	r, now := u.reopener(), time.Now()
	for round := range 3 {
		u.asked = 0
		if err := r.try(t.Context(), now); err != nil || u.asked > reopenAtOnce {
			t.Errorf("round %d: %d accounts tried, %v", round, u.asked, err)
		}
	}
	if !slices.Equal(u.folded, []string{"a001", "a240"}) {
		t.Errorf("refolded %v, want the two whose keys are back", u.folded)
	}
}

func TestAnAccountThatStopsAgainIsRefoldedLessAndLessOften(t *testing.T) {
	t.Parallel()
	u := &unreadables{all: []string{"a"}, back: map[string]bool{"a": true}}
	r, now := u.reopener(), time.Now()
	for range int(time.Hour / reopenEvery) {
		if err := r.try(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		now = now.Add(reopenEvery)
	}
	if n := len(u.folded); n < 5 || n > 14 {
		t.Errorf("refolded %d times in an hour", n)
	}
}
