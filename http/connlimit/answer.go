package connlimit

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"lieudit/http/pace"
)

// ErrSlowReader: the client reads its answer slower than package pace allows. Its connection is reset.
var ErrSlowReader = errors.New("the client reads its answer too slowly")

// maxUnsent is how many bytes of an answer the system keeps for a connection beyond those that it has sent. Without a limit it takes
// up to 4 MB for a client that reads nothing. What was sent and not acknowledged is limited by the client's receive window.
const maxUnsent = 64 << 10

// answerWriter is the sending side of a connection. Only the time counts in which Write waits for the client, so a handler that works
// for long makes no client slow. One goroutine writes; the deadline may be set by another.
type answerWriter struct {
	net.Conn
	meter pace.Meter

	mu       sync.Mutex
	deadline time.Time // that the handler set; zero: none
}

// Write sends a part of an answer. It fails with ErrSlowReader.
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

// writeOnce writes for as long as the client may be waited for. n is less than len(p) without an error if that time is over and the
// client has taken enough in it.
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

// applyDeadline sets the deadline of the next write: at, or that of the handler if it is earlier.
func (w *answerWriter) applyDeadline(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.deadline.IsZero() && w.deadline.Before(at) {
		at = w.deadline
	}
	w.Conn.SetWriteDeadline(at) // its error means that the connection is closed, as Write then says
}

func (w *answerWriter) hasPassedDeadline() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.deadline.IsZero() && !time.Now().Before(w.deadline)
}

// SetWriteDeadline sets until when a handler lets its answer be written. An answer that is broken off by a deadline in the past
// (kit.AbortResponse) ends with a reset: the end of a connection alone would make it look whole to a client of HTTP/1.0.
func (w *answerWriter) SetWriteDeadline(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = at
	if !at.IsZero() && at.Before(time.Now()) {
		w.resetOnClose()
	}
	return w.Conn.SetWriteDeadline(at)
}

// resetOnClose makes closing the connection reset it, which tells the client that its answer is not whole, and frees what the system
// has not sent yet.
func (w *answerWriter) resetOnClose() {
	if c, ok := w.Conn.(interface{ SetLinger(seconds int) error }); ok {
		c.SetLinger(0) // its error means that the connection is closed
	}
}
