// Package waitlimit limits how requests wait for a log that does not answer for a moment: for how long, how many at
// a time, and how many of one account. Its constraint: an instance of the service has one Limiter for all its
// requests, so that one account cannot use up the limit, whatever part of the service it waits in.
//
//	request ─> Limiter.RetryUntilAvailable: Acquire ─> read (the call on the log), repeated while it is unavailable ─> release
//
// A request that waits in another way calls Acquire itself. x/sync/semaphore bounds the number of requests, but
// knows no share of one account.
package waitlimit

import (
	"context"
	"errors"
	"sync"
	"time"

	"lieudit/eventstore"
)

// These limits hold for every request, whatever it waits for.
const (
	// MaxStaleness is the greatest age of the data of the log that an answer may rely on.
	MaxStaleness = time.Second
	// MaxWait is how long one request waits in all, counted from its arrival.
	MaxWait = 3 * time.Second
	// MaxSilence is how long the log may be silent before requests stop waiting for it.
	MaxSilence = 10 * time.Second
	// UncountedWait is how long a request may wait without being counted by a Limiter.
	UncountedWait = 100 * time.Millisecond
	// MaxRequests is how many requests of an instance may wait at a time. One account may use half of that.
	MaxRequests = 4096
)

// Limiter counts the requests that wait. It is safe for concurrent use.
type Limiter struct {
	maxRequests int

	mu        sync.Mutex
	waiting   int
	waitingBy map[string]int // by account
}

// New returns a Limiter for at most maxRequests requests at a time.
func New(maxRequests int) *Limiter {
	return &Limiter{maxRequests: maxRequests, waitingBy: map[string]int{}}
}

// Acquire counts a request of an account as waiting; ok is false where the limit is reached, and release is nil
// then. release ends the wait, and may be called more than once.
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

// Waiting returns how many requests are counted.
func (l *Limiter) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// RetryUntilAvailable calls read, which reads the log for an account, and calls it again while it fails with
// eventstore.ErrUnavailable. It returns the last error of read after MaxWait, or after UncountedWait where the
// limit is reached.
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
