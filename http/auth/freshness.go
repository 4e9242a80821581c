package auth

import (
	"context"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/grant"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// FreshnessSource is a ring that follows a log. It becomes stale while the log cannot be read, and fresh again after the next
// successful read.
type FreshnessSource interface {
	// FreshUntil is until when lookups from now on can be relied on: eventstore.MaxStaleness after the last successful read of
	// the log began. It is zero before the first, and after the log was replaced by another.
	FreshUntil() time.Time
	// AwaitFresh returns when the ring is fresh, or with the context's error.
	AwaitFresh(ctx context.Context) error
}

// Authentication is what the key of a request granted, and until when that can be relied on: when the answer is sent, the ring
// behind it is no older than eventstore.MaxStaleness, so that a revocation takes effect everywhere within that time.
type Authentication struct {
	grant.Grant
	Wait *waitlimit.Wait // of the request, for the ring and everything after it

	hash       token.Hash
	freshUntil time.Time
}

// Revalidate checks that an authentication can still be relied on. If it is too old, the request waits for a fresh ring and
// the key is looked up again. An error refuses the request.
func (g *Authenticator) Revalidate(ctx context.Context, a *Authentication) error {
	if g.freshness == nil || time.Now().Before(a.freshUntil) {
		return nil
	}
	again, err := g.lookUpKey(ctx, a.hash, a.Wait)
	a.freshUntil = again.freshUntil
	return err
}

// lookUpKey looks a key up. A stale ring cannot even show that a key is unknown: the key may have been issued a moment ago. A
// request whose key is in the stale ring waits until the ring is fresh, and the key is looked up again; any other is refused
// at once. A nil wait begins with the key's account. freshUntil is also set if there is an error.
func (g *Authenticator) lookUpKey(ctx context.Context, hash token.Hash, wait *waitlimit.Wait) (Authentication, error) {
	for a := (Authentication{hash: hash, Wait: wait}); ; {
		now, fresh := time.Now(), false // elapsed time: the wall clock may jump
		if g.freshness != nil {
			a.freshUntil = g.freshness.FreshUntil() // read before the lookup: the ring only knows more afterwards
			fresh = now.Before(a.freshUntil)
		} else {
			fresh = g.keys.IsFresh(now)
		}
		found, known := g.keys.FindKey(hash, g.now())
		if known && a.Wait == nil {
			a.Wait = g.limiter.NewWait(found.Account)
		}
		// A ring that began to read the log again meanwhile may have been incomplete when the key was looked up.
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
		if !WaitUntilFresh(ctx, g.freshness, a.Wait, now) {
			return a, refusal.AuthUnavailable
		}
	}
}

// WaitUntilFresh waits for a ring that is stale at an instant for as long as a request may, and reports whether the ring is
// fresh.
func WaitUntilFresh(ctx context.Context, source FreshnessSource, wait *waitlimit.Wait, now time.Time) bool {
	until := source.FreshUntil()
	if until.IsZero() {
		return false
	}
	defer wait.Begin(0)()
	waiting, stop := wait.Start(ctx, now.Sub(until)+eventstore.MaxStaleness)
	defer stop()
	return waiting.Err() == nil && source.AwaitFresh(waiting) == nil
}
