package service

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

// listener is an address with its HTTP server, and its socket once open has returned. Its timeouts bound headers, bodies (package
// connlimit) and idle connections, never the work on a request: an import of a large site file takes the time it takes.
type listener struct {
	name, address string
	connections   int // that it takes at most
	log           *slog.Logger
	server        *http.Server
	active        atomic.Int64 // requests that are being answered

	opened chan struct{}       // closed when socket is set
	socket *connlimit.Listener // nil before
}

// newListener returns a listener that takes at most n connections. Its socket is closed with the service.
func (s *service) newListener(name, address string, connections int, handler http.Handler) *listener {
	l := &listener{name: name, address: address, connections: connections, log: s.Log, opened: make(chan struct{})}
	l.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l.active.Add(1)
			defer l.active.Add(-1)
			w.Header().Set("X-Content-Type-Options", "nosniff") // no browser takes what a customer stored for a page of ours
			if s.isStopping.Load() {
				w.Header().Set("Connection", "close") // the client's next request goes to another instance
			}
			handler.ServeHTTP(w, r)
		}),
		DisableGeneralOptionsHandler: true, // the handler answers OPTIONS * too
		ReadHeaderTimeout:            readHeaderTimeout,
		IdleTimeout:                  2 * time.Minute,
		MaxHeaderBytes:               64 << 10,
		ErrorLog:                     slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	s.onClose(l.close)
	return l
}

// open opens the socket. It is called once.
func (l *listener) open() error {
	inner, err := net.Listen("tcp", l.address)
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	l.socket = connlimit.NewListener(inner, l.connections, l.log)
	close(l.opened)
	return nil
}

// isOpen reports whether the socket is open, or was.
func (l *listener) isOpen() bool {
	select {
	case <-l.opened:
		return true
	default:
		return false
	}
}

// close closes the socket, if it was opened. The error is dropped: after serve it is closed already.
func (l *listener) close() error {
	if l.isOpen() {
		l.socket.Close()
	}
	return nil
}

// status returns the figures of the connections, also before the socket is open.
func (l *listener) status() connlimit.Status {
	if !l.isOpen() {
		return connlimit.Status{Limit: l.connections}
	}
	return l.socket.Status()
}

// url is the base URL of an open listener, with the port that the system chose for :0.
func (l *listener) url() string { return "http://" + l.socket.Addr().String() }

// serve answers on an open socket until the context ends. Then the socket is closed, running requests have the time finish to
// end, and those left are cut.
func (l *listener) serve(ctx context.Context, finish time.Duration) error {
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
		err = l.server.Close()
		l.awaitCutRequests()
	}
	<-done
	return err
}

// cutTimeout is how long requests that were cut have to end, and cutPoll how often they are looked at.
const (
	cutTimeout = 3 * time.Second
	cutPoll    = 10 * time.Millisecond
)

// awaitCutRequests gives requests that were cut the time to settle what was counted for them: their handlers end once they notice,
// which Server.Close does not wait for.
func (l *listener) awaitCutRequests() {
	for end := time.Now().Add(cutTimeout); l.active.Load() > 0 && time.Now().Before(end); {
		time.Sleep(cutPoll)
	}
}
