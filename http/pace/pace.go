// Package pace decides whether the client of a connection is too slow. The same rule holds for the bodies that clients send
// (bodylimit.PacedReader) and for the answers that they read (connlimit): at least MinRate over each Window in which the service waited
// for the client. Time in which it did not wait does not count.
package pace

import "time"

const (
	// MinRate is the lowest rate allowed, in bytes a second.
	MinRate = 64 << 10
	// Window is how much waiting MinRate is averaged over, and the longest wait for the next byte.
	Window = 30 * time.Second
	// windowBytes is the fewest bytes allowed in a window.
	windowBytes = MinRate * int64(Window/time.Second)
	// maxSurplus is how many bytes beyond windowBytes are carried over to the next window at most: buffers between the two ends drain
	// in bursts, and a client just above MinRate must not fail because a burst came a moment early.
	maxSurplus = 512 << 10
)

// Meter measures one direction of a connection. The zero value is at the beginning of a window. A Meter is not safe for concurrent
// use.
type Meter struct {
	waited time.Duration // in this window
	bytes  int64         // in this window, plus the surplus of the one before
}

// Timeout returns how long the next read or write may wait for the client.
func (m *Meter) Timeout() time.Duration {
	if m.bytes >= windowBytes {
		return Window
	}
	return Window - m.waited
}

// Add records a read or write of n bytes that waited for the client, and reports whether the client is fast enough so far.
func (m *Meter) Add(n int64, waited time.Duration) bool {
	m.bytes += n
	m.waited += waited
	if m.waited < Window {
		return true
	}
	surplus := m.bytes - windowBytes
	m.waited, m.bytes = 0, min(max(surplus, 0), maxSurplus)
	return surplus >= 0
}
