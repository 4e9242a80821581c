package keyring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore"
)

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
