package routeserver

import (
	"sync"
	"time"
)

const (
	maxFailures = 5           // in a row before requests pause
	pause       = time.Second // for how long
)

// breaker keeps requests from waiting for a server that failed several times in a row. After each pause it lets one request through
// to see whether the server is back. It is safe for concurrent use. It is not a library because those read the system clock
// directly.
type breaker struct {
	now func() time.Time

	mu       sync.Mutex
	failures int   // in a row
	last     error // of the failures
	nextTry  time.Time
}

// check returns nil if a request may be sent now, otherwise a *pausedError.
func (b *breaker) check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < maxFailures {
		return nil
	}
	now := b.now()
	if now.Before(b.nextTry) {
		return &pausedError{b.last}
	}
	b.nextTry = now.Add(pause)
	return nil
}

// record counts how a request ended: with a failure of the server, or with nil.
func (b *breaker) record(failure error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if failure == nil {
		b.failures, b.last = 0, nil
		return
	}
	b.last = failure
	if b.failures++; b.failures >= maxFailures {
		b.nextTry = b.now().Add(pause)
	}
}
