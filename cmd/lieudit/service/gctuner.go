package service

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"lieudit/http/budget"
)

const (
	// manyBodyBytes is how many bytes of large bodies in memory make garbage collection more frequent.
	manyBodyBytes = 32 << 20
	// tightGCPercent is GOGC while there are that many. A body takes some 2.5 times its length in memory while it is
	// decoded and written; at the default of 100 percent the garbage would double that.
	tightGCPercent = 25
	// relaxDelay is how long there must be few bytes before GOGC is relaxed again and freed memory returned to the system.
	relaxDelay = 5 * time.Second

	// defaultGCPercent is GOGC unless the operator has set it.
	defaultGCPercent = 100
	// spareGarbage is how many bytes of garbage there may be between two collections even if less than that is live. A collection costs
	// what it takes to look at all that is live, and much of that is tables and templates that never change: at the default, small
	// services with many requests spend a fifth of their processor time on it.
	spareGarbage = 128 << 20
	// maxGCPercent bounds GOGC: a heap that suddenly grows is collected before it has grown to five times its size.
	maxGCPercent = 400
	// burstBytes is how far the memory may rise above twice what is live before collections become as frequent as it takes to keep it
	// there. Files that come at once can make that much in less time than a collection takes on a busy machine. It is a soft limit, and
	// soon adapted to what is live then.
	burstBytes = 192 << 20
	// retuneInterval is how often GOGC and the soft limit are adapted to what is live.
	retuneInterval = 2 * time.Second
)

// gcTuner makes garbage collection less frequent while the heap is small, and more frequent while many bytes of large bodies are in
// memory or the heap grows fast; after large bodies it returns the memory to the system. GOGC and the limit are settings of the process,
// so there is one gcTuner. crossings
// receives true when the bytes in memory have risen to manyBodyBytes and false when they have fallen below; it holds the last value
// only.
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

// tuneUntilDone adapts GOGC and the soft limit until ctx ends; then it restores them.
func (g gcTuner) tuneUntilDone(ctx context.Context) {
	initialPercent := debug.SetGCPercent(-1) // the only way to read it is to set it
	debug.SetGCPercent(initialPercent)
	percent := initialPercent
	set := func(to int) {
		if percent != to {
			percent = to
			debug.SetGCPercent(to)
		}
	}
	defer func() { set(initialPercent) }()
	initialLimit := debug.SetMemoryLimit(-1) // the same for the soft limit
	defer debug.SetMemoryLimit(initialLimit)
	debug.SetMemoryLimit(memoryLimit(initialLimit, liveBytes()))
	retune := time.NewTicker(retuneInterval)
	defer retune.Stop()
	set(relaxedPercent(initialPercent, liveBytes()))
	isTight := false
	var idle <-chan time.Time // receives relaxDelay after the bytes have become few; nil while they are many
	for {
		select {
		case <-ctx.Done():
			return
		case above := <-g.crossings:
			if idle = nil; !above {
				idle = time.After(relaxDelay)
				continue
			}
			isTight = true
			set(tightPercent(initialPercent))
		case <-idle:
			isTight, idle = false, nil
			set(initialPercent)
			debug.FreeOSMemory()
			set(relaxedPercent(initialPercent, liveBytes()))
		case <-retune.C:
			debug.SetMemoryLimit(memoryLimit(initialLimit, liveBytes()))
			if to := relaxedPercent(initialPercent, liveBytes()); !isTight && differsClearly(percent, to) {
				set(to)
			}
		}
	}
}

// relaxedPercent returns GOGC for a heap of which that many bytes are live. An operator's own setting stays.
func relaxedPercent(initialPercent int, live uint64) int {
	if initialPercent != defaultGCPercent || live >= spareGarbage {
		return initialPercent
	}
	return min(maxGCPercent, int(100*spareGarbage/max(live, 1)))
}

// memoryLimit returns the soft limit of memory for a heap of which that many bytes are live. An operator's own limit (GOMEMLIMIT) stays.
func memoryLimit(initialLimit int64, live uint64) int64 {
	if initialLimit != math.MaxInt64 {
		return initialLimit
	}
	return int64(2*live) + burstBytes
}

// tightPercent returns GOGC while there are many bytes of large bodies. The operator's GOGC may be even lower; a negative one means none.
func tightPercent(initialPercent int) int {
	if initialPercent < 0 {
		return tightGCPercent
	}
	return min(tightGCPercent, initialPercent)
}

// differsClearly reports whether one percentage is worth the short stop of the process that it takes to change the other to it.
func differsClearly(percent, to int) bool { return 8*max(percent-to, to-percent) > percent }

// liveBytes returns how many bytes of the heap the last collection has found to be live.
func liveBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
