// Package keyring holds in memory all that authentication needs: which tokens are valid, whose they are and
// what they give at an instant. It is folded from the log and looks at the log four times a second, so that a
// revocation made anywhere counts here within a second, or the ring says that it is not Fresh. It needs
// no database and no vault.
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
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/access"
	"lieudit/schemas/token"
)

// Staleness is how old the last successful look at the log may be while the ring is Fresh.
const Staleness = waitlimit.MaxStaleness

// Ring is the key ring of one instance of the program. Its questions may be asked at any time by anyone; they
// take no lock and never wait.
type Ring struct {
	store eventstore.Store
	clock func() time.Time
	file  string
	log   *slog.Logger
	epoch time.Time

	state         atomic.Pointer[state]
	lastPollStart atomic.Int64 // when the last successful look began, since epoch

	mu           sync.Mutex // one writer at a time; guards what follows and all changes of state
	checkpoint   eventstore.Checkpoint
	isSynced     bool                 // a look has reached the log's end
	voided       map[voidedEvent]bool // events that corrections name and that are not to be folded again
	hasDiverged  bool                 // the mark is not on the log, or what was folded up to it is to be folded again
	otherLog     bool                 // because that is another log altogether
	divergedAt   time.Time            // only looks that begin later count again
	reason       string               // why the last look failed
	loggedReason string               // the reason that was logged
	waiters      []waiter
	nextPoll     chan struct{} // closed by the next look that succeeds; nil: nobody waits for it
}

type waiter struct {
	position eventstore.Position
	passed   chan struct{}
}

const neverPolled = math.MinInt64

// New is an empty ring of the log in store: Run fills it. file is where its snapshot is kept between runs;
// "" keeps none.
func New(store eventstore.Store, clock func() time.Time, file string, log *slog.Logger) *Ring {
	r := &Ring{store: store, clock: clock, file: file, log: log, epoch: clock(), reason: "the log has not been read yet"}
	r.state.Store(newState())
	r.lastPollStart.Store(neverPolled)
	return r
}

// FindKey is what the API key with a hash gives at an instant. It is false for a key that is unknown or revoked,
// or whose account, or the account's agency at that instant, is closed. Of an account that is stopped, or whose agency
// is, it is Stopped, whatever else is known.
func (r *Ring) FindKey(hash token.Hash, now time.Time) (access.Grant, bool) {
	s := r.state.Load()
	k, ok := s.findKey(&hash)
	if !ok || k.kind == areaToken || k.account == 0 {
		return access.Grant{}, false
	}
	account, terms, ok := s.termsAt(k.account-1, now)
	stopped := s.isStopped("account", account) || terms.Agency != "" && s.isStopped("account", terms.Agency)
	if !ok && !stopped {
		return access.Grant{}, false
	}
	return access.Grant{
		KeyID: k.id(), Kind: k.kind.tokenKind(), Hint: k.hint(), Origins: k.origins, Account: account, Terms: terms, Stopped: stopped,
	}, true
}

func (k credentialKind) tokenKind() token.Kind {
	if k == publishable {
		return token.Publishable
	}
	return token.Secret
}

// FindToken is what the customer-area token with a hash gives. It is false for a token that is unknown or revoked,
// or whose account is closed, and of a token or an account that is stopped.
func (r *Ring) FindToken(hash token.Hash) (access.TokenGrant, bool) {
	s := r.state.Load()
	k, ok := s.findKey(&hash)
	if !ok || k.kind != areaToken {
		return access.TokenGrant{}, false
	}
	pass := access.TokenGrant{TokenID: k.id(), Hint: k.hint(), Role: access.Role(s.words.text(k.role))}
	if s.isStopped("token", pass.TokenID) {
		return access.TokenGrant{}, false
	}
	if k.account == 0 {
		return pass, true
	}
	p, i := s.accounts.at(k.account - 1)
	pass.Account = p.text(i)
	return pass, p.rows[i].isOpen() && !s.isStopped("account", pass.Account)
}

// Terms are the conditions of an account at an instant. It is false when the account is unknown or closed, or its
// agency is closed.
func (r *Ring) Terms(account string, now time.Time) (access.Terms, bool) {
	s := r.state.Load()
	n, ok := s.findAccount(account)
	if !ok {
		return access.Terms{}, false
	}
	_, terms, ok := s.termsAt(n, now)
	return terms, ok
}

// IsFresh says whether the ring may be relied on: its last successful look at the log began less than Staleness
// before now.
func (r *Ring) IsFresh(now time.Time) bool {
	lastPollStart := r.lastPollStart.Load()
	return lastPollStart != neverPolled && now.Sub(r.epoch)-time.Duration(lastPollStart) < Staleness
}

// AwaitPosition returns once everything in the log up to a position shows in the ring's answers, or with the context's
// error.
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

// Checkpoint is the place in the log up to which all events are in.
func (r *Ring) Checkpoint() eventstore.Checkpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checkpoint
}

// Status is how the ring is doing.
type Status struct {
	Fresh         bool
	Position      eventstore.Position // all events up to here are in
	LastPollStart time.Time           // when the last successful look began; zero before the first
	Reason        string              // why it is not Fresh, else ""
	Keys          int                 // credentials of all kinds, not revoked
}

// Status is how the ring is doing at an instant.
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

// FreshUntil is until when the ring is Fresh if no look succeeds any more; zero before the first, and when the log is
// another one.
func (r *Ring) FreshUntil() time.Time {
	lastPollStart := r.lastPollStart.Load()
	if lastPollStart == neverPolled {
		return time.Time{}
	}
	return r.epoch.Add(time.Duration(lastPollStart) + Staleness)
}

// AwaitFresh returns when the ring is Fresh, or with the context's error.
func (r *Ring) AwaitFresh(ctx context.Context) error {
	for {
		nextPoll := r.nextPollDone()
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

// nextPollDone is closed by the next look that succeeds.
func (r *Ring) nextPollDone() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nextPoll == nil {
		r.nextPoll = make(chan struct{})
	}
	return r.nextPoll
}

// notifyPollDone tells those who wait that a look succeeded. The ring is locked.
func (r *Ring) notifyPollDone() {
	if r.nextPoll != nil {
		close(r.nextPoll)
		r.nextPoll = nil
	}
}
