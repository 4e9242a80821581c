package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// fakeUnreadableAccounts are accounts that are stopped, and which keys are back.
type fakeUnreadableAccounts struct {
	all          []string
	restoredKeys map[string]bool
	keyChecks    int
	refolded     []string
}

func (u *fakeUnreadableAccounts) newReopener() *accountReopener {
	return &accountReopener{
		unreadableAccounts: func(_ context.Context, after string, limit int) ([]string, error) {
			var found []string
			for _, a := range u.all {
				if a > after && len(found) < limit {
					found = append(found, a)
				}
			}
			return found, nil
		},
		checkKey: func(_ context.Context, account string) error {
			if u.keyChecks++; !u.restoredKeys[account] {
				return errors.New("no key")
			}
			return nil
		},
		refold: func(_ context.Context, accounts ...string) error {
			u.refolded = append(u.refolded, accounts...)
			return nil
		},
		attempts: map[string]attempt{},
	}
}

func TestAllUnreadableAccountsAreTriedInTurn(t *testing.T) {
	t.Parallel()
	u := &fakeUnreadableAccounts{restoredKeys: map[string]bool{}}
	for i := range 250 {
		u.all = append(u.all, fmt.Sprintf("a%03d", i))
	}
	u.restoredKeys["a001"], u.restoredKeys["a240"] = true, true
	r, now := u.newReopener(), time.Now()
	for round := range 3 {
		u.keyChecks = 0
		if err := r.reopenDueAccounts(t.Context(), now); err != nil || u.keyChecks > reopenBatchSize {
			t.Errorf("round %d: %d accounts tried, %v", round, u.keyChecks, err)
		}
	}
	if !slices.Equal(u.refolded, []string{"a001", "a240"}) {
		t.Errorf("refolded %v, want the two whose keys are back", u.refolded)
	}
}

func TestAnAccountThatStopsAgainIsRefoldedLessAndLessOften(t *testing.T) {
	t.Parallel()
	u := &fakeUnreadableAccounts{all: []string{"a"}, restoredKeys: map[string]bool{"a": true}}
	r, now := u.newReopener(), time.Now()
	for range int(time.Hour / reopenInterval) {
		if err := r.reopenDueAccounts(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		now = now.Add(reopenInterval)
	}
	if n := len(u.refolded); n < 5 || n > 14 {
		t.Errorf("refolded %d times in an hour", n)
	}
}
