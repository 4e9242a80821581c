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
	closeInterval  = 10 * time.Minute // mean pause between two rounds of closing
	closeBatchSize = 100              // periods read at a time
)

// closePeriods closes periods of usage until ctx ends. It closes a period PeriodGrace after the period's end, so that late
// ticks, the events that count requests, are still in it. The read model only says which periods to try; the log decides
// whether one can be closed, so several instances may try the same.
func (s *service) closePeriods(ctx context.Context) error {
	periods := usagequeries.New(s.registry)
	// The first round waits until the read models are likely to have caught up. Later pauses are random, so that instances
	// seldom work on the same periods at once.
	for pause := time.Minute; sleep(ctx, pause); pause = closeInterval/2 + rand.N(closeInterval) {
		if err := s.closeEndedPeriods(ctx, periods); err != nil && ctx.Err() == nil {
			s.Log.Warn("ended periods are not closed yet", "reason", err)
		}
	}
	return nil
}

// closeEndedPeriods closes all periods that are due now, batch by batch. It stops at the first error, and returns nil when
// ctx ends.
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
		if !sleep(ctx, time.Second) { // until the read model no longer lists what was just closed
			return nil
		}
	}
}

// runLedger runs the usage meter as soon as the key ring is fresh. Before that the key ring accepts no key, so no request
// is counted. The meter follows the core log from the key ring's checkpoint on: the plans and caps that the key ring
// gives for a request already contain what happened before.
func (s *service) runLedger(ctx context.Context) error {
	for !s.keyRing.IsFresh(s.Now()) {
		if !sleep(ctx, 10*time.Millisecond) { // short: requests cannot be counted before the meter runs
			return nil
		}
	}
	return s.ledger.Run(ctx, s.logs.core, s.keyRing.Checkpoint())
}

const (
	// manyBodyBytes is how many bytes of large bodies in memory make garbage collection more frequent.
	manyBodyBytes = 32 << 20
	// tightGCPercent is GOGC while there are that many. A body takes some 2.5 times its length in memory while it is
	// decoded and written; at the default of 100 percent the garbage would double that.
	tightGCPercent = 25
	// relaxDelay is how long there must be few bytes before GOGC is restored and freed memory returned to the system.
	relaxDelay = 5 * time.Second
)

// newBodyBudget returns the budget of large request bodies, in bytes, that the API and the customer area share.
func (s *service) newBodyBudget() *bodylimit.Budget {
	total := cmp.Or(s.BodyBudget, DefaultBodyBudget)
	return bodylimit.NewBudget(total, cmp.Or(s.AccountBodyBudget, total/2))
}

// gcTuner makes garbage collection more frequent while many bytes of large bodies are in memory, and returns the memory to
// the system after them. GOGC is a setting of the process, so there is one gcTuner. crossings receives true when the bytes
// in memory have risen to manyBodyBytes and false when they have fallen below; it holds the last value only.
type gcTuner struct{ crossings chan bool }

// newGCTuner returns a gcTuner that watches a budget. The budget must not be in use yet.
func newGCTuner(b *bodylimit.Budget) gcTuner {
	g := gcTuner{make(chan bool, 1)}
	b.Watch(manyBodyBytes, func(above bool) {
		select { // the last value replaces one not yet received; the budget's lock makes this the only sender
		case <-g.crossings:
		default:
		}
		g.crossings <- above
	})
	return g
}

// tuneUntilDone tightens garbage collection while there are many bytes, until ctx ends; then it restores GOGC.
func (g gcTuner) tuneUntilDone(ctx context.Context) {
	defaultPercent := debug.SetGCPercent(-1) // the only way to read it is to set it
	debug.SetGCPercent(defaultPercent)
	defer func() { debug.SetGCPercent(defaultPercent) }()
	tightPercent := tightGCPercent
	if defaultPercent >= 0 { // the operator's GOGC may be lower still
		tightPercent = min(tightPercent, defaultPercent)
	}
	var idle <-chan time.Time // receives relaxDelay after the bytes have become few; nil while they are many
	for {
		select {
		case <-ctx.Done():
			return
		case above := <-g.crossings:
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

// sleep waits for a duration and returns true, or returns false as soon as ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
