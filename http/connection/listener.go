// Package connection keeps the connections of a listener within a cap, and away from those who only hold them. Its
// constraint is that no client's work and no slow reader is timed out: only what a client has to send is waited for with a
// limit, and connections are taken away only where there are no others left.
//
//	net.Listener ──> Listener.Accept ──> *conn ──> http.Server ──> Handler ──> the listener's handler
//	                     ^   evict           │ Track: active, idle      └── bodies.Paced, linger
//	                     └────────── room ───┘
//
// netutil.LimitListener has a cap too, but at it nobody new comes in: those who hold idle connections would keep
// everybody else out.
package connection

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

const (
	// maxUnread is how long a client may leave an answer unread before its connection counts as idle. It is cut
	// only where the cap is reached and no other is idle.
	maxUnread = 30 * time.Second
	// firstPause and lastPause bound the time between two looks for room.
	firstPause, lastPause = 5 * time.Millisecond, time.Second
)

// Listener is a listener with a cap on its connections. At the cap the connection that is idle longest goes for a new
// one: one that serves no request, or else one whose client has not read for maxUnread. While none is idle,
// new connections wait, the first of them here and the others with the system: none is turned away whom a moment's
// patience would serve.
type Listener struct {
	net.Listener
	limit int
	log   *slog.Logger
	began time.Time

	mu      sync.Mutex
	open    map[*conn]struct{}
	idle    list.List // of *conn, the longest idle first
	evicted int64
	waiting bool // for room

	room   chan struct{} // one connection ended or fell idle
	closed chan struct{}
	close  func() error
}

// Limit puts a cap on a listener.
func Limit(l net.Listener, limit int, log *slog.Logger) *Listener {
	return &Listener{
		Listener: l, limit: limit, log: log, began: time.Now(), open: make(map[*conn]struct{}),
		room: make(chan struct{}, 1), closed: make(chan struct{}), close: sync.OnceValue(l.Close),
	}
}

// Serve has a server take its connections from the listener, as http.Server.Serve does.
func (l *Listener) Serve(s *http.Server) error {
	s.Handler = handler{s.Handler}
	s.ConnState = func(c net.Conn, state http.ConnState) { l.track(c, state) }
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, key{}, c) }
	return s.Serve(l)
}

// Close ends the listener; connections stay.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return l.close()
}

// Accept waits for the next connection, and for room for it. File descriptors that are used up are no error: an idle
// connection goes, and it is tried again.
func (l *Listener) Accept() (net.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		c, err := l.Listener.Accept()
		if err == nil {
			return l.admit(c)
		}
		if !lacksDescriptors(err) {
			return nil, err
		}
		if pause == firstPause { // one line an incident
			l.log.Warn("no file descriptor for a new connection", "listener", l.Addr(), "reason", err)
		}
		l.evict()
		if !l.pause(pause) {
			return nil, net.ErrClosed
		}
	}
}

func lacksDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// admit takes a connection in as soon as there is room.
func (l *Listener) admit(raw net.Conn) (net.Conn, error) {
	c := &conn{Conn: raw, listener: l, gone: make(chan struct{})}
	for pause := firstPause; !l.add(c); pause = min(2*pause, lastPause) {
		if l.evict() {
			continue
		}
		if !l.pause(pause) {
			raw.Close()
			return nil, net.ErrClosed
		}
	}
	return c, nil
}

// pause waits until there may be room, or for as long as it says; it is false once the listener is closed.
func (l *Listener) pause(longest time.Duration) bool {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-l.room:
	case <-timer.C:
	case <-l.closed:
		return false
	}
	return true
}

// add counts a connection in if there is room, as idle: it has not asked for anything yet.
func (l *Listener) add(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = len(l.open) >= l.limit
	if l.waiting {
		return false
	}
	l.open[c] = struct{}{}
	c.place = l.idle.PushBack(c)
	return true
}

// evict closes the connection that is idle longest; it is false where none is.
func (l *Listener) evict() bool {
	c := l.longestIdle()
	if c == nil {
		return false
	}
	c.Close()
	return true
}

func (l *Listener) longestIdle() *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	var longest *conn
	if front := l.idle.Front(); front != nil {
		longest = front.Value.(*conn)
	} else {
		longest = l.longestUnread()
	}
	if longest != nil {
		l.evicted++
	}
	return longest
}

// longestUnread is the connection whose client has left its answer unread longest, and for maxUnread. The lock is held.
func (l *Listener) longestUnread() *conn {
	var longest *conn
	since := int64(time.Since(l.began) - maxUnread)
	for c := range l.open {
		if began := c.writing.Load(); began != 0 && began <= since {
			longest, since = c, began
		}
	}
	return longest
}

// track is told by the server what a connection does.
func (l *Listener) track(nc net.Conn, state http.ConnState) {
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		l.setIdle(c, false)
	case http.StateIdle:
		l.setIdle(c, true)
	}
}

// setIdle notes that a connection serves no request any more, or that it does.
func (l *Listener) setIdle(c *conn, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[c]; !open {
		return
	}
	switch {
	case idle && c.place == nil:
		c.place = l.idle.PushBack(c)
		l.makeRoom()
	case !idle && c.place != nil:
		l.idle.Remove(c.place)
		c.place = nil
	}
}

// remove counts a connection out.
func (l *Listener) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	if c.place != nil {
		l.idle.Remove(c.place)
		c.place = nil
	}
	l.makeRoom()
}

// makeRoom wakes who waits for room. The lock is held.
func (l *Listener) makeRoom() {
	if !l.waiting {
		return
	}
	select {
	case l.room <- struct{}{}:
	default:
	}
}

// Status is how a listener stands.
type Status struct {
	Open, Limit int
	Evicted     int64 // since the start
	Full        bool  // a new connection waits: none is idle
}

// Status tells how the listener stands.
func (l *Listener) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Status{Open: len(l.open), Limit: l.limit, Evicted: l.evicted, Full: l.waiting}
}
