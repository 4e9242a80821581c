package auth

import (
	"context"
	"time"

	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/access"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// FreshnessSource is a ring that follows a log. It becomes stale while the log cannot be read, and fresh again after the next
// successful read.
type FreshnessSource interface {
	// FreshUntil is until when what is found from now on may be relied on: waitlimit.MaxStaleness after the last
	// successful read of the log began. It is zero before the first, and when the log is another one.
	FreshUntil() time.Time
	// AwaitFresh returns when the ring is fresh, or with the context's error.
	AwaitFresh(ctx context.Context) error
}

// Authentication is what the key of a request gave, and until when that may be relied on.
type Authentication struct {
	access.Grant
	Waited time.Duration // until the ring was fresh

	hash       token.Hash
	freshUntil time.Time
}

// CanGoStale reports whether an Authentication may be relied on for a limited time only.
func (g *Authenticator) CanGoStale() bool { return g.freshness != nil }

// Revalidate checks that an authentication may still be relied on at an instant. If it is too old, the key is looked up again
// in a fresh ring, for which it waits at most left; the wait is added to a.Waited. An error refuses the request.
func (g *Authenticator) Revalidate(ctx context.Context, a *Authentication, now time.Time, left time.Duration) error {
	if g.freshness == nil || now.Before(a.freshUntil) {
		return nil
	}
	again, err := g.lookUpKey(ctx, a.hash, left)
	a.freshUntil = again.freshUntil
	a.Waited += again.Waited
	return err
}

// lookUpKey looks a key up. A stale ring cannot even show that a key is unknown: the key may have been issued a moment ago. A
// request with a key that the stale ring holds waits at most left until the ring is fresh, and the key is looked up again; any
// other is refused at once. The hash, the wait and freshUntil are set beside an error too.
func (g *Authenticator) lookUpKey(ctx context.Context, hash token.Hash, left time.Duration) (Authentication, error) {
	for a := (Authentication{hash: hash}); ; {
		now, fresh := g.now(), false
		if g.freshness != nil {
			a.freshUntil = g.freshness.FreshUntil() // read before the key is looked up: what the ring learns after that is only more
			fresh = now.Before(a.freshUntil)
		} else {
			fresh = g.keys.IsFresh(now)
		}
		found, known := g.keys.FindKey(hash, now)
		// A ring that began to read the log again meanwhile was perhaps not complete when the key was looked up.
		if fresh && g.freshness != nil && g.freshness.FreshUntil().Before(a.freshUntil) {
			fresh = false
		}
		switch {
		case fresh && known && found.Stopped:
			return a, refusal.Internal
		case fresh && known:
			a.Grant = found
			return a, nil
		case fresh:
			return a, refusal.KeyInvalid
		case !known || g.freshness == nil:
			return a, refusal.AuthUnavailable
		}
		isFresh := WaitUntilFresh(ctx, g.freshness, g.limiter, found.Account, now, left-a.Waited)
		a.Waited += g.now().Sub(now)
		if !isFresh {
			return a, refusal.AuthUnavailable
		}
	}
}

// WaitUntilFresh waits for a stale ring, as one of the account's requests that the limiter admits, and reports whether the
// ring is fresh. It waits at most left, and not at all for a log that has been silent for waitlimit.MaxSilence.
func WaitUntilFresh(ctx context.Context, source FreshnessSource, limiter *waitlimit.Limiter, account string, now time.Time, left time.Duration) bool {
	until := source.FreshUntil()
	silence := now.Sub(until) + waitlimit.MaxStaleness
	left = min(left, waitlimit.MaxSilence-silence)
	if until.IsZero() || left <= 0 {
		return false
	}
	release, ok := limiter.Acquire(account)
	if !ok {
		return false
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	return source.AwaitFresh(ctx) == nil
}
