// Package throttle holds every caller to a pace: so many requests a second, and bursts of so many. It keeps one instant
// for each caller that is ahead of its pace, and nothing for the others.
package throttle

import (
	"net/netip"
	"sync"
	"time"
)

// Caller is who is held to the pace: an address with a key. Of IPv6 a whole /64 is one caller.
type Caller struct {
	prefix netip.Prefix
	key    string
}

// CallerOf is the caller behind a request's remote address. An address that cannot be read is one caller for all.
func CallerOf(remote, key string) Caller {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return Caller{key: key}
	}
	addr, bits := at.Addr().Unmap(), 32
	if addr.Is6() {
		bits = 64
	}
	prefix, _ := addr.WithZone("").Prefix(bits) // the bits fit the address
	return Caller{prefix, key}
}

// Throttle is a pace and who is ahead of it. It is safe for concurrent use.
type Throttle struct {
	each  time.Duration // that a request takes at the pace
	burst time.Duration // by which a caller may be ahead

	mu    sync.Mutex
	ahead map[Caller]time.Time // until when a caller's requests reach at the pace
	full  int                  // how many callers are kept before the idle ones are let go
}

// fewest is how many callers are kept without looking who is idle.
const fewest = 1024

// New is a throttle of so many requests a second, and bursts of so many.
func New(perSecond, burst int) *Throttle {
	each := time.Second / time.Duration(perSecond)
	return &Throttle{each: each, burst: each * time.Duration(burst), ahead: map[Caller]time.Time{}, full: fewest}
}

// Allow says whether a caller may make a request now, and counts it when so.
func (t *Throttle) Allow(c Caller, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	until := t.ahead[c]
	if until.Before(now) || until.After(now.Add(t.burst)) { // idle, or of a clock that was ahead
		until = now
	}
	if until = until.Add(t.each); until.After(now.Add(t.burst)) {
		return false
	}
	t.ahead[c] = until
	if len(t.ahead) > t.full {
		t.letGo(now)
	}
	return true
}

// letGo forgets who is idle. It looks again when there are twice as many as are left.
func (t *Throttle) letGo(now time.Time) {
	for c, until := range t.ahead {
		if until.Before(now) {
			delete(t.ahead, c)
		}
	}
	t.full = max(fewest, 2*len(t.ahead))
}

// Callers is how many callers are kept.
func (t *Throttle) Callers() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ahead)
}
