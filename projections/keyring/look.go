package keyring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore"
)

// look reads what the ring does not have yet. Reaching the log's end proves that all which was in the log when
// the look began is in the ring; what a look that fails has read stays read.
func (r *Ring) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begun, from := r.clock(), r.at()
	for signal, err := range r.store.ReadAll(ctx, from, wanted) {
		if err == nil {
			err = r.take(signal)
		}
		if err != nil {
			r.blind(err, from)
			return
		}
		if signal.Kind == eventstore.CaughtUp {
			r.seen(begun)
			return
		}
	}
	r.blind(errors.New("the read ended before the end of the log"), from)
}

// follow takes what a subscription brings until it ends.
func (r *Ring) follow(ctx context.Context) error {
	for signal, err := range r.store.Subscribe(ctx, r.at(), wanted) {
		if err == nil {
			err = r.take(signal)
		}
		if err != nil {
			return err
		}
	}
	return errors.New("the subscription ended without saying why")
}

func (r *Ring) at() eventstore.Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mark
}

// take applies a signal unless another reader brought it before. Every reader began at a mark the ring had and
// leaves nothing out, so a position not passed yet is the next one.
func (r *Ring) take(signal eventstore.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if signal.Mark.Position <= r.mark.Position {
		return nil
	}
	if signal.Kind == eventstore.Event {
		if err := r.foldNext(signal.Event); err != nil {
			return err
		}
	}
	r.mark = signal.Mark
	if len(r.waits) > 0 {
		r.release()
	}
	return nil
}

func (r *Ring) release() {
	kept := r.waits[:0]
	for _, w := range r.waits {
		if w.position <= r.mark.Position {
			close(w.passed)
		} else {
			kept = append(kept, w)
		}
	}
	clear(r.waits[len(kept):])
	r.waits = kept
}

// seen records a look that reached the end of the log. Of a ring that is to begin again from zero it says nothing: what
// was folded stays wrong, however far the log was read since.
func (r *Ring) seen(begun time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since := int64(begun.Sub(r.epoch))
	if r.lost && (!r.elsewhere || !begun.After(r.lostAt)) || since <= r.looked.Load() {
		return
	}
	r.looked.Store(since)
	r.turn()
	if !r.synced || r.told != "" {
		r.log.Info("key ring follows the log", "position", r.mark.Position, "credentials", r.state.Load().byHash.live)
	}
	r.lost, r.synced, r.reason, r.told = false, true, "", ""
}

// blind records why a look failed. A log that the ring's mark is not on stops it at once; with any other trouble the ring goes stale by itself. A look that ran out of time on its way is no trouble.
func (r *Ring) blind(err error, from eventstore.Mark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, context.Canceled) {
		return
	}
	if errors.Is(err, context.DeadlineExceeded) && from != r.mark {
		r.reason = fmt.Sprintf("catching up with the log, at position %d", r.mark.Position)
		return
	}
	if d := diverged(err); d != nil {
		r.lost, r.elsewhere, r.lostAt = true, d.Other, r.clock()
		r.voided = nil // which named events of the log that was
		r.looked.Store(never)
	}
	r.reason = err.Error()
	if r.told != r.reason && !r.Fresh(r.clock()) { // one look that fails is no incident
		r.log.Warn("key ring cannot follow the log", "position", r.mark.Position, "error", err)
		r.told = r.reason
	}
}

// diverged is the error that the log is not the one a mark is of, nil when it is not among the errors.
func diverged(err error) *eventstore.DivergedError {
	var d *eventstore.DivergedError
	errors.As(err, &d)
	return d
}

// standing: the log is, as far as is known, the one the ring was folded from. synced: a look has reached its end.
func (r *Ring) standing() (standing, synced bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.lost, r.synced
}

// isElsewhere says whether the log that was found has another identity than the ring's.
func (r *Ring) isElsewhere() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.elsewhere
}

// begin makes s, folded up to mark, what the ring knows. Nothing reads the log meanwhile.
func (r *Ring) begin(s *state, mark eventstore.Mark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Store(s)
	r.mark, r.synced, r.lost, r.elsewhere = mark, false, false, false
	r.release() // who waits for what a snapshot held
}

// freeze is what the ring knows at this instant.
func (r *Ring) freeze() snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.state.Load()
	s.changes = 0
	return snapshot{r.mark, s.words.all(), s.stoppedOf().texts(), s.accounts.freeze(), s.keys.freeze(), s.byHash.live}
}
