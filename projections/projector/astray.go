package projector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// This file detects copies that are astray: their checkpoint names an event that the log does not hold, because an older
// backup of the log was restored. The rows of such a copy may come from events that are gone, so nothing is answered from
// it. Each instance finds out for itself: its feed fails with an eventstore.DivergedError, or verify reads one event after
// the checkpoint. The copy is used again once the log holds the event again; otherwise a rebuild replaces it.

// verifyTimeout is how long Verify and verify wait for the log.
const verifyTimeout = time.Second

// rebuildHint tells the operator what to do about a copy that is astray.
const rebuildHint = "`lieudit projections rebuild --all` makes the read models anew from the log as it is"

// stopReason returns the text why a copy cannot be filled. If its checkpoint is not on the log, it also marks the copy as
// astray.
func (w *worker) stopReason(err error) string {
	var diverged *eventstore.DivergedError
	if !errors.As(err, &diverged) {
		return err.Error()
	}
	w.setDiverged(true)
	if diverged.IsOtherLog { // another log is connected: the operator must restore the right one, not rebuild
		return fmt.Sprintf("%s; nothing is answered from it", err)
	}
	return fmt.Sprintf("%s; nothing is answered from it: %s", err, rebuildHint)
}

// VerifyGenerations finds the serving copies that are astray. It is called before Run, so that none of them answers a query. It takes
// a second at most; a copy that is not verified by then counts as right.
func (p *Projector) VerifyGenerations(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	all, err := p.registry.Generations(ctx)
	if err != nil {
		return
	}
	var checks sync.WaitGroup
	for _, c := range all {
		if m, err := p.modelNamed(c.Model); err == nil && c.IsOf(m.ReadModel) && c.State == sqldb.Serving {
			checks.Go(func() { p.verifyGeneration(ctx, m, c) })
		}
	}
	checks.Wait()
}

// verifyGeneration reads from the checkpoint of a copy to find out whether the log holds it. If the log does not answer in time,
// nothing changes.
func (p *Projector) verifyGeneration(ctx context.Context, m Model, c sqldb.Generation) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	_, checkpoint, err := p.readCheckpoint(ctx, c)
	if err != nil {
		return
	}
	for _, err := range p.storeOf(m).ReadAll(ctx, checkpoint, m.Categories) {
		var diverged *eventstore.DivergedError
		if err == nil || errors.As(err, &diverged) {
			p.registry.SetDiverged(c, err != nil)
		}
		return
	}
}

// reverifyGeneration verifies a copy that this instance found astray once another instance fills it without an error.
func (w *worker) reverifyGeneration(ctx context.Context, c table.Checkpoint) {
	if c.StopReason == "" && w.isDiverged() {
		w.verifyGeneration(ctx)
	}
}
