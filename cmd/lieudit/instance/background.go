package instance

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore/clock"
	usagequeries "lieudit/queries/usage"
	"lieudit/schemas/plan"
)

const (
	defaultClosingInterval = 10 * time.Minute
	closeBatchSize         = 100 // periods read at a time
)

// closePeriods closes periods of usage until ctx ends. It closes a period PeriodGrace after the period's end, so that late
// ticks, the events that count requests, are still in it. The read model only says which periods to try; the log decides
// whether one can be closed, so several instances may try the same.
func (i *Instance) closePeriods(ctx context.Context) error {
	periods := usagequeries.New(i.Registry)
	// The first round waits until the read models are likely to have caught up.
	for pause := min(time.Minute, i.closingInterval()); clock.Sleep(ctx, pause); pause = i.drawClosingPause() {
		if err := i.closeEndedPeriods(ctx, periods); err != nil && ctx.Err() == nil {
			i.Log.Warn("ended periods are not closed yet", "reason", err)
		}
	}
	return nil
}

func (i *Instance) closingInterval() time.Duration {
	return cmp.Or(i.ClosingInterval, defaultClosingInterval)
}

// drawClosingPause draws the pause between two rounds, so that instances seldom work on the same periods at once.
func (i *Instance) drawClosingPause() time.Duration {
	return i.closingInterval()/2 + rand.N(i.closingInterval())
}

// closeEndedPeriods closes all periods that are due now, batch by batch. While the clock is in doubt, which readiness reports, it closes
// no period. It stops at the first error, and returns nil if ctx ends.
func (i *Instance) closeEndedPeriods(ctx context.Context, periods *usagequeries.Reader) error {
	now, err := i.Clock.Read()
	if err != nil {
		return nil
	}
	endedBefore := plan.DateOf(now.Add(-i.PeriodGrace))
	for {
		ended, err := periods.UnclosedPeriods(ctx, endedBefore, closeBatchSize)
		if err != nil || len(ended) == 0 {
			return err
		}
		due := make([]usage.ContractPeriod, len(ended))
		for n, p := range ended {
			due[n] = usage.ContractPeriod(p)
		}
		if err := i.usage.ClosePeriods(ctx, due...); err != nil {
			return err
		}
		if len(ended) < closeBatchSize {
			return nil
		}
		if !clock.Sleep(ctx, time.Second) { // until the read model no longer lists what was just closed
			return nil
		}
	}
}

// runUsageMeter runs the usage meter as soon as the key ring is fresh. Before that the key ring accepts no key, so no request
// is counted. The meter follows the core log from the key ring's checkpoint on: the plans and caps that the key ring
// gives for a request already contain what happened before.
func (i *Instance) runUsageMeter(ctx context.Context) error {
	for !i.keyRing.IsFresh(time.Now()) {
		if !clock.Sleep(ctx, 10*time.Millisecond) { // short: requests cannot be counted before the meter runs
			return nil
		}
	}
	i.usage.Run(ctx, i.Core, i.keyRing.Checkpoint())
	return nil
}
