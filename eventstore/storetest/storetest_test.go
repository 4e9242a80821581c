package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/memory"
)

func TestEveryRuleHasItsOwnName(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range allRules() {
		if r.name == "" || r.check == nil || seen[r.name] {
			t.Errorf("rule %q is empty or named twice", r.name)
		}
		seen[r.name] = true
	}
}

func TestBrokenStoresFail(t *testing.T) {
	t.Parallel()
	for _, b := range brokenStores() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			for _, name := range b.brokenRules {
				if err := checkRuleOn(t, name, b.wrap(memory.New(time.Now))); err == nil {
					t.Errorf("the suite does not notice under the rule %q", name)
				}
			}
		})
	}
}

// checkRuleOn runs one rule on a store and returns how the store breaks it.
func checkRuleOn(t *testing.T, name string, s eventstore.Store) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	for _, r := range allRules() {
		if r.name == name {
			return r.check(ctx, &storeUnderTest{Store: s, reopen: func(s eventstore.Store) eventstore.Store { return s }})
		}
	}
	t.Fatalf("no rule is named %q", name)
	return errors.New("unreachable")
}
