package routeserver

import (
	"sync"
	"time"
)

const (
	maxFailures = 5           // in a row, before a server is left alone
	pause       = time.Second // for how long
)

// breaker keeps requests from waiting for a server that failed several times in a row. After each pause it lets one through, to
// see whether the server is back. It is safe for concurrent use. Libraries for it read the clock of the system themselves.
type breaker struct {
	now func() time.Time

	mu       sync.Mutex
	failures int // in a row
	nextTry  time.Time
}

// allows reports whether a request may be sent now.
func (b *breaker) allows() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < maxFailures {
		return true
	}
	now := b.now()
	if now.Before(b.nextTry) {
		return false
	}
	b.nextTry = now.Add(pause)
	return true
}

// record counts how a request ended.
func (b *breaker) record(isSuccess bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if isSuccess {
		b.failures = 0
		return
	}
	if b.failures++; b.failures >= maxFailures {
		b.nextTry = b.now().Add(pause)
	}
}
