package service

import (
	"context"
	"math/rand/v2"
	"time"

	"lieudit/queries/usage"
	"lieudit/schemas/plan"
)

const (
	closeInterval  = 10 * time.Minute
	closeBatchSize = 100 // periods asked for at a time
)

// closePeriods closes what has ended, for as long as ctx goes on: each period its grace after its end, so that what was
// on its way can still be counted. The read model says where to look; whether it is so, the log decides.
func (s *service) closePeriods(ctx context.Context) error {
	periods := usage.New(s.registry)
	for pause := time.Minute; ; pause = closeInterval/2 + rand.N(closeInterval) { // instances take turns more often than not
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		if err := s.closeEndedPeriods(ctx, periods); err != nil && ctx.Err() == nil {
			s.Log.Warn("ended periods are not closed yet", "reason", err)
		}
	}
}

func (s *service) closeEndedPeriods(ctx context.Context, periods *usage.Reader) error {
	endedBefore := plan.DateOf(s.Now().Add(-s.PeriodGrace))
	for {
		ended, err := periods.UnclosedPeriods(ctx, endedBefore, closeBatchSize)
		if err != nil || len(ended) == 0 {
			return err
		}
		for _, p := range ended {
			if err := s.ledger.ClosePeriod(ctx, p.Contract, p.Period); err != nil {
				return err
			}
		}
		if len(ended) < closeBatchSize {
			return nil
		}
		select { // until the read model has what was closed
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}
