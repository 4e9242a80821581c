// Package keyring holds in memory everything that authentication needs: which keys and tokens are valid, whose they are, and
// which terms they give at an instant. A revocation made anywhere counts here within a second, or the ring reports that it is
// not fresh. It needs no database and no vault.
//
//	Store.ReadAll, every 250 ms ──> pollLog ──> recordPollSuccess ──> IsFresh, FreshUntil, AwaitFresh
//	                                   │
//	                               applySignal ──> foldNext ──> state <── FindKey, FindToken, Terms
//	                                   │                          │
//	Store.Subscribe ──────────────> tailLog                       └──> takeSnapshot ──> file ──> the next Run
//
// A credential is an API key of an account, secret or publishable, or a customer-area token. The ring holds the hashes of
// credentials and never their texts. An account or token is stopped while the ring has met an event of it that cannot be
// used: that event may be the one that revokes a key.
//
// The subscription delivers events as soon as they are on the log; the polls prove that none is missing. Both hand signals to
// applySignal, which drops what the other has already delivered. FindKey and its like read the state at any time, without a
// lock.
//
// The state is tables of copy-on-write pages with a hash index of their own. With a million keys, a concurrent map of
// pointers took 231 bytes of memory per key instead of 132, a garbage collection marked seven times as long, and taking a
// snapshot blocked folding for 50 ms instead of 0.4 ms.
package keyring

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/disk/osfile"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// Staleness is how long ago the last successful poll of the log may have begun while the ring is still fresh.
const Staleness = eventstore.MaxStaleness

// Ring is the key ring of one instance. Its methods are safe for concurrent use. FindKey, FindToken, Terms and IsFresh take
// no lock and never wait.
type Ring struct {
	Disk osfile.Disk // of the snapshot's file; it may be set before Run

	store eventstore.Store
	clock func() time.Time // elapsed time
	file  string
	log   *slog.Logger
	epoch time.Time // when New was called; polls are timed from it, so that one atomic integer holds an instant

	state         atomic.Pointer[state]
	lastPollStart atomic.Int64 // when the last successful poll began: nanoseconds since epoch, or neverPolled

	mu           sync.Mutex // guards the fields below and all changes of state: there is one writer at a time
	checkpoint   eventstore.Checkpoint
	isSynced     bool                 // a poll has reached the log's end
	voided       map[voidedEvent]bool // events that corrections name: they are not folded
	hasDiverged  bool                 // the checkpoint is not on the log, or the log must be folded again
	otherLog     bool                 // because the log has another identity
	divergedAt   time.Time            // only polls that begin later count again
	reason       string               // why the last poll failed
	loggedReason string               // the reason that was logged
	waiters      []waiter
	nextPoll     chan struct{} // the next successful poll closes it; nil if nobody waits
}

// waiter is one call of AwaitPosition.
type waiter struct {
	position eventstore.Position
	passed   chan struct{} // closed once the checkpoint is at position or beyond
}

// neverPolled is the lastPollStart of a ring that no poll counts for.
const neverPolled = math.MinInt64

// New returns an empty ring of the log in store, which Run fills. file is where its snapshot is kept between runs; "" means
// no snapshot.
func New(store eventstore.Store, clock func() time.Time, file string, log *slog.Logger) *Ring {
	r := &Ring{store: store, clock: clock, file: file, log: log, epoch: clock(), reason: "the log has not been read yet"}
	r.state.Store(newState())
	r.lastPollStart.Store(neverPolled)
	return r
}

// FindKey returns what the API key with a hash gives at an instant. It is false for a key that is unknown or revoked, or
// whose account, or the agency that the account has at that instant, is closed. The grant of an account that is stopped, or
// whose agency is stopped, is marked as Stopped, whatever else is known.
func (r *Ring) FindKey(hash token.Hash, now time.Time) (grant.Grant, bool) {
	s := r.state.Load()
	k, ok := s.findKey(&hash)
	if !ok || k.kind == areaToken || k.account == 0 {
		return grant.Grant{}, false
	}
	account, terms, ok := s.termsAt(k.account-1, now)
	stopped := s.isStopped("account", account) || terms.Agency != "" && s.isStopped("account", terms.Agency)
	if !ok && !stopped {
		return grant.Grant{}, false
	}
	return grant.Grant{
		KeyID: k.id(), Kind: k.kind.tokenKind(), Hint: k.hint(), Origins: k.origins, Account: account, Terms: terms, Stopped: stopped,
	}, true
}

// tokenKind is the kind of an API key as the rest of the program names it. It is not meant for customer-area tokens.
func (k credentialKind) tokenKind() token.Kind {
	if k == publishable {
		return token.Publishable
	}
	return token.Secret
}

// FindToken returns what the customer-area token with a hash gives. It is false for a token that is unknown or revoked, or
// whose account is closed. The grant of a token that is stopped, or whose account is, is marked as Stopped.
func (r *Ring) FindToken(hash token.Hash) (grant.TokenGrant, bool) {
	s := r.state.Load()
	k, ok := s.findKey(&hash)
	if !ok || k.kind != areaToken {
		return grant.TokenGrant{}, false
	}
	found := grant.TokenGrant{TokenID: k.id(), Hint: k.hint(), Role: grant.Role(s.words.textOf(k.role))}
	found.Stopped = s.isStopped("token", found.TokenID)
	if k.account == 0 {
		return found, true
	}
	p, i := s.accounts.pageOf(k.account - 1)
	found.Account = p.text(i)
	found.Stopped = found.Stopped || s.isStopped("account", found.Account)
	return found, found.Stopped || p.rows[i].isOpen()
}

// Terms returns the terms of an account at an instant. It is false if the account is unknown or closed, or its agency is
// closed.
func (r *Ring) Terms(account string, now time.Time) (grant.Terms, bool) {
	s := r.state.Load()
	n, ok := s.findAccount(account)
	if !ok {
		return grant.Terms{}, false
	}
	_, terms, ok := s.termsAt(n, now)
	return terms, ok
}

// IsFresh reports whether the ring may be relied on: its last successful poll began less than Staleness before now.
func (r *Ring) IsFresh(now time.Time) bool {
	lastPollStart := r.lastPollStart.Load()
	return lastPollStart != neverPolled && now.Sub(r.epoch)-time.Duration(lastPollStart) < Staleness
}

// AwaitPosition returns once the ring's answers contain everything on the log up to a position, or with ctx's error. The
// event at the position need not concern the ring: polls move the checkpoint past such events too.
func (r *Ring) AwaitPosition(ctx context.Context, position eventstore.Position) error {
	r.mu.Lock()
	if r.checkpoint.Position >= position {
		r.mu.Unlock()
		return nil
	}
	passed := make(chan struct{})
	r.waiters = append(r.waiters, waiter{position, passed})
	r.mu.Unlock()
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
		r.removeWaiter(passed)
		return fmt.Errorf("key ring at position %d: %w", position, ctx.Err())
	}
}

// removeWaiter forgets a waiter whose context has ended.
func (r *Ring) removeWaiter(passed chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, w := range r.waiters {
		if w.passed == passed {
			r.waiters = append(r.waiters[:i], r.waiters[i+1:]...)
			return
		}
	}
}

// Checkpoint is the log position up to which all events are folded.
func (r *Ring) Checkpoint() eventstore.Checkpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checkpoint
}

// Status is the state of the ring, for monitoring.
type Status struct {
	Fresh         bool
	Position      eventstore.Position // all events up to here are folded
	LastPollStart time.Time           // when the last successful poll began; zero before the first
	Reason        string              // why it is not fresh, "" if it is
	Keys          int                 // credentials of all kinds, not revoked
}

// Status returns the state of the ring at an instant.
func (r *Ring) Status(now time.Time) Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := Status{Fresh: r.IsFresh(now), Position: r.checkpoint.Position, Keys: r.state.Load().byHash.live}
	if lastPollStart := r.lastPollStart.Load(); lastPollStart != neverPolled {
		st.LastPollStart = r.epoch.Add(time.Duration(lastPollStart))
	}
	if !st.Fresh {
		st.Reason = r.reason
		if st.Reason == "" {
			st.Reason = fmt.Sprintf("the last successful look at the log began at %s", st.LastPollStart.Format(time.RFC3339))
		}
	}
	return st
}

// FreshUntil is the instant at which the ring stops being fresh if no further poll succeeds; zero if no poll counts.
func (r *Ring) FreshUntil() time.Time {
	lastPollStart := r.lastPollStart.Load()
	if lastPollStart == neverPolled {
		return time.Time{}
	}
	return r.epoch.Add(time.Duration(lastPollStart) + Staleness)
}

// AwaitFresh returns once the ring is fresh, or with ctx's error.
func (r *Ring) AwaitFresh(ctx context.Context) error {
	for {
		nextPoll := r.nextPollDone() // before IsFresh, so as not to miss a poll that succeeds in between
		if r.IsFresh(r.clock()) {
			return nil
		}
		select {
		case <-nextPoll:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nextPollDone returns a channel that the next successful poll closes.
func (r *Ring) nextPollDone() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nextPoll == nil {
		r.nextPoll = make(chan struct{})
	}
	return r.nextPoll
}

// notifyPollDone wakes those who wait for a successful poll. The caller holds mu.
func (r *Ring) notifyPollDone() {
	if r.nextPoll != nil {
		close(r.nextPoll)
		r.nextPoll = nil
	}
}
