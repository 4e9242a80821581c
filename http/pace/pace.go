// Package pace decides when the other end of a connection is too slow. One rule holds for the bodies that clients send
// (bodylimit.PacedReader) and for the answers that they read (connlimit): MinRate over each Window of waiting. Time in which
// nobody waits for the client does not count.
package pace

import "time"

const (
	// MinRate is the fewest bytes a second.
	MinRate = 64 << 10
	// Window is the waiting over which MinRate has to hold, and the longest wait for the next byte.
	Window = 30 * time.Second
	// windowBytes is what a window has to bring.
	windowBytes = MinRate * int64(Window/time.Second)
	// maxSurplus is how many bytes beyond windowBytes count for the next window: the receive buffers between the two ends free
	// their room in bursts, and a client just above MinRate must not fail for a burst that came a moment early.
	maxSurplus = 512 << 10
)

// Meter measures one direction of a connection. Its zero value is the beginning of a window. It is not safe for concurrent
// use.
type Meter struct {
	waited time.Duration // in this window
	bytes  int64         // in this window, with the surplus of the one before
}

// Timeout returns how long the next read or write may wait.
func (m *Meter) Timeout() time.Duration {
	if m.bytes >= windowBytes {
		return Window
	}
	return Window - m.waited
}

// Add records n bytes for which the client was waited for, and reports whether it is fast enough so far.
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
