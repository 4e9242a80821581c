package server

import (
	"context"
	"time"

	"lieudit/eventstore/waiting"
	"lieudit/http/auth"
	"lieudit/schemas/grant"
)

// caller is who a request is from, and how long it may still wait for the log. What it was admitted on may not be older
// than a second when it is answered, so that a revocation holds everywhere within that time.
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

// spend does something that may wait, within the time that is left, and then looks whether the key still holds. That
// it does not is the error whatever else there is.
func (c *caller) spend(ctx context.Context, wait func(context.Context) error) (refused, err error) {
	if !c.gate.Follows() {
		return nil, wait(ctx)
	}
	if c.left < waiting.Longest {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.left)
		defer cancel()
	}
	came := c.now()
	err = wait(ctx)
	now := c.now()
	if took := now.Sub(came); took > waiting.Brief {
		c.left -= took
	}
	return c.gate.Confirm(ctx, &c.admitted, now, c.left), err
}
