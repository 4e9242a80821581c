package service

import (
	"cmp"
	"context"
	"runtime/debug"
	"time"

	"lieudit/http/bodylimit"
)

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
