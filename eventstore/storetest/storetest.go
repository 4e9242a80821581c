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

	// Forget is Reopen by which the log also forgets which ids it was sent, as a server's restart or a new leader may
	// have it. Without it the rules about that are skipped.
	Forget func(t *testing.T, s eventstore.Store) eventstore.Store

	// FirstIDOnly: the log looks for a repeated append by the id of its first event and in the same stream only, as
	// EventStoreDB itself does. The rules that ask for more are skipped.
	FirstIDOnly bool

	// Patience is how long a rule may take; a minute when it is zero.
	Patience time.Duration
}

// rule is one sentence of the contract. own: the rule closes or restarts its store, so it is not given the one
// all others share. strict: see Options.FirstIDOnly. reopens: see Options.Reopen. forgets: see Options.Forget.
type rule struct {
	name                          string
	check                         func(ctx context.Context, l *log) error
	own, strict, reopens, forgets bool
}

// Run holds the stores that open gives to the contract: one for most rules at once, and one more for every rule that
// closes its store. open arranges for what it opened to be freed when its t ends; the logs need not be distinct.
func Run(t *testing.T, open func(t *testing.T) eventstore.Store) {
	t.Helper()
	RunWith(t, open, Options{})
}

// RunWith is Run with options.
func RunWith(t *testing.T, open func(t *testing.T) eventstore.Store, o Options) {
	t.Helper()
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	shared := open(t)
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			if r.strict && o.FirstIDOnly {
				t.Skip("this log compares the first id only")
			}
			if r.reopens && o.Reopen == nil {
				t.Skip("this log cannot be reopened here")
			}
			if r.forgets && o.Forget == nil {
				t.Skip("this log cannot be made to forget here")
			}
			run(t, r, shared, open, o)
		})
	}
}

func run(t *testing.T, r rule, store eventstore.Store, open func(t *testing.T) eventstore.Store, o Options) {
	t.Helper()
	if r.own || r.reopens || r.forgets {
		store = open(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadlinetest.Limit(o.Patience))
	defer cancel()
	l := &log{
		Store:  store,
		reopen: func(s eventstore.Store) eventstore.Store { return o.Reopen(t, s) },
		forget: func(s eventstore.Store) eventstore.Store { return o.Forget(t, s) },
	}
	if err := r.check(ctx, l); err != nil {
		t.Error(err)
	}
}

func rules() []rule {
	var all []rule
	for _, group := range [][]rule{appends(), repeats(), forgetting(), limits(), contention(), streams(), logs(), filters(), marks(), subscriptions(), followers(), contexts(), closings()} {
		all = append(all, group...)
	}
	return all
}
