package connlimit

import (
	"errors"
	"io"
	"os"
	"time"
)

// The client of a connection is too slow if it sends or reads less than MinRate over a Window in which the service waited for
// it. The same rule holds for the bodies that clients send (PacedReader) and for the answers that they read (answerWriter).
const (
	// MinRate is the lowest rate allowed, in bytes a second.
	MinRate = 64 << 10
	// Window is how much waiting MinRate is averaged over, and the longest wait for the next byte.
	Window = 30 * time.Second
	// windowBytes is the fewest bytes allowed in a window.
	windowBytes = MinRate * int64(Window/time.Second)
	// maxSurplus is the most bytes beyond windowBytes that are carried over to the next window: buffers between the two ends drain in
	// bursts, and a client just above MinRate must not fail because a burst came a moment early.
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

// ErrSlow means that the client sends its body slower than Meter allows.
var ErrSlow = errors.New("request body too slow")

// PacedReader is a body that the client must send as fast as Meter demands; reads of a slower one fail with ErrSlow. Only
// the time that reads wait for the client counts: a body that nobody reads is not late. One goroutine reads it.
type PacedReader struct {
	io.ReadCloser
	// SetReadDeadline is the method of the connection that the body comes from.
	SetReadDeadline func(time.Time) error

	meter Meter
	total int64
	err   error // the error that ended reading; io.EOF if the body was read whole
}

// Progress returns how many bytes were read, and the error that ended reading: io.EOF if the body was read whole, nil if reading can
// continue.
func (p *PacedReader) Progress() (bytes int64, err error) { return p.total, p.err }

func (p *PacedReader) Read(buf []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	began := time.Now()
	p.SetReadDeadline(began.Add(p.meter.Timeout()))
	n, err := p.ReadCloser.Read(buf)
	isFast := p.meter.Add(int64(n), time.Since(began))
	p.total += int64(n)
	switch {
	case err == io.EOF:
		p.SetReadDeadline(time.Time{}) // the server reads in the background while the handler works, to notice a client that leaves
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = ErrSlow
	case err == nil && !isFast:
		err = ErrSlow
	}
	p.err = err
	return n, err
}
