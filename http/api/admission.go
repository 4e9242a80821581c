package api

import (
	"context"
	"time"

	"lieudit/eventstore/waitlimit"
	"lieudit/http/auth"
	"lieudit/schemas/access"
)

// waitBudget is who a request is from, and how long it may still wait for the log, whatever for. What it was admitted on may
// not be older than a second when it is answered, so that a revocation holds everywhere within that time.
type waitBudget struct {
	access.Grant
	authenticator  *auth.Authenticator
	now            func() time.Time
	authentication auth.Authentication
	remaining      time.Duration
}

func (h *handler) newWaitBudget(authentication auth.Authentication) *waitBudget {
	return &waitBudget{authentication.Grant, h.authenticator, h.Now, authentication, waitlimit.MaxWait - authentication.Waited}
}

// runWithin does something that may wait, within the time that is left. A moment is always left: it is no wait.
func (c *waitBudget) runWithin(ctx context.Context, do func(context.Context) error) error {
	if !c.authenticator.CanGoStale() {
		return do(ctx)
	}
	if c.remaining < waitlimit.MaxWait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(c.remaining, waitlimit.UncountedWait))
		defer cancel()
	}
	started := c.now()
	err := do(ctx)
	if waited := c.now().Sub(started); waited > waitlimit.UncountedWait {
		c.remaining -= waited
	}
	return err
}

// runAndRevalidate is wait, and then looks whether the key still holds. That it does not is the error whatever else there is.
func (c *waitBudget) runAndRevalidate(ctx context.Context, do func(context.Context) error) (refused, err error) {
	err = c.runWithin(ctx, do)
	if !c.authenticator.CanGoStale() {
		return nil, err
	}
	before := c.authentication.Waited
	refused = c.authenticator.Revalidate(ctx, &c.authentication, c.now(), c.remaining)
	c.remaining -= c.authentication.Waited - before
	return refused, err
}

// undo does what undoes, though the client is gone, and waits for it no longer than the request may: it is done in
// the end all the same.
func (c *waitBudget) undo(ctx context.Context, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(c.remaining, waitlimit.UncountedWait))
	defer cancel()
	do(ctx)
}
