package connection

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxLinger is how long a connection is listened to after an answer that closes it, maxDrain how much.
	maxLinger = time.Second
	maxDrain  = 256 << 10
)

// key is where a request's context has its connection.
type key struct{}

// conn is a connection that its listener knows.
type conn struct {
	net.Conn
	listener *Listener
	writing  atomic.Int64 // since when, in nanoseconds after the listener began; 0: it is not being written to

	idle atomic.Int64 // its turn to be taken away; 0: it serves a request

	once sync.Once
	gone chan struct{} // closed when it is
	err  error         // of closing it
}

// Write writes, and notes since when.
func (c *conn) Write(p []byte) (int, error) {
	c.writing.Store(max(int64(time.Since(c.listener.began)), 1))
	defer c.writing.Store(0)
	return c.Conn.Write(p)
}

// setIdle notes that the connection serves no request any more, or that it does.
func (c *conn) setIdle(idle bool) {
	if !idle {
		c.idle.Store(0)
		return
	}
	c.idle.Store(c.listener.turns.Add(1))
	c.listener.makeRoom()
}

// Close closes the connection and counts it out.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.gone)
		c.err = c.Conn.Close()
		c.listener.remove(c)
	})
	return c.err
}

// CloseWrite tells the client that nothing more will come.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// linger closes a connection whose client may still be sending: closed at once, the system would answer that with a
// reset, which can overtake the answer. What comes meanwhile is read up to a limit; then a client that goes on
// sending fills its window and is left to read. The connection counts as idle.
func (c *conn) linger() {
	c.setIdle(true)
	end := time.NewTimer(maxLinger)
	defer end.Stop()
	c.CloseWrite()
	c.SetReadDeadline(time.Now().Add(maxLinger))
	if _, err := io.CopyN(io.Discard, c.Conn, maxDrain); err == nil {
		select {
		case <-end.C:
		case <-c.gone:
		}
	}
	c.Close()
}
