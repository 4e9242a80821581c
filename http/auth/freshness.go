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
	// FreshUntil is until when what is found from now on may be relied on: eventstore.MaxStaleness after the last
	// successful read of the log began. It is zero before the first, and when the log is another one.
	FreshUntil() time.Time
	// AwaitFresh returns when the ring is fresh, or with the context's error.
	AwaitFresh(ctx context.Context) error
}

// Authentication is what the key of a request gave, and until when that may be relied on: an answer rests on a ring no older
// than eventstore.MaxStaleness when it is sent, so that a revocation takes effect everywhere within that time.
type Authentication struct {
	grant.Grant
	Wait *waitlimit.Wait // of the request, for the ring and for all that comes after

	hash       token.Hash
	freshUntil time.Time
}

// Revalidate checks that an authentication may still be relied on. If it is too old, the key is looked up again in a fresh ring,
// for which the request waits. An error refuses the request.
func (g *Authenticator) Revalidate(ctx context.Context, a *Authentication) error {
	if g.freshness == nil || time.Now().Before(a.freshUntil) {
		return nil
	}
	again, err := g.lookUpKey(ctx, a.hash, a.Wait)
	a.freshUntil = again.freshUntil
	return err
}

// lookUpKey looks a key up. A stale ring cannot even show that a key is unknown: the key may have been issued a moment ago. A
// request with a key that the stale ring holds waits until the ring is fresh, and the key is looked up again; any other is
// refused at once. A nil wait begins with the key's account. freshUntil is set next to an error too.
func (g *Authenticator) lookUpKey(ctx context.Context, hash token.Hash, wait *waitlimit.Wait) (Authentication, error) {
	for a := (Authentication{hash: hash, Wait: wait}); ; {
		now, fresh := time.Now(), false // elapsed time: the wall clock may jump
		if g.freshness != nil {
			a.freshUntil = g.freshness.FreshUntil() // read before the key is looked up: what the ring learns after that is only more
			fresh = now.Before(a.freshUntil)
		} else {
			fresh = g.keys.IsFresh(now)
		}
		found, known := g.keys.FindKey(hash, g.now())
		if known && a.Wait == nil {
			a.Wait = g.limiter.NewWait(found.Account)
		}
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
