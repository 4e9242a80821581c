package keyring

import (
	"context"
	"time"
)

// FreshUntil is until when the ring is Fresh if no look succeeds any more; zero before the first, and when the log is
// another one.
func (r *Ring) FreshUntil() time.Time {
	looked := r.looked.Load()
	if looked == never {
		return time.Time{}
	}
	return r.epoch.Add(time.Duration(looked) + Staleness)
}

// AwaitFresh returns when the ring is Fresh, or with the context's error.
func (r *Ring) AwaitFresh(ctx context.Context) error {
	for {
		turned := r.turning()
		if r.Fresh(r.clock()) {
			return nil
		}
		select {
		case <-turned:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// turning is closed by the next look that succeeds.
func (r *Ring) turning() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turned == nil {
		r.turned = make(chan struct{})
	}
	return r.turned
}

// turn tells those who wait that a look succeeded. The ring is locked.
func (r *Ring) turn() {
	if r.turned != nil {
		close(r.turned)
		r.turned = nil
	}
}
