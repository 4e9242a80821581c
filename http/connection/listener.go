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
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
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
	idle    []candidate // found idle longest at the last look, the longest last
	evicted int64

	turns   atomic.Int64 // that connections fell idle in
	waiting atomic.Bool  // for room

	room   chan struct{} // one connection ended or fell idle
	closed chan struct{}
	close  func() error
}

// candidate is a connection that was idle, and since which turn.
type candidate struct {
	*conn
	turn int64
}

// maxCandidates are found at one look over all connections.
const maxCandidates = 128

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
	s.ConnState = track
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
	c.setIdle(true) // it has not asked for anything yet
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

// add counts a connection in if there is room.
func (l *Listener) add(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := len(l.open) >= l.limit
	l.waiting.Store(full)
	if !full {
		l.open[c] = struct{}{}
	}
	return !full
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
	longest := l.nextIdle()
	if longest == nil {
		l.findIdle()
		longest = l.nextIdle()
	}
	if longest == nil {
		longest = l.longestUnread()
	}
	if longest != nil {
		l.evicted++
	}
	return longest
}

// nextIdle takes the next candidate that is idle still. Who fell idle since comes after all of them. The lock is held.
func (l *Listener) nextIdle() *conn {
	for len(l.idle) > 0 {
		last := l.idle[len(l.idle)-1]
		l.idle = l.idle[:len(l.idle)-1]
		if _, open := l.open[last.conn]; open && last.idle.Load() == last.turn {
			return last.conn
		}
	}
	return nil
}

// findIdle finds the connections that are idle longest. The lock is held.
func (l *Listener) findIdle() {
	var all []candidate
	for c := range l.open {
		if turn := c.idle.Load(); turn != 0 {
			all = append(all, candidate{c, turn})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(b.turn, a.turn) })
	l.idle = slices.Clone(all[max(0, len(all)-maxCandidates):])
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
func track(nc net.Conn, state http.ConnState) {
	c, ok := nc.(*conn)
	if ok && (state == http.StateActive || state == http.StateIdle) {
		c.setIdle(state == http.StateIdle)
	}
}

// remove counts a connection out.
func (l *Listener) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	l.makeRoom()
}

// makeRoom wakes who waits for room.
func (l *Listener) makeRoom() {
	if !l.waiting.Load() {
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
	return Status{Open: len(l.open), Limit: l.limit, Evicted: l.evicted, Full: l.waiting.Load()}
}
