package connlimit

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxLinger and maxDrain are for how long, and how many bytes, a connection is still read after an answer that closes it.
	maxLinger = time.Second
	maxDrain  = 256 << 10
)

// connKey is the key of a request's context under which its *conn is found.
type connKey struct{}

// conn is a connection of a Listener. It records whether it is idle, for the listener's choice.
type conn struct {
	net.Conn
	listener   *Listener
	writeStart atomic.Int64 // when the running Write began, in nanoseconds after Listener.began; 0: none runs

	idleTurn atomic.Int64 // place in the order in which connections became idle; 0: it serves a request

	once   sync.Once
	closed chan struct{} // closed with the connection
	err    error         // of closing the connection
}

// Write records when it began, so that findLongestUnread sees a client that does not read.
func (c *conn) Write(p []byte) (int, error) {
	c.writeStart.Store(max(int64(time.Since(c.listener.startedAt)), 1))
	defer c.writeStart.Store(0)
	return c.Conn.Write(p)
}

// setIdle records that the connection serves no request (true), or that it serves one (false).
func (c *conn) setIdle(idle bool) {
	if !idle {
		c.idleTurn.Store(0)
		return
	}
	c.idleTurn.Store(c.listener.idleTurns.Add(1))
	c.listener.signalRoom()
}

// Close closes the connection and removes it from the listener. Later calls return the error of the first.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.err = c.Conn.Close()
		c.listener.removeConn(c)
	})
	return c.err
}

// CloseWrite closes the sending side, where the connection has one: the client sees the end of the answer.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// lingerAndClose closes a connection whose client may still be sending. If it closed at once, the system would send a TCP
// reset, and the client could lose the answer. So it closes the sending side, then discards up to maxDrain bytes and waits
// for at most maxLinger, while the client can read the answer. The connection counts as idle meanwhile.
func (c *conn) lingerAndClose() {
	c.setIdle(true)
	end := time.NewTimer(maxLinger)
	defer end.Stop()
	c.CloseWrite()
	c.SetReadDeadline(time.Now().Add(maxLinger))
	if _, err := io.CopyN(io.Discard, c.Conn, maxDrain); err == nil {
		select {
		case <-end.C:
		case <-c.closed:
		}
	}
	c.Close()
}
