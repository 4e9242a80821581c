package instance

import (
	"context"
	"fmt"
	"time"

	"lieudit/eventstore/clock"
	usagequeries "lieudit/queries/usage"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// Now returns the time of the instance's clock, which does not jump.
func (i *Instance) Now() time.Time { return i.Clock.Now() }

// checkClock returns nil while the clock is trusted. Otherwise nothing is counted.
func (i *Instance) checkClock(context.Context) error { return i.Clock.Check() }

// checkLogTimes returns an error while the last event of a log at its opening lies in the future: either a clock was wrong when the event
// was recorded, or this machine's clock is behind now.
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

// checkPeriodsAhead returns an error if the last check found requests in periods that, by the clock, have not begun.
func (i *Instance) checkPeriodsAhead(context.Context) error {
	if found := i.periodsAhead.Load(); found != nil {
		return found
	}
	return nil
}

// periodsAheadError names periods that hold requests before they begin. Either a clock was ahead when these were counted, or this machine's
// clock is behind and one of the periods is the current one. The log looks the same in both cases, so an operator has to decide.
type periodsAheadError struct {
	first usagequeries.Period
	found int // closeBatchSize means that there may be more
}

func (e *periodsAheadError) Error() string {
	count := fmt.Sprint(e.found)
	if e.found == closeBatchSize {
		count = "at least " + count
	}
	return fmt.Sprintf("periods that begin in more than a day by this machine's clock hold requests: %s, such as that of contract %s from %s. Set the clock if "+
		"it is behind. If it is right, start once with --accept-clock to take those requests back", count, e.first.Contract, e.first.First)
}

// voidRetryPause is how long voidPeriodsAhead waits for a read model that does not advance.
const voidRetryPause = time.Second

// voidPeriodsAhead looks, until ctx ends, for requests that were counted in periods that have not begun. It takes them back only if an
// operator says that the clock is right: if the clock is behind, they are those of the current period. It looks once the read model
// holds everything on the log, and again as often as periods are closed.
func (i *Instance) voidPeriodsAhead(ctx context.Context) error {
	periods := usagequeries.New(i.Registry)
	for pause := time.Duration(0); clock.Sleep(ctx, pause); {
		if i.projector.AwaitCaughtUp(ctx, table.UsageModel.Name) != nil {
			pause = voidRetryPause // readiness reports it
			continue
		}
		if err := i.findPeriodsAhead(ctx, periods); err != nil && ctx.Err() == nil {
			i.Log.Warn("what was counted in periods that have not begun is not taken back", "reason", err)
		}
		pause = i.drawClosingPause()
	}
	return nil
}

// findPeriodsAhead looks for periods that begin in more than a day and hold requests. With AcceptClock it takes those back, batch by
// batch. Otherwise it notes the periods for readiness and fails with a *periodsAheadError.
func (i *Instance) findPeriodsAhead(ctx context.Context, periods *usagequeries.Reader) error {
	for {
		now, err := i.Clock.Read()
		if err != nil {
			return nil // readiness reports it
		}
		ahead, err := periods.PeriodsAhead(ctx, plan.DateOf(now.Add(24*time.Hour)), closeBatchSize)
		switch {
		case err != nil:
			return err
		case len(ahead) == 0:
			i.periodsAhead.Store(nil)
			return nil
		case !i.AcceptClock:
			found := &periodsAheadError{ahead[0], len(ahead)}
			i.periodsAhead.Store(found)
			return found
		}
		requests, err := i.voidAhead(ctx, ahead)
		if err != nil || requests == 0 || len(ahead) < closeBatchSize {
			return err
		}
		if err := i.projector.AwaitCaughtUp(ctx, table.UsageModel.Name); err != nil {
			return err
		}
	}
}

// voidAhead takes back the requests counted in some periods, and returns how many.
func (i *Instance) voidAhead(ctx context.Context, ahead []usagequeries.Period) (total int64, err error) {
	for _, p := range ahead {
		requests, err := i.usage.VoidPeriodAhead(ctx, p.Contract, p.Period)
		if total += requests; requests != 0 {
			i.Log.Warn("requests were counted in a period that has not begun, and are taken back", "contract", p.Contract, "period", p.First, "requests", requests)
		}
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
