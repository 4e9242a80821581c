// Package waitlimit limits how requests wait for a log that briefly does not answer: for how long, how many at a time,
// and how many of one account. An instance of the service has one Limiter for all its requests, so that one account
// cannot use up the limit, and a request has one Wait for everything that it waits for, in any part of the service.
//
//	request ─> Limiter.NewWait ─> Wait.Begin ─> Wait.Start ─> stop ─> end ─> Wait.Begin, for the next that it waits for
//	           its account        it asks a log  there is no answer
//
// A read that is only repeated until the log answers is Wait.RetryUntilAvailable. x/sync/semaphore bounds the number of
// requests, but does not limit the share of one account.
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

// acquire counts a request of an account as waiting until release, which may be called more than once; ok is false if
// the limit is reached.
func (l *Limiter) acquire(account string) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting >= l.maxRequests || l.waitingBy[account] >= l.maxRequests/2 {
		return func() {}, false
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

// Wait is how long one request may still wait, MaxWait in all. It is not safe for concurrent use.
type Wait struct {
	limiter   *Limiter
	account   string
	remaining time.Duration // at begunAt
	begunAt   time.Time     // when Begin was called last
	free      time.Duration // as given to it
}

// NewWait returns the Wait of a request of an account that has not waited yet.
func (l *Limiter) NewWait(account string) *Wait {
	return &Wait{limiter: l, account: account, remaining: MaxWait}
}

// Begin begins something that the request may have to wait for, and returns the function that ends it and takes the time
// that it took from the Wait. At least free is left for it, and nothing is taken if it took no longer than free.
func (w *Wait) Begin(free time.Duration) (end func()) {
	w.begunAt, w.free = time.Now(), free
	return w.end
}

func (w *Wait) end() {
	if took := time.Since(w.begunAt); took > w.free {
		w.remaining -= took
	}
}

// left returns how long the request may wait for what Begin began.
func (w *Wait) left() time.Duration { return max(w.remaining, w.free) - time.Since(w.begunAt) }

// Start counts the request as waiting, for a log that has been silent for a while, until stop, which must be called. The
// context that it returns ends when the request's time is over, its client goes away, or the silence reaches MaxSilence.
// It has ended already if the limit is reached.
func (w *Wait) Start(ctx context.Context, silence time.Duration) (waiting context.Context, stop func()) {
	left := min(w.left(), MaxSilence-silence)
	release, ok := w.limiter.acquire(w.account)
	if !ok {
		left = 0
	}
	waiting, cancel := context.WithTimeout(ctx, left)
	return waiting, func() { cancel(); release() }
}

// RetryUntilAvailable calls read, which reads the log, and calls it again while it fails with eventstore.ErrUnavailable.
// It returns the last error of read when the request's time is over, or after UncountedWait if the limit is reached.
func (w *Wait) RetryUntilAvailable(ctx context.Context, read func(context.Context) error) error {
	defer w.Begin(UncountedWait)()
	limit := UncountedWait
	release, ok := w.limiter.acquire(w.account)
	defer release()
	if ok {
		limit = MaxWait
	}
	ctx, cancel := context.WithTimeout(ctx, min(limit, w.left()))
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

// Detach returns a context in which a count can be taken back even if the client is gone. It ends when the request's
// time is over, but not before UncountedWait has passed.
func (w *Wait) Detach(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), max(w.remaining, UncountedWait))
}
