package node

import (
	"context"
	"net"
	"sync"
	"time"
)

// Silence is a fault to test with. While it lasts, a node keeps its connections and takes new ones, and neither hears
// nor says anything on them: what a real EventStoreDB does for seconds now and then. Nothing is lost by it. What was
// asked before is done meanwhile and answered after it; what is asked meanwhile is done after it. The zero value
// speaks. It is safe for concurrent use.
type Silence struct {
	mu    sync.Mutex
	ended chan struct{} // nil: the node speaks; closed when the silence ends
}

// Begin makes the node fall silent until End.
func (s *Silence) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = make(chan struct{})
	}
}

// End makes the node speak again.
func (s *Silence) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		close(s.ended)
		s.ended = nil
	}
}

// Repeat lets a silence of the given length begin every so often, until ctx ends; it leaves the node speaking.
func (s *Silence) Repeat(ctx context.Context, length, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	defer s.End()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		s.Begin()
		select {
		case <-time.After(length):
		case <-ctx.Done():
			return
		}
		s.End()
	}
}

// wait returns when the node speaks, or when closed is.
func (s *Silence) wait(closed <-chan struct{}) {
	for {
		s.mu.Lock()
		ended := s.ended
		s.mu.Unlock()
		if ended == nil {
			return
		}
		select {
		case <-ended:
		case <-closed:
			return
		}
	}
}

// silencedListener is a listener whose connections are held by a silence.
type silencedListener struct {
	net.Listener
	silence *Silence
}

func (l silencedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &silencedConn{Conn: c, silence: l.silence, closed: make(chan struct{})}, nil
}

type silencedConn struct {
	net.Conn
	silence *Silence
	once    sync.Once
	closed  chan struct{}
}

// Read holds what has come until the silence is over.
func (c *silencedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.silence.wait(c.closed)
	return n, err
}

func (c *silencedConn) Write(p []byte) (int, error) {
	c.silence.wait(c.closed)
	return c.Conn.Write(p)
}

// Close ends a connection in the middle of a silence too.
func (c *silencedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
