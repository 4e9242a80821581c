package faulttest

import (
	"net"
	"sync"
)

// Silence is a fault. While it lasts, a node keeps its connections and accepts new ones, but
// reads and writes nothing on them, as a real EventStoreDB does for seconds at times. Nothing is lost: a request
// that arrived before is done meanwhile and answered afterwards; one that arrives meanwhile is done afterwards. The
// zero value is not silent. It is safe for concurrent use.
type Silence struct {
	mu    sync.Mutex
	ended chan struct{} // nil without a silence; closed when the silence ends
}

// Begin makes the node silent until End.
func (s *Silence) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = make(chan struct{})
	}
}

// End ends the silence.
func (s *Silence) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		close(s.ended)
		s.ended = nil
	}
}

// wait returns when the silence is over, or when closed is closed.
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

// silencedListener is a listener whose connections obey a silence.
type silencedListener struct {
	net.Listener
	silence *Silence
}

// Accept accepts connections during a silence too: a real server does, before it falls silent on them.
func (l silencedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &silencedConn{Conn: c, silence: l.silence, closed: make(chan struct{})}, nil
}

// silencedConn is a connection that neither reads nor writes during a silence.
type silencedConn struct {
	net.Conn
	silence *Silence
	once    sync.Once
	closed  chan struct{}
}

// Read reads at once but keeps what it read until the silence is over.
func (c *silencedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.silence.wait(c.closed)
	return n, err
}

// Write waits until the silence is over.
func (c *silencedConn) Write(p []byte) (int, error) {
	c.silence.wait(c.closed)
	return c.Conn.Write(p)
}

// Close ends a connection during a silence too.
func (c *silencedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
