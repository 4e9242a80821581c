package keyring

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
)

const (
	every    = 250 * time.Millisecond // between the beginnings of two looks
	patience = 950 * time.Millisecond // of a look: later it would prove nothing
	together = 4                      // looks at most at a time, so that one that hangs delays none
)

// Run keeps the ring up with the log until the context ends, and then leaves a snapshot.
//
// A snapshot that is missing, damaged or of another log is not used. When the log turns out, while running, to have been
// restored from an older copy, the ring is not Fresh, begins again from zero and is Fresh again when it has read
// that log to its end. A log with another identity stops it: it is not Fresh until the right log is back, because none
// of its keys would be known there.
func (r *Ring) Run(ctx context.Context) {
	k := &keeper{Ring: r, saver: saver{file: r.file, log: r.log, at: r.clock()}}
	k.restore()
	defer k.end()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		k.turn(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// keeper owns the goroutines of a running ring.
type keeper struct {
	*Ring
	saver   saver
	readers sync.WaitGroup
	looking atomic.Int32
	tailing atomic.Bool
	cancel  context.CancelFunc // of the readers; nil when there are none
	reading context.Context
}

func (k *keeper) turn(ctx context.Context) {
	standing, synced := k.standing()
	if !standing && k.tailing.Load() {
		k.stop()
	}
	if !standing && (!synced || !k.isElsewhere()) {
		k.reset()
		standing = true
	}
	if k.cancel == nil {
		k.reading, k.cancel = context.WithCancel(ctx)
	}
	if standing && k.tailing.CompareAndSwap(false, true) {
		k.readers.Go(k.tail)
	}
	if n := k.looking.Load(); n == 0 || synced && n < together {
		k.looking.Add(1)
		k.readers.Go(k.glance)
	}
	if synced {
		k.consider(k.clock())
	}
}

func (k *keeper) tail() {
	defer k.tailing.Store(false)
	err := k.follow(k.reading)
	if diverged(err) != nil {
		k.blind(err, k.at())
	}
	if !errors.Is(err, context.Canceled) {
		k.log.Debug("key ring's subscription ended", "error", err)
	}
}

func (k *keeper) glance() {
	defer k.looking.Add(-1)
	k.look(k.reading)
}

// stop ends all readers and waits for them.
func (k *keeper) stop() {
	if k.cancel != nil {
		k.cancel()
		k.readers.Wait()
		k.cancel = nil
	}
}

// end leaves the state behind for the next run.
func (k *keeper) end() {
	k.stop()
	k.saver.finish(k.freeze())
}

func (k *keeper) restore() {
	if k.file == "" {
		return
	}
	s, mark, err := load(k.file)
	if err != nil {
		k.log.Warn("key ring's snapshot is not used", "file", k.file, "error", err)
		return
	}
	if s != nil {
		k.begin(s, mark)
		k.saver.mark = mark
	}
}

// reset begins again from zero: what the ring knows is not what this log holds.
func (k *keeper) reset() {
	k.stop()
	k.log.Warn("key ring begins again from zero: what it knew is not on the log", "file", k.file)
	k.begin(newState(), eventstore.Mark{})
}

// consider saves when enough has happened since it was last done.
func (k *keeper) consider(now time.Time) {
	k.mu.Lock()
	due := k.saver.due(k.mark, k.state.Load().changes, now)
	k.mu.Unlock()
	if due {
		k.saver.save(k.freeze(), now)
	}
}
