package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"lieudit/http/connlimit"
)

// readHeaderTimeout is how long the headers of a request may take.
const readHeaderTimeout = 30 * time.Second

// listener is one of the service's listeners. The service sets no timeout on a client's work: only on the time
// that headers, bodies (package bodies) and idle connections may take.
type listener struct {
	name   string
	socket *connlimit.Listener
	server *http.Server
}

func (s *service) newListener(name, address string, connections int, handler http.Handler) (*listener, error) {
	inner, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	socket := connlimit.NewListener(inner, connections, s.Log)
	s.onClose(func() error {
		socket.Close() // closed already if it served
		return nil
	})
	return &listener{name, socket, &http.Server{
		Handler: handler,
		// OPTIONS * is the handler's too.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            readHeaderTimeout,
		IdleTimeout:                  2 * time.Minute,
		MaxHeaderBytes:               64 << 10,
		ErrorLog:                     slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}}, nil
}

// url is where the listener can be reached.
func (l *listener) url() string { return "http://" + l.socket.Addr().String() }

// serve answers until the context ends, then lets running requests end for as long as drain, and cuts the rest.
func (l *listener) serve(ctx context.Context, drain time.Duration) error {
	done := make(chan error, 1)
	go func() { done <- l.socket.Serve(l.server) }()
	select {
	case err := <-done:
		return fmt.Errorf("%s: %w", l.name, err)
	case <-ctx.Done():
	}
	shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := l.server.Shutdown(shutdownCtx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = l.server.Close()
	}
	<-done
	return err
}
