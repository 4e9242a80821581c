// Package storetest is the contract of eventstore.Store as tests, which every implementation runs. A rule is a sentence and a
// function that returns how a store breaks it, or nil. So the suite itself can be tested on stores that are deliberately
// broken (broken_test.go). No rule may assume an empty log or a log of its own: other writers may append to it.
//
// Run opens a store, wraps it in a storeUnderTest and passes that to the check of every rule. There is one file of rules for
// each part of the contract: appends, repeats, contention, streams, reads, checkpoints, subscriptions, contexts, closing.
//
// Most checks have the same shape. They remember their starting point as the checkpoint of an event of their own
// (appendCheckpoint), append to streams of a new category (newCategory), and read after that checkpoint with a filter of that
// category. So rules run concurrently on one log.
package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
)

// Options are what can be done with an implementation beyond the calls of a Store.
type Options struct {
	// Reopen closes s and opens another Store on the same log, which is freed when t ends. Without it the rules that need a
	// reopened log are skipped.
	Reopen func(t *testing.T, s eventstore.Store) eventstore.Store

	// ReopenWithoutIDs is Reopen after which the log has also forgotten the ids of its appends, as may happen with a server's
	// restart or a new leader. Without it the rules about that are skipped.
	ReopenWithoutIDs func(t *testing.T, s eventstore.Store) eventstore.Store

	// ComparesFirstIDOnly means that the log recognises a repeated append by the id of its first event only, and in the same
	// stream only, as EventStoreDB does. The rules that ask for more are skipped.
	ComparesFirstIDOnly bool

	// RuleTimeout is how long a rule may take; a minute when it is zero.
	RuleTimeout time.Duration
}

// rule is one sentence of the contract and how to check it.
type rule struct {
	name string
	// check returns how the store breaks the rule, or nil. Its context ends after Options.RuleTimeout, which then is how a
	// store fails that never yields what check waits for.
	check func(ctx context.Context, l *storeUnderTest) error

	// The needs of a rule besides the shared store:
	needsOwnStore         bool // it closes the store, or reads too much of a log that others write to
	needsAllIDs           bool // see Options.ComparesFirstIDOnly
	needsReopen           bool // see Options.Reopen
	needsReopenWithoutIDs bool // see Options.ReopenWithoutIDs
}

// Run checks every rule of the contract. It calls open once for the rules that share a store, which run at the same time,
// and once for each rule that needs its own. open arranges for its store to be freed when its t ends. The stores may be on
// the same log.
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

// runRule checks one rule on the shared store, or on a store of its own if it needs one, and reports how it is broken.
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

// allRules are the rules of all files of this package.
func allRules() []rule {
	var all []rule
	for _, group := range [][]rule{appendRules(), repeatRules(), forgottenIDRules(), limitRules(), contentionRules(), streamRules(), logRules(), filterRules(), checkpointRules(), subscriptionRules(), subscriberRules(), contextRules(), closeRules()} {
		all = append(all, group...)
	}
	return all
}

// runParallel runs n calls at the same time and joins their errors. errgroup would keep only the first.
func runParallel(n int, do func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
