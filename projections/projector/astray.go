package projector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/table"
)

// A copy whose checkpoint is not on the log holds what the log does not: an older copy of the log was restored, and
// may have been written on since. Each instance finds that out for itself, by its feed or by verify, and answers
// nothing from the copy. The copy comes back when the log does; else a fresh one takes its place.

// verifyLimit is how long the start of a lane waits to know whether its checkpoint is on the log.
const verifyLimit = time.Second

// remedy is what an operator does about a copy that is astray.
const remedy = "`lieudit projections rebuild --all` makes the read models anew from the log as it is"

// stopReason is why a copy cannot be filled. A checkpoint that is not on the log takes the copy out of use.
func (l *lane) stopReason(err error) string {
	var diverged *eventstore.DivergedError
	if !errors.As(err, &diverged) {
		return err.Error()
	}
	l.setAstray(true)
	if diverged.Other { // rebuilding would be of no use to whoever has to put the right log back
		return fmt.Sprintf("%s; nothing is answered from it", err)
	}
	return fmt.Sprintf("%s; nothing is answered from it: %s", err, remedy)
}

// Verify finds out which of the copies that serve are not on the log, so that none of them is answered from before Run
// does. It waits a second at most: what is not known by then counts as being on it.
func (p *Projector) Verify(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	all, err := p.shelf.Copies(ctx)
	if err != nil {
		return
	}
	var checks sync.WaitGroup
	for _, c := range all {
		if m, err := p.model(c.Model); err == nil && c.Of(m.Model) && c.State == table.Serving {
			checks.Go(func() { p.verify(ctx, m, c) })
		}
	}
	checks.Wait()
}

// verify asks the log whether the checkpoint of a copy is on it. Without an answer in time all stays as it was.
func (p *Projector) verify(ctx context.Context, m Model, c table.Copy) {
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	_, mark, err := p.checkpoint(ctx, c)
	if err != nil {
		return
	}
	for _, err := range p.storeOf(m).ReadAll(ctx, mark, m.Categories) {
		var diverged *eventstore.DivergedError
		if err == nil || errors.As(err, &diverged) {
			p.shelf.SetAstray(c, err != nil)
		}
		return
	}
}

// reverify looks again at a copy that this instance found astray, when another instance fills it.
func (l *lane) reverify(ctx context.Context, c table.Checkpoint) {
	if c.Reason == "" && l.isAstray() {
		l.verify(ctx)
	}
}
