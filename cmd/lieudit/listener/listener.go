// Package listener serves HTTP at an address: it opens the socket, limits the connections, and stops in an order that settles the
// requests under way. DivideDescriptors computes how many connections the file descriptors of the process allow.
//
//	New ──> Open ──> Serve until its context ends ──> running requests end, or are cut ──> Close
package listener

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"lieudit/http/connlimit"
)

// readHeaderTimeout bounds the time in which a client sends the headers of a request.
const readHeaderTimeout = 30 * time.Second

// Listener is an address with its HTTP server, and its socket once Open has returned. Its timeouts bound headers, bodies (package
// connlimit) and idle connections, never the work on a request: an import of a large site file takes the time it takes.
type Listener struct {
	name, address string
	connections   int // at most
	log           *slog.Logger
	server        *http.Server
	active        atomic.Int64 // requests that are being answered
	hasCut        atomic.Bool  // see HasCutRequests

	opened chan struct{}       // closed when socket is set
	socket *connlimit.Listener // nil before
}

// New returns a listener with a cap on its connections. While isStopping returns true, answers close their connections, so that the
// clients' next requests go to other instances.
func New(name, address string, connections int, handler http.Handler, isStopping func() bool, log *slog.Logger) *Listener {
	l := &Listener{name: name, address: address, connections: connections, log: log, opened: make(chan struct{})}
	l.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l.active.Add(1)
			defer l.active.Add(-1)
			w.Header().Set("X-Content-Type-Options", "nosniff") // no browser treats what a customer stored as a page of ours
			if isStopping() {
				w.Header().Set("Connection", "close")
			}
			handler.ServeHTTP(w, r)
		}),
		DisableGeneralOptionsHandler: true, // the handler answers OPTIONS * too
		ReadHeaderTimeout:            readHeaderTimeout,
		IdleTimeout:                  2 * time.Minute,
		MaxHeaderBytes:               64 << 10,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return l
}

// Open opens the socket. It is called once.
func (l *Listener) Open() error {
	inner, err := net.Listen("tcp", l.address)
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	l.socket = connlimit.NewListener(inner, l.connections, l.log)
	close(l.opened)
	return nil
}

// IsOpen reports whether the socket is open, or was.
func (l *Listener) IsOpen() bool {
	select {
	case <-l.opened:
		return true
	default:
		return false
	}
}

// Close closes the socket, if it was opened. It drops the error: after Serve the socket is already closed.
func (l *Listener) Close() error {
	if l.IsOpen() {
		l.socket.Close()
	}
	return nil
}

// Opened returns a channel that is closed once the socket is open.
func (l *Listener) Opened() <-chan struct{} { return l.opened }

// Name returns the listener's name in errors.
func (l *Listener) Name() string { return l.name }

// Addr returns the address of an open socket.
func (l *Listener) Addr() net.Addr { return l.socket.Addr() }

// Status returns the figures of the connections, also before the socket is open.
func (l *Listener) Status() connlimit.Status {
	if !l.IsOpen() {
		return connlimit.Status{Limit: l.connections}
	}
	return l.socket.Status()
}

// URL returns the base URL of an open listener, with the port that the system chose for :0.
func (l *Listener) URL() string { return "http://" + l.socket.Addr().String() }

// Serve answers on an open socket until the context ends. Then it closes the socket, gives running requests the time finish to
// end, and cuts the rest.
func (l *Listener) Serve(ctx context.Context, finish time.Duration) error {
	done := make(chan error, 1)
	go func() { done <- l.socket.Serve(l.server) }()
	select {
	case err := <-done:
		return fmt.Errorf("%s: %w", l.name, err)
	case <-ctx.Done():
	}
	l.socket.CloseWhenEmpty()
	shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finish)
	defer cancel()
	err := l.server.Shutdown(shutdownCtx)
	if errors.Is(err, context.DeadlineExceeded) {
		l.hasCut.Store(l.active.Load() > 0)
		err = l.server.Close()
		l.awaitCutRequests()
	}
	<-done
	return err
}

// HasCutRequests reports whether Serve cut requests that did not end in time: nobody got their answers. Some of them may still be running.
func (l *Listener) HasCutRequests() bool { return l.hasCut.Load() }

// cutTimeout is how long requests that were cut have to end, and cutPoll how often awaitCutRequests checks.
const (
	cutTimeout = 3 * time.Second
	cutPoll    = 10 * time.Millisecond
)

// awaitCutRequests gives requests that were cut the time to settle their usage: their handlers end once they notice the cut, and
// Server.Close does not wait for that.
func (l *Listener) awaitCutRequests() {
	for end := time.Now().Add(cutTimeout); l.active.Load() > 0 && time.Now().Before(end); {
		time.Sleep(cutPoll)
	}
}
