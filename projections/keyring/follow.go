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

// pollLog reads what the ring does not have yet. Reaching the log's end proves that all which was in the log when
// the look began is in the ring; what a look that fails has read stays read.
func (r *Ring) pollLog(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	begun, from := r.clock(), r.currentCheckpoint()
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

// subscribe takes what a subscription brings until it ends.
func (r *Ring) subscribe(ctx context.Context) error {
	for signal, err := range r.store.Subscribe(ctx, r.currentCheckpoint(), categories) {
		if err == nil {
			err = r.applySignal(signal)
		}
		if err != nil {
			return err
		}
	}
	return errors.New("the subscription ended without saying why")
}

func (r *Ring) currentCheckpoint() eventstore.Checkpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checkpoint
}

// applySignal applies a signal unless another reader brought it before. Every reader began at a mark the ring had and
// leaves nothing out, so a position not passed yet is the next one.
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

// recordPollSuccess records a look that reached the end of the log. Of a ring that is to begin again from zero it says nothing: what
// was folded stays wrong, however far the log was read since.
func (r *Ring) recordPollSuccess(begun time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since := int64(begun.Sub(r.epoch))
	if r.hasDiverged && (!r.otherLog || !begun.After(r.divergedAt)) || since <= r.lastPollStart.Load() {
		return
	}
	r.lastPollStart.Store(since)
	r.notifyPollDone()
	if !r.isSynced || r.loggedReason != "" {
		r.log.Info("key ring follows the log", "position", r.checkpoint.Position, "credentials", r.state.Load().byHash.live)
	}
	r.hasDiverged, r.isSynced, r.reason, r.loggedReason = false, true, "", ""
}

// recordReadFailure records why a look failed. A log that the ring's mark is not on stops it at once; with any other trouble the ring goes stale by itself. A look that ran out of time on its way is no trouble.
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
		r.voided = nil // which named events of the log that was
		r.lastPollStart.Store(neverPolled)
	}
	r.reason = err.Error()
	if r.loggedReason != r.reason && !r.IsFresh(r.clock()) { // one look that fails is no incident
		r.log.Warn("key ring cannot follow the log", "position", r.checkpoint.Position, "error", err)
		r.loggedReason = r.reason
	}
}

// divergedError is the error that the log is not the one a mark is of, nil when it is not among the errors.
func divergedError(err error) *eventstore.DivergedError {
	var d *eventstore.DivergedError
	errors.As(err, &d)
	return d
}

// followState: the log is, as far as is known, the one the ring was folded from. synced: a look has reached its end.
func (r *Ring) followState() (isFollowing, isSynced bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.hasDiverged, r.isSynced
}

// isOtherLog says whether the log that was found has another identity than the ring's.
func (r *Ring) isOtherLog() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.otherLog
}

// adoptState makes s, folded up to mark, what the ring knows. Nothing reads the log meanwhile.
func (r *Ring) adoptState(s *state, checkpoint eventstore.Checkpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Store(s)
	r.checkpoint, r.isSynced, r.hasDiverged, r.otherLog = checkpoint, false, false, false
	r.releaseWaiters() // who waits for what a snapshot held
}

// takeSnapshot is what the ring knows at this instant.
func (r *Ring) takeSnapshot() snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.state.Load()
	s.changes = 0
	return snapshot{r.checkpoint, s.words.all(), s.stoppedStreams().marshal(), s.accounts.snapshot(), s.keys.snapshot(), s.byHash.live}
}

// errVoidsFolded: a correction names an event that the ring has folded. It folds the log again without it.
var errVoidsFolded = errors.New("a correction names an event that was folded")

// voidedEvent is an event that a correction names.
type voidedEvent struct {
	stream   string
	revision eventstore.Revision
}

// foldNext folds the next event of the log, or passes over it. Who calls it holds mu.
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
	r.hasDiverged, r.isSynced, r.divergedAt = true, false, r.clock() // Run begins again from zero
	r.lastPollStart.Store(neverPolled)
	return fmt.Errorf("%s@%d: %w", e.Stream, at, errVoidsFolded)
}
