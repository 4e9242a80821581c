package service

import (
	"context"
	"runtime/debug"
	"time"

	"lieudit/http/budget"
)

const (
	// manyBodyBytes is how many bytes of large bodies in memory make garbage collection more frequent.
	manyBodyBytes = 32 << 20
	// tightGCPercent is GOGC while there are that many. A body takes some 2.5 times its length in memory while it is
	// decoded and written; at the default of 100 percent the garbage would double that.
	tightGCPercent = 25
	// relaxDelay is how long there must be few bytes before GOGC is restored and freed memory returned to the system.
	relaxDelay = 5 * time.Second
)

// gcTuner makes garbage collection more frequent while many bytes of large bodies are in memory, and returns the memory to
// the system after them. GOGC is a setting of the process, so there is one gcTuner. crossings receives true when the bytes
// in memory have risen to manyBodyBytes and false when they have fallen below; it holds the last value only.
type gcTuner struct{ crossings chan bool }

// newGCTuner returns a gcTuner that watches a budget. The budget must not be in use yet.
func newGCTuner(b *budget.Budget) gcTuner {
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
	if defaultPercent >= 0 { // the operator's GOGC may be even lower
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
