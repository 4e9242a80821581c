package service

import (
	"context"
	"math/rand/v2"
	"time"

	"lieudit/queries/consumption"
	"lieudit/schemas/plan"
)

const (
	closeEvery  = 10 * time.Minute
	closeAtOnce = 100 // periods asked for at a time
)

// closePeriods closes what has ended, for as long as ctx goes on: each period its grace after its end, so that what was
// on its way can still be counted. The read model says where to look; whether it is so, the log decides.
func (s *service) closePeriods(ctx context.Context) error {
	books := consumption.New(s.shelf)
	for pause := time.Minute; ; pause = closeEvery/2 + rand.N(closeEvery) { // instances take turns more often than not
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		if err := s.closeEnded(ctx, books); err != nil && ctx.Err() == nil {
			s.Log.Warn("ended periods are not closed yet", "reason", err)
		}
	}
}

func (s *service) closeEnded(ctx context.Context, books *consumption.Consumption) error {
	by := plan.DateOf(s.Now().Add(-s.Grace))
	for {
		ended, err := books.Unclosed(ctx, by, closeAtOnce)
		if err != nil || len(ended) == 0 {
			return err
		}
		for _, p := range ended {
			if err := s.ledger.Close(ctx, p.Contract, p.Period); err != nil {
				return err
			}
		}
		if len(ended) < closeAtOnce {
			return nil
		}
		select { // until the read model has what was closed
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}
