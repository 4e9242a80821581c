package keyring

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
)

const (
	pollInterval       = 250 * time.Millisecond // between the starts of two polls
	pollTimeout        = 950 * time.Millisecond // of one poll: a longer one would end too late to keep the ring fresh
	maxConcurrentPolls = 4                      // so that a hanging poll does not delay the others
)

// Run keeps the ring in step with the log until ctx ends, and then saves a snapshot.
//
// A snapshot that is missing, damaged or from another log is not used. If the log turns out, while running, to have been
// restored from an older copy, the ring is no longer fresh, folds the log again from zero, and is fresh again once it has
// read that log to its end. A log with another identity stops a ring that was synced: it is not fresh until the right log is
// back, because none of its keys would be known there.
func (r *Ring) Run(ctx context.Context) {
	k := &runner{Ring: r, saver: snapshotSaver{file: r.file, disk: r.Disk, log: r.log, savedAt: r.clock()}}
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

// runner owns the goroutines of a running ring: the readers (one subscription and some polls) and the writer of a snapshot.
// stopAndSave waits for all of them.
type runner struct {
	*Ring
	saver       snapshotSaver
	readers     sync.WaitGroup
	activePolls atomic.Int32
	isTailing   atomic.Bool
	cancel      context.CancelFunc // ends the readers; nil if there are none
	readCtx     context.Context
}

// step does what is due: it starts the subscription and polls, restarts the ring from zero, and saves a snapshot. Run calls
// it every pollInterval.
//
// A ring that was not synced since it began has only a snapshot to lose, so it restarts from zero even on a log of another identity. A
// synced ring does not: it polls until the right log is back. Until the ring is synced only one poll runs at a time, because
// several would read the same events.
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

// tailLog runs one subscription; step starts the next. It records only one kind of failure, a diverged log: all others show
// in the polls.
func (k *runner) tailLog() {
	defer k.isTailing.Store(false)
	err := k.subscribe(k.readCtx)
	if divergedError(err) != nil {
		k.recordReadFailure(err, k.Checkpoint())
	}
	if !errors.Is(err, context.Canceled) {
		k.log.Debug("key ring's subscription ended", "error", err)
	}
}

// poll runs one poll.
func (k *runner) poll() {
	defer k.activePolls.Add(-1)
	k.pollLog(k.readCtx)
}

// stopReaders ends the subscription and all polls, and waits for them.
func (k *runner) stopReaders() {
	if k.cancel != nil {
		k.cancel()
		k.readers.Wait()
		k.cancel = nil
	}
}

// stopAndSave ends the readers and saves the last snapshot.
func (k *runner) stopAndSave() {
	k.stopReaders()
	k.saver.saveFinal(k.takeSnapshot())
}

// restoreSnapshot starts from the state of the snapshot file, if it can be used.
func (k *runner) restoreSnapshot() {
	if k.file == "" {
		return
	}
	s, checkpoint, err := readSnapshotFile(k.file)
	if err != nil {
		k.log.Warn("key ring snapshot ignored", "file", k.file, "error", err)
		return
	}
	if s != nil { // nil: there is no file yet
		k.adoptState(s, checkpoint)
		k.saver.checkpoint = checkpoint
		k.log.Debug("key ring snapshot loaded", "file", k.file, "position", checkpoint.Position)
	}
}

// restartFromZero forgets everything: the ring's state is not what this log holds.
func (k *runner) restartFromZero() {
	k.stopReaders()
	k.log.Warn("key ring restarts from zero: it holds what the log does not, or an event that a correction names")
	k.adoptState(newState(), eventstore.Checkpoint{})
}

// saveIfDue saves a snapshot if enough has happened since the last.
func (k *runner) saveIfDue(now time.Time) {
	k.mu.Lock()
	isDue := k.saver.isDue(k.checkpoint, k.state.Load().changes, now)
	k.mu.Unlock()
	if isDue {
		k.saver.saveAsync(k.takeSnapshot(), now)
	}
}

// pollLog reads what the ring lacks. Reaching the end of the log proves that everything on the log when the poll began is in
// the ring. What a failed poll has read is kept.
func (r *Ring) pollLog(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	begun, from := r.clock(), r.Checkpoint()
	for signal, err := range r.store.ReadAll(ctx, from, categories) {
		if err == nil {
			err = r.applySignal(signal)
		}
		if err != nil {
			r.recordReadFailure(err, from)
			return
		}
		if signal.Kind == eventstore.CaughtUp {
			r.recordPollSuccess(begun)
			return
		}
	}
	r.recordReadFailure(errors.New("the read ended before the end of the log"), from)
}

// subscribe applies the signals of one subscription until it ends.
func (r *Ring) subscribe(ctx context.Context) error {
	for signal, err := range r.store.Subscribe(ctx, r.Checkpoint(), categories) {
		if err == nil {
			err = r.applySignal(signal)
		}
		if err != nil {
			return err
		}
	}
	return errors.New("the subscription ended without saying why")
}

// applySignal applies a signal unless another reader already did. Every reader begins at a checkpoint of the ring and leaves
// nothing out, so the first signal beyond the
// checkpoint is the one that follows it.
func (r *Ring) applySignal(signal eventstore.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if signal.Checkpoint.Position <= r.checkpoint.Position {
		return nil
	}
	if signal.Kind == eventstore.EventAppeared {
		if err := r.foldNext(signal.Event); err != nil {
			return err
		}
	}
	r.checkpoint = signal.Checkpoint
	if len(r.waiters) > 0 {
		r.releaseWaiters()
	}
	return nil
}

// releaseWaiters wakes the callers of AwaitPosition whose position is passed. The caller holds mu.
func (r *Ring) releaseWaiters() {
	kept := r.waiters[:0]
	for _, w := range r.waiters {
		if w.position <= r.checkpoint.Position {
			close(w.passed)
		} else {
			kept = append(kept, w)
		}
	}
	clear(r.waiters[len(kept):])
	r.waiters = kept
}

// recordPollSuccess notes a poll that reached the end of the log. While the ring is waiting to restart from zero the poll
// does not count: the fold stays wrong, however far the log was read since. After a log of another identity a poll counts if
// it began later: it found the ring's checkpoint, so the right log is back. Polls may end in another order than they began,
// and a later start is never replaced by an earlier one.
func (r *Ring) recordPollSuccess(begun time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sinceEpoch := int64(begun.Sub(r.epoch))
	if r.hasDiverged && (!r.otherLog || !begun.After(r.divergedAt)) || sinceEpoch <= r.lastPollStart.Load() {
		return
	}
	r.lastPollStart.Store(sinceEpoch)
	r.notifyPollDone()
	if !r.isSynced || r.loggedReason != "" {
		r.log.Info("key ring follows the log", "position", r.checkpoint.Position, "credentials", r.state.Load().byHash.live)
	}
	r.hasDiverged, r.otherLog, r.isSynced, r.reason, r.loggedReason = false, false, true, "", ""
}

// recordReadFailure notes why a poll or the subscription failed. A log that lacks the checkpoint makes the ring stale at
// once; after any other failure it becomes stale with time. A poll that ran out of time but made progress is not a failure.
func (r *Ring) recordReadFailure(err error, from eventstore.Checkpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, context.Canceled) {
		return
	}
	if errors.Is(err, context.DeadlineExceeded) && from != r.checkpoint {
		r.reason = fmt.Sprintf("catching up with the log, at position %d", r.checkpoint.Position)
		return
	}
	if d := divergedError(err); d != nil {
		r.hasDiverged, r.otherLog, r.divergedAt = true, d.IsOtherLog, r.clock()
		r.voided = nil // they named events of the old log
		r.lastPollStart.Store(neverPolled)
	}
	r.reason = err.Error()
	if r.loggedReason != r.reason && !r.IsFresh(r.clock()) { // a single failed poll is not an incident
		r.log.Warn("key ring cannot follow the log", "position", r.checkpoint.Position, "error", err)
		r.loggedReason = r.reason
	}
}

// divergedError finds the DivergedError in err, nil if there is none.
func divergedError(err error) *eventstore.DivergedError {
	var d *eventstore.DivergedError
	errors.As(err, &d)
	return d
}

// followState returns whether the log is, as far as is known, the one that the ring was folded from, and whether a poll has
// reached its end.
func (r *Ring) followState() (isFollowing, isSynced bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.hasDiverged, r.isSynced
}

// isOtherLog reports whether the log has another identity than the ring's.
func (r *Ring) isOtherLog() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.otherLog
}

// adoptState replaces the ring's state by one that was folded up to a checkpoint. No reader may run meanwhile.
func (r *Ring) adoptState(s *state, checkpoint eventstore.Checkpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Store(s)
	r.checkpoint, r.isSynced, r.hasDiverged, r.otherLog = checkpoint, false, false, false
	r.releaseWaiters() // the snapshot may hold what they wait for
}

// takeSnapshot returns the ring's state at this instant, and counts changes from here on. It holds the lock only while it copies pointers to pages.
func (r *Ring) takeSnapshot() snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.state.Load()
	s.changes = 0
	return snapshot{r.checkpoint, s.words.all(), s.stoppedStreams().marshal(), s.accounts.snapshot(), s.keys.snapshot(), s.byHash.live}
}

// errVoidsFolded: a correction names an event that the ring has already folded. The ring folds the log again without it.
var errVoidsFolded = errors.New("a correction names an event that was folded")

// voidedEvent is an event that a correction names.
type voidedEvent struct {
	stream   string
	revision eventstore.Revision
}

// foldNext folds the next event of the log, or skips it. The caller holds mu. It fails with errVoidsFolded for a correction
// that names an event already folded: a fold cannot be undone, so Run restarts from zero, and the next fold leaves out the events in
// voided. Each such correction costs one more fold.
func (r *Ring) foldNext(e eventstore.RecordedEvent) error {
	s := r.state.Load()
	at, corrects := eventstore.VoidedRevision(e)
	switch {
	case r.voided[voidedEvent{e.Stream, e.Revision}]:
		return nil
	case !corrects:
		err := s.foldEvent(e)
		if _, unusable := errors.AsType[*eventstore.UnusableError](err); unusable {
			s.stopStream(e)
			r.log.Error("an event cannot be used: its account is stopped", "stream", e.Stream, "position", e.Position, "reason", err)
			return nil
		}
		return err
	case s.resumeStream(e.Stream, at):
		r.log.Info("a correction names the event that stopped an account", "stream", e.Stream, "position", e.Position)
		return nil
	case r.voided[voidedEvent{e.Stream, at}]:
		return nil
	}
	if r.voided == nil {
		r.voided = map[voidedEvent]bool{}
	}
	r.voided[voidedEvent{e.Stream, at}] = true
	r.hasDiverged, r.otherLog, r.isSynced, r.divergedAt = true, false, false, r.clock() // Run restarts from zero
	r.lastPollStart.Store(neverPolled)
	return fmt.Errorf("%s@%d: %w", e.Stream, at, errVoidsFolded)
}
