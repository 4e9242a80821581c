package auth

import (
	"context"
	"time"

	"lieudit/eventstore/waitlimit"
	"lieudit/http/problem"
	"lieudit/schemas/access"
	"lieudit/schemas/token"
)

// FreshnessSource is a ring that follows a log. It goes stale when the log is silent, and is fresh again once it was read
// anew.
type FreshnessSource interface {
	// FreshUntil is until when what is found from now on may be relied on: waiting.Staleness after the last
	// successful look at the log began. It is zero before the first, and when the log is another one.
	FreshUntil() time.Time
	// AwaitFresh returns when the ring is fresh, or with the context's error.
	AwaitFresh(ctx context.Context) error
}

// Authentication is a request that was let in: what its key gave, and until when that may be relied on.
type Authentication struct {
	access.Grant
	Waited time.Duration // for the ring to be fresh

	hash       token.Hash
	freshUntil time.Time
}

// CanGoStale says whether what the gate admits grows old.
func (g *Authenticator) CanGoStale() bool { return g.freshness != nil }

// Revalidate says whether an admission still holds at an instant. Once it is too old to be relied on the key is looked up
// anew, in a ring that is fresh: at most left is waited for that, and added to what was waited before.
func (g *Authenticator) Revalidate(ctx context.Context, a *Authentication, now time.Time, left time.Duration) error {
	if g.freshness == nil || now.Before(a.freshUntil) {
		return nil
	}
	again, err := g.lookUpKey(ctx, a.hash, left)
	a.freshUntil = again.freshUntil
	a.Waited += again.Waited
	return err
}

// lookUpKey looks a key up. A ring that is not fresh knows nothing, not even that a key is unknown: it may have been issued
// a moment ago. Who has a key that the stale ring knows waits until the ring is fresh; nobody else does.
func (g *Authenticator) lookUpKey(ctx context.Context, hash token.Hash, left time.Duration) (Authentication, error) {
	for a := (Authentication{hash: hash}); ; {
		now, fresh := g.now(), false
		if g.freshness != nil {
			a.freshUntil = g.freshness.FreshUntil() // before it is asked: what it learns after that is only more,
			fresh = now.Before(a.freshUntil)
		} else {
			fresh = g.keys.IsFresh(now)
		}
		found, known := g.keys.FindKey(hash, now)
		if fresh && g.freshness != nil && g.freshness.FreshUntil().Before(a.freshUntil) { // unless it began again from zero
			fresh = false
		}
		switch {
		case fresh && known && found.Stopped:
			return a, problem.Internal()
		case fresh && known:
			a.Grant = found
			return a, nil
		case fresh:
			return a, problem.KeyInvalid()
		case !known || g.freshness == nil:
			return a, problem.AuthUnavailable()
		}
		isFresh := WaitUntilFresh(ctx, g.freshness, g.limiter, found.Account, now, left-a.Waited)
		a.Waited += g.now().Sub(now)
		if !isFresh {
			return a, problem.AuthUnavailable()
		}
	}
}

// WaitUntilFresh waits for a stale ring, with a place of an account in a room, and says whether it is fresh. It waits for so
// long, and not for a log that is lost.
func WaitUntilFresh(ctx context.Context, source FreshnessSource, limiter *waitlimit.Limiter, account string, now time.Time, left time.Duration) bool {
	until := source.FreshUntil()
	silence := now.Sub(until) + waitlimit.MaxStaleness
	left = min(left, waitlimit.MaxSilence-silence)
	if until.IsZero() || left <= 0 {
		return false
	}
	leave, ok := limiter.Acquire(account)
	if !ok {
		return false
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	return source.AwaitFresh(ctx) == nil
}
