package auth

import (
	"context"
	"time"

	"lieudit/eventstore/waiting"
	"lieudit/http/problem"
	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// Follower is a ring that follows a log. It goes stale when the log is silent, and is fresh again once it was read
// anew.
type Follower interface {
	// FreshUntil is until when what is found from now on may be relied on: waiting.Staleness after the last
	// successful look at the log began. It is zero before the first, and when the log is another one.
	FreshUntil() time.Time
	// AwaitFresh returns when the ring is fresh, or with the context's error.
	AwaitFresh(ctx context.Context) error
}

// Admission is a request that was let in: what its key gave, and until when that may be relied on.
type Admission struct {
	grant.Grant
	Waited time.Duration // for the ring to be fresh

	hash  token.Hash
	until time.Time
}

// Follows says whether what the gate admits grows old.
func (g *Gate) Follows() bool { return g.follower != nil }

// Confirm says whether an admission still holds at an instant. Once it is too old to be relied on the key is looked up
// anew, in a ring that is fresh: at most left is waited for that, and added to what was waited before.
func (g *Gate) Confirm(ctx context.Context, a *Admission, now time.Time, left time.Duration) error {
	if g.follower == nil || now.Before(a.until) {
		return nil
	}
	again, err := g.find(ctx, a.hash, left)
	a.until = again.until
	a.Waited += again.Waited
	return err
}

// find looks a key up. A ring that is not fresh knows nothing, not even that a key is unknown: it may have been issued
// a moment ago. Who has a key that the stale ring knows waits until the ring is fresh; nobody else does.
func (g *Gate) find(ctx context.Context, hash token.Hash, left time.Duration) (Admission, error) {
	for a := (Admission{hash: hash}); ; {
		now, fresh := g.now(), false
		if g.follower != nil {
			a.until = g.follower.FreshUntil() // before it is asked: what it learns after that is only more,
			fresh = now.Before(a.until)
		} else {
			fresh = g.ring.Fresh(now)
		}
		found, known := g.ring.Find(hash, now)
		if fresh && g.follower != nil && g.follower.FreshUntil().Before(a.until) { // unless it began again from zero
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
		case !known || g.follower == nil:
			return a, problem.AuthUnavailable()
		}
		isFresh := Await(ctx, g.follower, g.room, found.Account, now, left-a.Waited)
		a.Waited += g.now().Sub(now)
		if !isFresh {
			return a, problem.AuthUnavailable()
		}
	}
}

// Await waits for a stale ring, with a place of an account in a room, and says whether it is fresh. It waits for so
// long, and not for a log that is lost.
func Await(ctx context.Context, ring Follower, room *waiting.Room, account string, now time.Time, left time.Duration) bool {
	until := ring.FreshUntil()
	silence := now.Sub(until) + waiting.Staleness
	left = min(left, waiting.Lost-silence)
	if until.IsZero() || left <= 0 {
		return false
	}
	leave, ok := room.Enter(account)
	if !ok {
		return false
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	return ring.AwaitFresh(ctx) == nil
}
