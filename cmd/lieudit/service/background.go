package service

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"lieudit/http/bodylimit"
	usagequeries "lieudit/queries/usage"
	"lieudit/schemas/plan"
)

const (
	closeInterval  = 10 * time.Minute
	closeBatchSize = 100 // periods asked for at a time
)

// closePeriods closes what has ended, for as long as ctx goes on: each period its grace after its end, so that what was
// on its way can still be counted. The read model says where to look; whether it is so, the log decides.
func (s *service) closePeriods(ctx context.Context) error {
	periods := usagequeries.New(s.registry)
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

func (s *service) closeEndedPeriods(ctx context.Context, periods *usagequeries.Reader) error {
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

// runLedger runs the ledger from what the key ring knows once it is fresh: before that no request is let in, and what
// happened by then is in what the ring lets in.
func (s *service) runLedger(ctx context.Context) error {
	for !s.keyRing.IsFresh(s.Now()) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * time.Millisecond):
		}
	}
	return s.ledger.Run(ctx, s.logs.core, s.keyRing.Checkpoint())
}

const (
	// manyBodyBytes of large bodies in memory have garbage collected more often.
	manyBodyBytes = 32 << 20
	// tightGCPercent is the garbage that may pile up meanwhile, in percent of what is in use: a body costs some 2.5 times its
	// length while it is decoded and written, and at the usual 100 percent garbage would double that.
	tightGCPercent = 25
	// relaxDelay is how long there are few bytes before what was freed goes back to the system.
	relaxDelay = 5 * time.Second
)

// newBodyBudget is the budget of large request bodies, of the API and the customer area together.
func (s *service) newBodyBudget() *bodylimit.Budget {
	total := cmp.Or(s.BodyBudget, DefaultBodyBudget)
	return bodylimit.NewBudget(total, cmp.Or(s.AccountBodyBudget, total/2))
}

// gcTuner keeps the gcTuner of the process near what large bodies need, and gives it back after them.
type gcTuner struct{ crossings chan bool }

// newGCTuner has memory told when there are many bytes of bodies, and when there are few again.
func newGCTuner(b *bodylimit.Budget) gcTuner {
	m := gcTuner{make(chan bool, 1)}
	b.Watch(manyBodyBytes, func(above bool) {
		select { // what was told last counts; the budget is locked, so no other tells
		case <-m.crossings:
		default:
		}
		m.crossings <- above
	})
	return m
}

// run tightens garbage collection while there are many bytes, until ctx ends.
func (m gcTuner) run(ctx context.Context) {
	defaultPercent := debug.SetGCPercent(-1)
	debug.SetGCPercent(defaultPercent)
	defer func() { debug.SetGCPercent(defaultPercent) }()
	tightPercent := tightGCPercent
	if defaultPercent >= 0 { // GOGC may be lower
		tightPercent = min(tightPercent, defaultPercent)
	}
	var idle <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case above := <-m.crossings:
			if above {
				debug.SetGCPercent(tightPercent)
				idle = nil
				continue
			}
			idle = time.After(relaxDelay)
		case <-idle:
			debug.SetGCPercent(defaultPercent)
			debug.FreeOSMemory()
			idle = nil
		}
	}
}
