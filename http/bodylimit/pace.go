package bodylimit

import (
	"errors"
	"io"
	"os"
	"time"
)

const (
	// maxSilence is how long a client may send nothing of a body.
	maxSilence = 30 * time.Second
	// paceWindow is the time over which a body has to bring minPace bytes a second.
	paceWindow = 30 * time.Second
	minPace    = 64 << 10
	// windowBytes is what a window has to bring.
	windowBytes = minPace * int64(paceWindow/time.Second)
)

// ErrSlow: the client sent nothing for maxSilence, or less than minPace over paceWindow.
var ErrSlow = errors.New("request body too slow")

// PacedReader is a body that the client must send at a minimum pace; reads of a slower one fail with ErrSlow. Only the time
// that reads wait for the client counts: a body that nobody reads is not late. One goroutine reads it.
type PacedReader struct {
	io.ReadCloser
	// SetReadDeadline is the method of the connection that the body comes from.
	SetReadDeadline func(time.Time) error

	waited time.Duration // in this window
	bytes  int64         // in this window
	total  int64
	err    error // that ended reading; io.EOF: the body was read whole
}

// Progress returns how many bytes were read, and the error that ended reading: io.EOF where the body was read whole, nil
// where reading can go on.
func (p *PacedReader) Progress() (bytes int64, err error) { return p.total, p.err }

func (p *PacedReader) Read(buf []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	began := time.Now()
	p.SetReadDeadline(began.Add(p.readTimeout()))
	n, err := p.ReadCloser.Read(buf)
	p.waited += time.Since(began)
	p.bytes += int64(n)
	p.total += int64(n)
	switch {
	case err == io.EOF:
		p.SetReadDeadline(time.Time{}) // the server reads in the background while the handler works, to notice a client that leaves
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = ErrSlow
	case err == nil && p.waited >= paceWindow:
		if p.bytes < windowBytes {
			err = ErrSlow
		}
		p.waited, p.bytes = 0, 0
	}
	p.err = err
	return n, err
}

// readTimeout returns how long the next read may wait.
func (p *PacedReader) readTimeout() time.Duration {
	if p.bytes >= windowBytes {
		return maxSilence
	}
	return min(maxSilence, paceWindow-p.waited)
}
