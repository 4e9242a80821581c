// Package throttle holds every caller to a pace: so many requests a second, and bursts of so many. It keeps one instant
// for each caller that is ahead of its pace, and nothing for the others.
package throttle

import (
	"net/netip"
	"sync"
	"time"
)

// Client is who is held to the pace: an address with a key. Of IPv6 a whole /64 is one caller.
type Client struct {
	prefix netip.Prefix
	key    string
}

// ParseClient is the caller behind a request's remote address. An address that cannot be read is one caller for all.
func ParseClient(remote, key string) Client {
	addrPort, err := netip.ParseAddrPort(remote)
	if err != nil {
		return Client{key: key}
	}
	addr, bits := addrPort.Addr().Unmap(), 32
	if addr.Is6() {
		bits = 64
	}
	prefix, _ := addr.WithZone("").Prefix(bits) // the bits fit the address
	return Client{prefix, key}
}

// Throttle is a pace and who is ahead of it. It is safe for concurrent use.
type Throttle struct {
	interval time.Duration // that a request takes at the pace
	burst    time.Duration // by which a caller may be ahead

	mu        sync.Mutex
	busyUntil map[Client]time.Time // until when a caller's requests reach at the pace
	sweepSize int                  // how many callers are kept before the idle ones are let go
}

// minSweepSize is how many callers are kept without looking who is idle.
const minSweepSize = 1024

// New is a throttle of so many requests a second, and bursts of so many.
func New(perSecond, burst int) *Throttle {
	interval := time.Second / time.Duration(perSecond)
	return &Throttle{interval: interval, burst: interval * time.Duration(burst), busyUntil: map[Client]time.Time{}, sweepSize: minSweepSize}
}

// Allow says whether a caller may make a request now, and counts it when so.
func (t *Throttle) Allow(c Client, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	until := t.busyUntil[c]
	if until.Before(now) || until.After(now.Add(t.burst)) { // idle, or of a clock that was ahead
		until = now
	}
	if until = until.Add(t.interval); until.After(now.Add(t.burst)) {
		return false
	}
	t.busyUntil[c] = until
	if len(t.busyUntil) > t.sweepSize {
		t.sweepIdle(now)
	}
	return true
}

// sweepIdle forgets who is idle. It looks again when there are twice as many as are left.
func (t *Throttle) sweepIdle(now time.Time) {
	for c, until := range t.busyUntil {
		if until.Before(now) {
			delete(t.busyUntil, c)
		}
	}
	t.sweepSize = max(minSweepSize, 2*len(t.busyUntil))
}

// ClientCount is how many callers are kept.
func (t *Throttle) ClientCount() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.busyUntil)
}
