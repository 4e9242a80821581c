package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore/clock"
	usagequeries "lieudit/queries/usage"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// Now is the time by the instance's clock, which does not jump.
func (i *Instance) Now() time.Time { return i.Clock.Now() }

// checkClock returns nil while the clock is believed: otherwise nothing is counted.
func (i *Instance) checkClock(context.Context) error { return i.Clock.Check() }

// checkLogTimes returns nil unless a log that this instance opened had a last event whose time lies ahead, and still does: a clock was
// wrong when that was recorded, or is behind now.
func (i *Instance) checkLogTimes(context.Context) error {
	now := i.Now()
	for _, log := range []struct {
		name   string
		opened func() time.Time
	}{{"log", i.CoreTimeAtOpen}, {"usage log", i.UsageTimeAtOpen}} {
		if log.opened == nil {
			continue
		}
		if last := log.opened(); last.Sub(now) > clock.MaxJump {
			return fmt.Errorf("the %s was opened with a last event of %s, and the clock says %s: a clock was ahead when that was recorded, or "+
				"this one is behind. Requests are counted by this machine's clock", log.name, last.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// voidRetryPause is how long voidPeriodsAhead waits for a read model that stands still.
const voidRetryPause = time.Second

// voidPeriodsAhead takes back until ctx ends what was counted in periods that have not begun: a clock that was ahead has opened them.
// It looks once the read model holds all that is on the log, and again as often as periods are closed.
func (i *Instance) voidPeriodsAhead(ctx context.Context) error {
	periods := usagequeries.New(i.Registry)
	for pause := time.Duration(0); sleep(ctx, pause); {
		if i.projector.AwaitCaughtUp(ctx, table.UsageModel.Name) != nil {
			pause = voidRetryPause // readiness tells
			continue
		}
		if err := i.voidEachAhead(ctx, periods); err != nil && ctx.Err() == nil {
			i.Log.Warn("what was counted in periods that have not begun is not taken back yet", "reason", err)
		}
		pause = i.drawClosingPause()
	}
	return nil
}

// errClockBehind: the clock would have it that what was counted lately was counted ahead.
var errClockBehind = errors.New("requests were counted on days that are still to come, so that the clock may be behind: if it is right, start with --accept-clock")

// voidEachAhead takes back what was counted in each period that begins in more than a day, batch by batch.
func (i *Instance) voidEachAhead(ctx context.Context, periods *usagequeries.Reader) error {
	for {
		now, err := i.Clock.Read()
		if err != nil {
			return nil // readiness tells
		}
		ahead, err := periods.PeriodsAhead(ctx, plan.DateOf(now.Add(24*time.Hour)), closeBatchSize)
		if err != nil {
			return err
		}
		requests, err := i.voidAhead(ctx, periods, plan.DateOf(now), ahead)
		if err != nil || requests == 0 || len(ahead) < closeBatchSize {
			return err
		}
		if err := i.projector.AwaitCaughtUp(ctx, table.UsageModel.Name); err != nil {
			return err
		}
	}
}

// voidAhead takes back what was counted in some periods, and returns how many requests. The log itself must show that a clock was ahead:
// between today and the period's beginning nothing was counted. Otherwise the clock is behind, and the period may be the present one.
func (i *Instance) voidAhead(ctx context.Context, periods *usagequeries.Reader, today plan.Date, ahead []usagequeries.Period) (total int64, err error) {
	checked := map[plan.Date]bool{}
	for _, p := range ahead {
		if !checked[p.First] && !i.AcceptClock {
			isBehind, err := periods.HasUsageBetween(ctx, today, p.First)
			if err == nil && isBehind {
				err = errClockBehind
			}
			if err != nil {
				return total, err
			}
			checked[p.First] = true
		}
		requests, err := i.ledger.VoidPeriodAhead(ctx, p.Contract, p.Period)
		if total += requests; requests != 0 {
			i.Log.Warn("requests were counted in a period that has not begun, and are taken back", "contract", p.Contract, "period", p.First, "requests", requests)
		}
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
