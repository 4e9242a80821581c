package connlimit_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/http/connlimit"
)

// pipeListener is a listener in memory, so that the clock of a test can stand in for time.
type pipeListener struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p pipeListener) Close() error   { close(p.closed); return nil }
func (p pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipeListener) dial(t *testing.T) client {
	t.Helper()
	ours, theirs := net.Pipe()
	p.accepted <- theirs
	t.Cleanup(func() { ours.Close() })
	return client{ours, bufio.NewReader(ours)}
}

// runInMemory runs a test of a listener in memory under a clock of its own.
func runInMemory(t *testing.T, limit int, h http.HandlerFunc, test func(*testing.T, pipeListener, *connlimit.Listener)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := pipeListener{make(chan net.Conn), make(chan struct{})}
		l := connlimit.NewListener(p, limit, slog.New(slog.DiscardHandler))
		s, done := &http.Server{Handler: h}, make(chan error, 1)
		go func() { done <- l.Serve(s) }()
		defer func() {
			s.Close()
			<-done
		}()
		test(t, p, l)
	})
}

func TestABodyThatStopsIsEndedAfter30Seconds(t *testing.T) {
	t.Parallel()
	runInMemory(t, 10, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Length", "0")
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	}, func(t *testing.T, p pipeListener, l *connlimit.Listener) {
		c := p.dial(t)
		c.send(t, post+contentLength(100)+"some")
		began := time.Now()
		status, closes := c.readResponse(t)
		if waited := time.Since(began); status != 400 || !closes || waited != 30*time.Second {
			t.Errorf("%d after %v, closes %t; want 400 after 30s, closing", status, waited, closes)
		}
	})
}

func TestLongWorkAndASlowReaderAreNotTimedOut(t *testing.T) {
	t.Parallel()
	const much = 1 << 20
	runInMemory(t, 10, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		select {
		case <-time.After(time.Hour):
			io.WriteString(w, strings.Repeat("x", much))
		case <-r.Context().Done():
			t.Error("the request was given up")
		}
	}, func(t *testing.T, p pipeListener, l *connlimit.Listener) {
		c := p.dial(t)
		c.send(t, post+contentLength(4)+"some")
		r, err := http.ReadResponse(c.Reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if n, err := io.Copy(io.Discard, r.Body); n != much || err != nil {
			t.Errorf("read %d bytes, %v", n, err)
		}
	})
}

func TestAtTheLimitAClientThatDoesNotReadItsAnswerIsClosed(t *testing.T) {
	t.Parallel()
	runInMemory(t, 1, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat("x", 100_000))
	}, func(t *testing.T, p pipeListener, l *connlimit.Listener) {
		deaf := p.dial(t)
		deaf.send(t, get)
		synctest.Wait()
		began, next := time.Now(), p.dial(t)
		next.send(t, get)
		if status, _ := next.readResponse(t); status != 200 {
			t.Errorf("the next client got %d", status)
		}
		if waited := time.Since(began); waited < 29*time.Second || waited > 32*time.Second {
			t.Errorf("it waited %v, want some 30s", waited)
		}
		if _, err := io.Copy(io.Discard, deaf.Reader); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the deaf client's connection: %v", err)
		}
	})
}

// TestAClientThatGoesAwayIsNoticedOnceItsBodyHasCome: the deadlines of a body do not stay on the connection.
func TestAClientThatGoesAwayIsNoticedOnceItsBodyHasCome(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	l := serve(t, 10, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
	})
	c := dial(t, l)
	c.send(t, post+contentLength(4)+"some")
	c.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("its work ended with %v", err)
	}
}
