package service

import (
	"cmp"
	"context"
	"runtime/debug"
	"time"

	"lieudit/http/bodies"
)

const (
	// manyBytes of large bodies in memory have garbage collected more often.
	manyBytes = 32 << 20
	// tightGC is the garbage that may pile up meanwhile, in percent of what is in use: a body costs some 2.5 times its
	// length while it is decoded and written, and at the usual 100 percent garbage would double that.
	tightGC = 25
	// quiet is how long there are few bytes before what was freed goes back to the system.
	quiet = 5 * time.Second
)

// bodyBudget is the budget of large request bodies, of the API and the customer area together.
func (s *service) bodyBudget() *bodies.Budget {
	total := cmp.Or(s.BodyBudget, DefaultBodyBudget)
	return bodies.NewBudget(total, cmp.Or(s.AccountBody, total/2))
}

// memory keeps the memory of the process near what large bodies need, and gives it back after them.
type memory struct{ crossed chan bool }

// watch has memory told when there are many bytes of bodies, and when there are few again.
func watch(b *bodies.Budget) memory {
	m := memory{make(chan bool, 1)}
	b.Watch(manyBytes, func(above bool) {
		select { // what was told last counts; the budget is locked, so no other tells
		case <-m.crossed:
		default:
		}
		m.crossed <- above
	})
	return m
}

// run tightens garbage collection while there are many bytes, until ctx ends.
func (m memory) run(ctx context.Context) {
	usual := debug.SetGCPercent(-1)
	debug.SetGCPercent(usual)
	defer func() { debug.SetGCPercent(usual) }()
	tight := tightGC
	if usual >= 0 { // GOGC may be lower
		tight = min(tight, usual)
	}
	var idle <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case above := <-m.crossed:
			if above {
				debug.SetGCPercent(tight)
				idle = nil
				continue
			}
			idle = time.After(quiet)
		case <-idle:
			debug.SetGCPercent(usual)
			debug.FreeOSMemory()
			idle = nil
		}
	}
}
