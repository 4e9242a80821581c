// Package throttle limits how fast one client makes requests: an IP address with a publishable key, which anybody can read in a
// web page, or an address that tries to log in. A request calls Allow, and GiveBack if it is not to count after all. An answer
// that may not be refused, because it is a refusal already, calls Delay and is sent that much later. Little is
// kept: one instant for each client that is above the rate, and nothing for the others. A client is kept as a hash with a seed
// of the process, never as an address.
//
// x/time/rate has no limiter for many clients. A map of its limiters would need the same sweep of idle clients, at several times
// the memory for each.
package throttle

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// client is who is limited: an address with a key. Of IPv6 a whole /64 is one client, since a visitor's network has as many.
type client struct {
	prefix netip.Prefix
	key    string
}

// newClient returns the client of an address with a key. All that have no address are one client for each key.
func newClient(addr netip.Addr, key string) client {
	addr = addr.Unmap().WithZone("")
	prefix, _ := addr.Prefix(min(64, addr.BitLen())) // the bits fit the address
	return client{prefix, key}
}

// Throttle is a pace, and the clients that are ahead of it. The zero Throttle allows every request. It is safe for
// concurrent use.
type Throttle struct {
	interval time.Duration // between two requests at the pace; 0: no limit
	burst    time.Duration // by which a client may be ahead
	seed     maphash.Seed

	mu        sync.Mutex
	busyUntil map[uint64]time.Time // by the hash of a client, the instant that the client's requests would last until at the pace
	sweepSize int                  // number of clients at which the idle ones are dropped
}

// minSweepSize is how many clients are kept before the first sweep.
const minSweepSize = 1024

// New allows each client one request in each interval, and bursts of burst.
func New(interval time.Duration, burst int) *Throttle {
	return &Throttle{interval: interval, burst: interval * time.Duration(burst), seed: maphash.MakeSeed(), busyUntil: map[uint64]time.Time{}, sweepSize: minSweepSize}
}

// Allow reports whether a client, an address with a key, may make a request now, and counts it if so. With each key,
// all invalid addresses are one client.
func (t *Throttle) Allow(addr netip.Addr, key string, now time.Time) bool {
	if t.interval == 0 {
		return true
	}
	_, ok := t.count(maphash.Comparable(t.seed, newClient(addr, key)), now, 0)
	return ok
}

// Delay counts a request of a client that has no address and returns how long its answer must wait so that the client keeps to the
// pace: 0 while it is ahead of it by no more than the burst, and limit at most. Requests that would have to wait longer than limit
// are not counted, so that many at once do not delay those that come later.
func (t *Throttle) Delay(key string, now time.Time, limit time.Duration) time.Duration {
	if t.interval == 0 {
		return 0
	}
	ahead, ok := t.count(maphash.Comparable(t.seed, newClient(netip.Addr{}, key)), now, limit)
	if !ok {
		return limit
	}
	return max(0, ahead-t.burst)
}

// count counts a request of a client, unless it would then be ahead of the pace by more than the burst and excess. It returns by how
// much it is ahead.
func (t *Throttle) count(c uint64, now time.Time, excess time.Duration) (ahead time.Duration, ok bool) {
	limit := t.burst + excess
	t.mu.Lock()
	defer t.mu.Unlock()
	until := t.busyUntil[c]
	if until.Before(now) || until.After(now.Add(limit)) { // idle, or the clock was set back
		until = now
	}
	if until = until.Add(t.interval); until.After(now.Add(limit)) {
		return 0, false
	}
	t.busyUntil[c] = until
	if len(t.busyUntil) > t.sweepSize {
		t.sweepIdle(now)
	}
	return until.Sub(now), true
}

// GiveBack takes back the request that Allow counted last for a client.
func (t *Throttle) GiveBack(addr netip.Addr, key string) {
	if t.interval == 0 {
		return
	}
	c := maphash.Comparable(t.seed, newClient(addr, key))
	t.mu.Lock()
	defer t.mu.Unlock()
	if until, ok := t.busyUntil[c]; ok {
		t.busyUntil[c] = until.Add(-t.interval)
	}
}

// sweepIdle drops the idle clients. The next sweep comes when there are twice as many as are left. The lock is held.
func (t *Throttle) sweepIdle(now time.Time) {
	for c, until := range t.busyUntil {
		if until.Before(now) {
			delete(t.busyUntil, c)
		}
	}
	t.sweepSize = max(minSweepSize, 2*len(t.busyUntil))
}
