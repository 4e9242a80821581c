package keyring

import (
	"context"
	"time"
)

// FreshUntil is until when the ring is Fresh if no look succeeds any more; zero before the first, and when the log is
// another one.
func (r *Ring) FreshUntil() time.Time {
	lastPollStart := r.lastPollStart.Load()
	if lastPollStart == neverPolled {
		return time.Time{}
	}
	return r.epoch.Add(time.Duration(lastPollStart) + Staleness)
}

// AwaitFresh returns when the ring is Fresh, or with the context's error.
func (r *Ring) AwaitFresh(ctx context.Context) error {
	for {
		nextPoll := r.nextPollDone()
		if r.IsFresh(r.clock()) {
			return nil
		}
		select {
		case <-nextPoll:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nextPollDone is closed by the next look that succeeds.
func (r *Ring) nextPollDone() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nextPoll == nil {
		r.nextPoll = make(chan struct{})
	}
	return r.nextPoll
}

// notifyPollDone tells those who wait that a look succeeded. The ring is locked.
func (r *Ring) notifyPollDone() {
	if r.nextPoll != nil {
		close(r.nextPoll)
		r.nextPoll = nil
	}
}
