package server

import (
	"context"
	"time"

	"lieudit/eventstore/waiting"
	"lieudit/http/auth"
	"lieudit/schemas/grant"
)

// caller is who a request is from, and how long it may still wait for the log, whatever for. What it was admitted on may
// not be older than a second when it is answered, so that a revocation holds everywhere within that time.
type caller struct {
	grant.Grant
	gate     *auth.Gate
	now      func() time.Time
	admitted auth.Admission
	left     time.Duration
}

func (a *api) caller(admitted auth.Admission) *caller {
	return &caller{admitted.Grant, a.gate, a.Now, admitted, waiting.Longest - admitted.Waited}
}

// wait does something that may wait, within the time that is left. A moment is always left: it is no wait.
func (c *caller) wait(ctx context.Context, do func(context.Context) error) error {
	if !c.gate.Follows() {
		return do(ctx)
	}
	if c.left < waiting.Longest {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(c.left, waiting.Brief))
		defer cancel()
	}
	came := c.now()
	err := do(ctx)
	if took := c.now().Sub(came); took > waiting.Brief {
		c.left -= took
	}
	return err
}

// spend is wait, and then looks whether the key still holds. That it does not is the error whatever else there is.
func (c *caller) spend(ctx context.Context, do func(context.Context) error) (refused, err error) {
	err = c.wait(ctx, do)
	if !c.gate.Follows() {
		return nil, err
	}
	before := c.admitted.Waited
	refused = c.gate.Confirm(ctx, &c.admitted, c.now(), c.left)
	c.left -= c.admitted.Waited - before
	return refused, err
}

// takeBack does what undoes, though the client is gone, and waits for it no longer than the request may: it is done in
// the end all the same.
func (c *caller) takeBack(ctx context.Context, undo func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(c.left, waiting.Brief))
	defer cancel()
	undo(ctx)
}
