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
	pollInterval       = 250 * time.Millisecond // between the beginnings of two looks
	pollTimeout        = 950 * time.Millisecond // of a look: later it would prove nothing
	maxConcurrentPolls = 4                      // looks at most at a time, so that one that hangs delays none
)

// Run keeps the ring up with the log until the context ends, and then leaves a snapshot.
//
// A snapshot that is missing, damaged or of another log is not used. When the log turns out, while running, to have been
// restored from an older copy, the ring is not Fresh, begins again from zero and is Fresh again when it has read
// that log to its end. A log with another identity stops it: it is not Fresh until the right log is back, because none
// of its keys would be known there.
func (r *Ring) Run(ctx context.Context) {
	k := &runner{Ring: r, saver: snapshotSaver{file: r.file, log: r.log, savedAt: r.clock()}}
	k.restoreSnapshot()
	defer k.stopAndSave()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		k.step(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// runner owns the goroutines of a running ring.
type runner struct {
	*Ring
	saver       snapshotSaver
	readers     sync.WaitGroup
	activePolls atomic.Int32
	isTailing   atomic.Bool
	cancel      context.CancelFunc // of the readers; nil when there are none
	readCtx     context.Context
}

func (k *runner) step(ctx context.Context) {
	isFollowing, isSynced := k.followState()
	if !isFollowing && k.isTailing.Load() {
		k.stopReaders()
	}
	if !isFollowing && (!isSynced || !k.isOtherLog()) {
		k.restartFromZero()
		isFollowing = true
	}
	if k.cancel == nil {
		k.readCtx, k.cancel = context.WithCancel(ctx)
	}
	if isFollowing && k.isTailing.CompareAndSwap(false, true) {
		k.readers.Go(k.tailLog)
	}
	if n := k.activePolls.Load(); n == 0 || isSynced && n < maxConcurrentPolls {
		k.activePolls.Add(1)
		k.readers.Go(k.poll)
	}
	if isSynced {
		k.saveIfDue(k.clock())
	}
}

func (k *runner) tailLog() {
	defer k.isTailing.Store(false)
	err := k.subscribe(k.readCtx)
	if divergedError(err) != nil {
		k.recordReadFailure(err, k.currentCheckpoint())
	}
	if !errors.Is(err, context.Canceled) {
		k.log.Debug("key ring's subscription ended", "error", err)
	}
}

func (k *runner) poll() {
	defer k.activePolls.Add(-1)
	k.pollLog(k.readCtx)
}

// stopReaders ends all readers and waits for them.
func (k *runner) stopReaders() {
	if k.cancel != nil {
		k.cancel()
		k.readers.Wait()
		k.cancel = nil
	}
}

// stopAndSave leaves the state behind for the next run.
func (k *runner) stopAndSave() {
	k.stopReaders()
	k.saver.saveFinal(k.takeSnapshot())
}

func (k *runner) restoreSnapshot() {
	if k.file == "" {
		return
	}
	s, checkpoint, err := readSnapshotFile(k.file)
	if err != nil {
		k.log.Warn("key ring's snapshot is not used", "file", k.file, "error", err)
		return
	}
	if s != nil {
		k.adoptState(s, checkpoint)
		k.saver.checkpoint = checkpoint
	}
}

// restartFromZero begins again from zero: what the ring knows is not what this log holds.
func (k *runner) restartFromZero() {
	k.stopReaders()
	k.log.Warn("key ring begins again from zero: what it knew is not on the log", "file", k.file)
	k.adoptState(newState(), eventstore.Checkpoint{})
}

// saveIfDue saves when enough has happened since it was last done.
func (k *runner) saveIfDue(now time.Time) {
	k.mu.Lock()
	isDue := k.saver.isDue(k.checkpoint, k.state.Load().changes, now)
	k.mu.Unlock()
	if isDue {
		k.saver.saveAsync(k.takeSnapshot(), now)
	}
}
