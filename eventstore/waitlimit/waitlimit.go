// Package waitlimit limits how requests wait for a log that does not answer for a moment: for how long, how many at a time,
// and how many of one account. Its constraint: an instance has one Room for all its requests, so that one account cannot
// take all the places, whatever part of the service it waits in.
//
//	request ──> Room.Wait: Enter ──> ask (the call on the log), repeated while it is unavailable ──> leave
//
// A caller that waits in another way calls Enter itself.
package waitlimit

import (
	"context"
	"errors"
	"sync"
	"time"

	"lieudit/eventstore"
)

const (
	// MaxStaleness is how old a reading of the log may be that an answer relies on.
	MaxStaleness = time.Second
	// MaxWait is how long one request waits in all, counted from its arrival.
	MaxWait = 3 * time.Second
	// MaxSilence is how long the log is silent until requests stop waiting for it.
	MaxSilence = 10 * time.Second
	// UncountedWait is how long a request may wait without a place.
	UncountedWait = 100 * time.Millisecond
	// MaxRequests is how many requests of an instance wait at a time. One account may take half of them.
	MaxRequests = 4096
)

// Limiter counts the requests that wait. It is safe for concurrent use.
type Limiter struct {
	maxRequests int

	mu        sync.Mutex
	waiting   int
	waitingBy map[string]int // by account
}

// New returns a room with that many places.
func New(maxRequests int) *Limiter {
	return &Limiter{maxRequests: maxRequests, waitingBy: map[string]int{}}
}

// Acquire takes a place for a request of an account; ok is false where none is free. leave gives the place back, and may be
// called more than once.
func (l *Limiter) Acquire(account string) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting >= l.maxRequests || l.waitingBy[account] >= l.maxRequests/2 {
		return nil, false
	}
	l.waiting++
	l.waitingBy[account]++
	return sync.OnceFunc(func() { l.release(account) }), true
}

func (l *Limiter) release(account string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting--
	if l.waitingBy[account]--; l.waitingBy[account] == 0 {
		delete(l.waitingBy, account)
	}
}

// Waiting returns how many places are taken.
func (l *Limiter) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// RetryUntilAvailable calls ask, which reads the log for an account, and calls it again while it fails with eventstore.ErrUnavailable.
// It returns the last error of ask after Longest, or after Brief where the room has no free place.
func (l *Limiter) RetryUntilAvailable(ctx context.Context, account string, read func(context.Context) error) error {
	limit := UncountedWait
	if release, ok := l.Acquire(account); ok {
		defer release()
		limit = MaxWait
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := read(ctx)
		if !errors.Is(err, eventstore.ErrUnavailable) {
			return err
		}
		retry := time.NewTimer(limit / 60)
		select {
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
			return err
		}
	}
}
