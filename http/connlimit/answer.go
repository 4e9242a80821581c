package connlimit

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// ErrSlowReader means that the client reads its answer slower than Meter allows. Its connection is reset.
var ErrSlowReader = errors.New("the client reads its answer too slowly")

// maxUnsent limits how many unsent bytes of an answer the system buffers for a connection. Without a limit it buffers up to 4 MB for a
// client that reads nothing. The bytes that were sent and not acknowledged are limited by the client's receive window.
const maxUnsent = 64 << 10

// answerWriter is the sending side of a connection. Only the time that Write waits for the client counts, so a slow handler does not make
// a client slow. One goroutine writes; another may set the deadline.
type answerWriter struct {
	net.Conn
	meter Meter

	mu       sync.Mutex
	deadline time.Time // set by the handler; zero if there is none
}

// Write sends a part of an answer. It fails with ErrSlowReader if the client reads too slowly.
func (w *answerWriter) Write(p []byte) (sent int, err error) {
	for {
		n, isSlow, err := w.writeOnce(p[sent:])
		sent += n
		switch {
		case isSlow:
			return sent, ErrSlowReader
		case err != nil || sent == len(p):
			return sent, err
		}
	}
}

// writeOnce writes until the meter's timeout. Without an error and with isSlow false, n may still be less than len(p): the time was up,
// and the client had read fast enough until then.
func (w *answerWriter) writeOnce(p []byte) (n int, isSlow bool, err error) {
	began := time.Now()
	w.applyDeadline(began.Add(w.meter.Timeout()))
	n, err = w.Conn.Write(p)
	isFast := w.meter.Add(int64(n), time.Since(began))
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return n, err == nil && !isFast, err
	case w.hasPassedDeadline():
		return n, false, err
	}
	return n, n == 0 || !isFast, nil
}

// applyDeadline sets the deadline of the next write: at, or that of the handler if that is earlier.
func (w *answerWriter) applyDeadline(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.deadline.IsZero() && w.deadline.Before(at) {
		at = w.deadline
	}
	w.Conn.SetWriteDeadline(at) // an error means that the connection is closed, and Write then returns it
}

func (w *answerWriter) hasPassedDeadline() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.deadline.IsZero() && !time.Now().Before(w.deadline)
}

// SetWriteDeadline sets the handler's deadline for its answer. A deadline in the past breaks the answer off (kit.AbortResponse), and then
// the connection ends with a reset: to a client of HTTP/1.0, an answer that ends with an ordinary close would look complete.
func (w *answerWriter) SetWriteDeadline(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = at
	if !at.IsZero() && at.Before(time.Now()) {
		w.resetOnClose()
	}
	return w.Conn.SetWriteDeadline(at)
}

// resetOnClose makes Close reset the connection. The client then knows that its answer is incomplete, and the system drops the bytes
// that it has not sent.
func (w *answerWriter) resetOnClose() {
	if c, ok := w.Conn.(interface{ SetLinger(seconds int) error }); ok {
		c.SetLinger(0) // an error means that the connection is closed
	}
}
