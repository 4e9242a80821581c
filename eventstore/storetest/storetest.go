// Package storetest is the contract of eventstore.Store as tests: every implementation runs every rule. A rule is a
// sentence and a function that returns what broke it, so that the suite itself can be tried on stores that are
// broken on purpose. No rule assumes an empty log or a log of its own: other writers may be at work in it.
package storetest

import (
	"context"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/deadlinetest"
)

// Options says what an implementation allows beyond the calls of a Store.
type Options struct {
	// Reopen ends s, without losing what it acknowledged, and gives another Store on the same log. Without it the rules
	// that need a second life are skipped.
	Reopen func(t *testing.T, s eventstore.Store) eventstore.Store

	// ReopenWithoutIDs is Reopen by which the log also forgets which ids it was sent, as a server's restart or a new leader may
	// have it. Without it the rules about that are skipped.
	ReopenWithoutIDs func(t *testing.T, s eventstore.Store) eventstore.Store

	// ComparesFirstIDOnly: the log looks for a repeated append by the id of its first event and in the same stream only, as
	// EventStoreDB itself does. The rules that ask for more are skipped.
	ComparesFirstIDOnly bool

	// RuleTimeout is how long a rule may take; a minute when it is zero.
	RuleTimeout time.Duration
}

// rule is one sentence of the contract. own: the rule closes or restarts its store, so it is not given the one
// all others share. strict: see Options.FirstIDOnly. reopens: see Options.Reopen. forgets: see Options.Forget.
type rule struct {
	name                                                           string
	check                                                          func(ctx context.Context, l *storeUnderTest) error
	needsOwnStore, needsAllIDs, needsReopen, needsReopenWithoutIDs bool
}

// RunWithDefaults holds the stores that open gives to the contract: one for most rules at once, and one more for every rule that
// closes its store. open arranges for what it opened to be freed when its t ends; the logs need not be distinct.
func RunWithDefaults(t *testing.T, open func(t *testing.T) eventstore.Store) {
	t.Helper()
	Run(t, open, Options{})
}

// Run is Run with options.
func Run(t *testing.T, open func(t *testing.T) eventstore.Store, o Options) {
	t.Helper()
	if o.RuleTimeout == 0 {
		o.RuleTimeout = time.Minute
	}
	shared := open(t)
	for _, r := range allRules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			if r.needsAllIDs && o.ComparesFirstIDOnly {
				t.Skip("this log compares the first id only")
			}
			if r.needsReopen && o.Reopen == nil {
				t.Skip("this log cannot be reopened here")
			}
			if r.needsReopenWithoutIDs && o.ReopenWithoutIDs == nil {
				t.Skip("this log cannot be made to forget here")
			}
			runRule(t, r, shared, open, o)
		})
	}
}

func runRule(t *testing.T, r rule, store eventstore.Store, open func(t *testing.T) eventstore.Store, o Options) {
	t.Helper()
	if r.needsOwnStore || r.needsReopen || r.needsReopenWithoutIDs {
		store = open(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadlinetest.Scale(o.RuleTimeout))
	defer cancel()
	l := &storeUnderTest{
		Store:            store,
		reopen:           func(s eventstore.Store) eventstore.Store { return o.Reopen(t, s) },
		reopenWithoutIDs: func(s eventstore.Store) eventstore.Store { return o.ReopenWithoutIDs(t, s) },
	}
	if err := r.check(ctx, l); err != nil {
		t.Error(err)
	}
}

func allRules() []rule {
	var all []rule
	for _, group := range [][]rule{appendRules(), repeatRules(), forgottenIDRules(), limitRules(), contentionRules(), streamRules(), logRules(), filterRules(), checkpointRules(), subscriptionRules(), subscriberRules(), contextRules(), closeRules()} {
		all = append(all, group...)
	}
	return all
}
