// Package connlimit limits the number of open connections of a listener, and closes idle ones to make room for new ones. It ends
// connections whose clients send or read too slowly (Meter). It never times out the work of a handler, and closes an
// idle connection for another only at the limit.
//
//	net.Listener ──> Listener.Accept ──> *conn ──> http.Server ──> handler ──> exchange ──> the server's own handler
//	                     ^                  │ trackState: active or idle          ├── PacedReader: the body in time
//	                     │                  │ answerWriter: the answer in time     └── drainBody, lingerAndClose
//	                     │                  v
//	                     └─ evictIdle <── signalRoom: a connection is idle or closed
//
// netutil.LimitListener also limits connections, but never closes one: clients that hold idle connections would lock all
// others out.
package connlimit

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// minPause and maxPause bound the time between two attempts to find room.
const minPause, maxPause = 5 * time.Millisecond, time.Second

// Listener is a listener with a limit on its open connections. At the limit it closes one for each new one: of the connections of the
// addresses that hold the most, the one that has served no request for longest. So a client that opens thousands of connections loses
// its own; behind a proxy all clients have one address. If no connection is idle, new ones wait, the first in admitConn and the others
// in the system's accept queue; they are not refused. It is safe for concurrent use.
type Listener struct {
	net.Listener
	limit int
	log   *slog.Logger

	mu         sync.Mutex
	open       map[*conn]struct{}
	candidates []candidate // found at the last look, the first to close last
	evicted    int64

	idleTurns   atomic.Int64              // counts each time that a connection becomes idle: a lower number is idle longer
	slowReaders atomic.Int64              // connections that were ended because their clients read too slowly
	isWaiting   atomic.Bool               // a new connection waits for room
	lastCall    atomic.Pointer[time.Time] // when to stop accepting connections at the latest; nil until CloseWhenEmpty is called

	room   chan struct{} // signals that a connection was closed or became idle
	closed chan struct{}
	close  func() error
}

// candidate is a connection that was idle when collectCandidates ran, with its idleTurn then. It is valid only while the
// connection still has that turn.
type candidate struct {
	*conn
	turn int64
}

// maxCandidates is how many candidates one pass over all connections collects.
const maxCandidates = 128

// NewListener returns a listener that keeps at most limit connections open.
func NewListener(l net.Listener, limit int, log *slog.Logger) *Listener {
	return &Listener{
		Listener: l, limit: limit, log: log, open: make(map[*conn]struct{}),
		room: make(chan struct{}, 1), closed: make(chan struct{}), close: sync.OnceValue(l.Close),
	}
}

// Serve runs a server on the listener, as http.Server.Serve does. It replaces the server's Handler, ConnState and
// ConnContext.
func (l *Listener) Serve(s *http.Server) error {
	s.Handler = handler{s.Handler}
	s.ConnState = trackState
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	return s.Serve(l)
}

// Close stops the listener. Its connections stay open.
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

const (
	// lastCallPause is how long no client may have connected before CloseWhenEmpty closes the listener.
	lastCallPause = 5 * time.Millisecond
	// maxLastCall is how long CloseWhenEmpty waits for that.
	maxLastCall = 200 * time.Millisecond
)

// CloseWhenEmpty stops the listener while Accept is still being called: connections that clients have made are accepted first. Close
// would reset them, along with the requests on them. It returns once the listener is closed, after maxLastCall at most.
func (l *Listener) CloseWhenEmpty() {
	end := time.Now().Add(maxLastCall)
	l.lastCall.Store(&end)
	l.limitLastAccept() // for the Accept that waits now
	select {
	case <-l.closed:
	case <-time.After(maxLastCall):
		l.Close()
	}
}

// limitLastAccept limits how long the next Accept of the socket waits, once CloseWhenEmpty was called. An Accept whose limit has not
// passed takes a connection that is there already without waiting.
func (l *Listener) limitLastAccept() {
	end := l.lastCall.Load()
	socket, ok := l.Listener.(interface{ SetDeadline(time.Time) error })
	if end == nil || !ok {
		return
	}
	limit := time.Now().Add(lastCallPause)
	if limit.After(*end) {
		limit = *end
	}
	socket.SetDeadline(limit) // its error means that the socket is closed
}

// Accept waits for the next connection and for room for it. When the process has no file descriptor left, Accept closes
// an idle connection and tries again.
func (l *Listener) Accept() (net.Conn, error) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		l.limitLastAccept()
		c, err := l.Listener.Accept()
		if err == nil {
			return l.admitConn(c)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) { // only limitLastAccept sets a deadline
			l.Close()
			return nil, net.ErrClosed
		}
		if !lacksDescriptors(err) {
			return nil, err
		}
		if pause == minPause { // log once, not at every attempt
			l.log.Warn("no file descriptor for a new connection", "listener", l.Addr(), "reason", err)
		}
		l.evictIdle()
		if !l.waitForRoom(pause) {
			return nil, net.ErrClosed
		}
	}
}

// lacksDescriptors reports whether the process or the system has no file descriptor left.
func lacksDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// admitConn adds a connection as soon as there is room, and closes an idle one if there is none.
func (l *Listener) admitConn(raw net.Conn) (net.Conn, error) {
	limitUnsent(raw, maxUnsent)
	c := &conn{answerWriter: answerWriter{Conn: raw}, listener: l, address: clientNetwork(raw.RemoteAddr()), closed: make(chan struct{})}
	c.setIdle(true) // no request has come on it yet
	for pause := minPause; !l.tryAdd(c); pause = min(2*pause, maxPause) {
		if l.evictIdle() {
			continue
		}
		if !l.waitForRoom(pause) {
			raw.Close()
			return nil, net.ErrClosed
		}
	}
	return c, nil
}

// waitForRoom waits until there may be room, or until longest has passed. It returns false once the listener is closed.
func (l *Listener) waitForRoom(longest time.Duration) bool {
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

// tryAdd adds a connection if there is room, and reports whether it did.
func (l *Listener) tryAdd(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := len(l.open) >= l.limit
	l.isWaiting.Store(full)
	if !full {
		l.open[c] = struct{}{}
	}
	return !full
}

// evictIdle closes the connection that chooseEviction returns. It returns false if there is none to close.
func (l *Listener) evictIdle() bool {
	c := l.chooseEviction()
	if c == nil {
		return false
	}
	c.Close()
	return true
}

// chooseEviction returns the connection to close next, or nil if no connection is idle.
func (l *Listener) chooseEviction() *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	longest := l.popCandidate()
	if longest == nil {
		l.collectCandidates()
		longest = l.popCandidate()
	}
	if longest != nil {
		l.evicted++
	}
	return longest
}

// popCandidate removes and returns the next candidate that is still idle. Connections that became idle later than
// collectCandidates ran come after all candidates of their address, so they need not be looked at. The lock is held.
func (l *Listener) popCandidate() *conn {
	for len(l.candidates) > 0 {
		last := l.candidates[len(l.candidates)-1]
		l.candidates = l.candidates[:len(l.candidates)-1]
		if _, open := l.open[last.conn]; open && last.idleTurn.Load() == last.turn {
			return last.conn
		}
	}
	return nil
}

// collectCandidates collects the idle connections of the addresses that hold at least half as many as the one that holds the most, the
// one that is idle longest last. Addresses without an idle connection are ignored. The lock is held.
func (l *Listener) collectCandidates() {
	held, idle := map[netip.Addr]int{}, map[netip.Addr]bool{}
	for c := range l.open {
		held[c.address]++
		idle[c.address] = idle[c.address] || c.idleTurn.Load() != 0
	}
	most := 0
	for address := range idle {
		if idle[address] {
			most = max(most, held[address])
		}
	}
	var all []candidate
	for c := range l.open {
		if turn := c.idleTurn.Load(); turn != 0 && 2*held[c.address] >= most {
			all = append(all, candidate{c, turn})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(b.turn, a.turn) })
	l.candidates = slices.Clone(all[max(0, len(all)-maxCandidates):])
}

// trackState is the http.Server's ConnState: it marks a connection as idle or not.
func trackState(nc net.Conn, state http.ConnState) {
	c, ok := nc.(*conn)
	if !ok || state != http.StateActive && state != http.StateIdle {
		return
	}
	c.setIdle(state == http.StateIdle)
	c.meter = Meter{} // each answer is measured separately
}

// removeConn removes a closed connection from the open ones.
func (l *Listener) removeConn(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	l.signalRoom()
}

// signalRoom wakes waitForRoom, if a new connection waits.
func (l *Listener) signalRoom() {
	if !l.isWaiting.Load() {
		return
	}
	select {
	case l.room <- struct{}{}:
	default:
	}
}

// Status holds the figures of a listener.
type Status struct {
	Open, Limit int
	Evicted     int64 // since the start
	SlowReaders int64 // connections that were ended because their clients read too slowly, since the start
	Full        bool  // a new connection waits for room
}

// Status returns the current figures.
func (l *Listener) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Status{Open: len(l.open), Limit: l.limit, Evicted: l.evicted, SlowReaders: l.slowReaders.Load(), Full: l.isWaiting.Load()}
}

const (
	// maxLinger and maxDrain limit for how long, and for how many bytes, a connection is still read after an answer that closes it.
	maxLinger = time.Second
	maxDrain  = 256 << 10
)

// connKey is the key of a request's context under which its *conn is found.
type connKey struct{}

// clientNetwork returns the address of a client; for IPv6 its /64 network, all of which belongs to one client.
func clientNetwork(remote net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Addr{} // a socket without addresses
	}
	address := at.Addr().Unmap()
	if address.Is6() {
		network, _ := address.WithZone("").Prefix(64) // it has 128 bits
		return network.Addr()
	}
	return address
}

// conn is a connection of a Listener. It records whether it is idle, for the listener's choice.
type conn struct {
	answerWriter
	listener *Listener
	address  netip.Addr // of the client

	idleTurn atomic.Int64 // rank in the order in which connections became idle; 0 while it serves a request

	once   sync.Once
	closed chan struct{} // closed with the connection
	err    error         // of closing the connection
}

// Write sends a part of an answer. A client that reads too slowly loses its connection.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.answerWriter.Write(p)
	if err == ErrSlowReader {
		c.listener.slowReaders.Add(1)
		c.listener.log.Debug("an answer is ended, because its client reads too slowly", "client", c.RemoteAddr())
		c.resetOnClose()
		c.Close()
	}
	return n, err
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

// CloseWrite closes the sending side if the connection has one, so that the client sees the end of the answer.
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
