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
	closeBatchSize = 100 // periods read at a time
)

// closePeriods closes periods of usage until ctx ends: each one PeriodGrace after its end, so that late ticks still count.
// The read model only says which periods to look at; the log decides whether one can be closed.
func (s *service) closePeriods(ctx context.Context) error {
	periods := usagequeries.New(s.registry)
	for pause := time.Minute; sleep(ctx, pause); pause = closeInterval/2 + rand.N(closeInterval) { // random: instances seldom meet
		if err := s.closeEndedPeriods(ctx, periods); err != nil && ctx.Err() == nil {
			s.Log.Warn("ended periods are not closed yet", "reason", err)
		}
	}
	return nil
}

// closeEndedPeriods closes all periods that are due now.
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
		if !sleep(ctx, time.Second) { // gives the read model time to see what was closed
			return nil
		}
	}
}

// runLedger runs the usage meter from the key ring's checkpoint on, as soon as the key ring is fresh. No request is let in
// before that, and what happened up to the checkpoint is in what the key ring lets in.
func (s *service) runLedger(ctx context.Context) error {
	for !s.keyRing.IsFresh(s.Now()) {
		if !sleep(ctx, 10*time.Millisecond) {
			return nil
		}
	}
	return s.ledger.Run(ctx, s.logs.core, s.keyRing.Checkpoint())
}

const (
	// manyBodyBytes is how many bytes of large bodies in memory make garbage collection more frequent.
	manyBodyBytes = 32 << 20
	// tightGCPercent is GOGC meanwhile. A body costs some 2.5 times its length while it is decoded and written; the
	// usual 100 percent would double that.
	tightGCPercent = 25
	// relaxDelay is how long there must be few bytes before freed memory is returned to the system.
	relaxDelay = 5 * time.Second
)

// newBodyBudget is the budget of large request bodies that the API and the customer area share.
func (s *service) newBodyBudget() *bodylimit.Budget {
	total := cmp.Or(s.BodyBudget, DefaultBodyBudget)
	return bodylimit.NewBudget(total, cmp.Or(s.AccountBodyBudget, total/2))
}

// gcTuner keeps the memory of the process near what large bodies need, and returns it to the system after them. Each
// value of crossings says whether the bytes in memory have risen above manyBodyBytes or fallen below.
type gcTuner struct{ crossings chan bool }

// newGCTuner watches a budget.
func newGCTuner(b *bodylimit.Budget) gcTuner {
	m := gcTuner{make(chan bool, 1)}
	b.Watch(manyBodyBytes, func(above bool) {
		select { // the last value replaces one not yet received; the budget's lock makes this the only sender
		case <-m.crossings:
		default:
		}
		m.crossings <- above
	})
	return m
}

// run tightens garbage collection while there are many bytes, until ctx ends; then it restores GOGC.
func (m gcTuner) run(ctx context.Context) {
	defaultPercent := debug.SetGCPercent(-1)
	debug.SetGCPercent(defaultPercent)
	defer func() { debug.SetGCPercent(defaultPercent) }()
	tightPercent := tightGCPercent
	if defaultPercent >= 0 { // the operator's GOGC may be lower still
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

// sleep waits for a time and returns true, or false as soon as ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
