package instance

import (
	"context"
	"fmt"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// usageLoss is what an older copy of the usage log does not hold: the read model of usage has counted up to a later time.
type usageLoss struct {
	generation sqldb.Generation
	from, to   time.Time // of the last event of the log, and of the last one that was counted
}

func (l *usageLoss) Error() string {
	return fmt.Sprintf("the usage log is an older copy: requests from %s to %s are not on it, and their accounts are counted too low. Put the newest copy back, "+
		"or go on without them: lieudit projections rebuild usage", l.from.Format(time.RFC3339), l.to.Format(time.RFC3339))
}

// findUsageLoss compares the usage log with its read model, which the projector has verified. It returns nil
// if nothing shows a loss, or if the times are unknown.
func (i *Instance) findUsageLoss(ctx context.Context) *usageLoss {
	g, err := i.Registry.ServingGeneration(ctx, table.UsageModel)
	if i.UsageTimeAtOpen == nil || err != nil || !i.Registry.IsDiverged(g) {
		return nil
	}
	all, err := i.projector.Status(ctx)
	if err != nil {
		return nil
	}
	for _, status := range all {
		if from := i.UsageTimeAtOpen(); status.Generation == g.Name && from.Before(status.LastRecorded) {
			return &usageLoss{g, from, status.LastRecorded}
		}
	}
	return nil
}

// checkUsageLoss returns the loss that the start found, until the read model was made again from the log as it is.
func (i *Instance) checkUsageLoss(ctx context.Context) error {
	loss := i.usageLoss.Load()
	if loss == nil || !i.Registry.IsDiverged(loss.generation) {
		return nil
	}
	g, err := i.Registry.ServingGeneration(ctx, table.UsageModel)
	if err == nil && g.Name != loss.generation.Name {
		return nil
	}
	return loss
}
