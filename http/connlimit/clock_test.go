package connlimit_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
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

func TestABodyThatIsAskedForAndDoesNotComeIsEndedAfter30Seconds(t *testing.T) {
	t.Parallel()
	runInMemory(t, 10, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Length", "0")
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	}, func(t *testing.T, p pipeListener, l *connlimit.Listener) {
		c := p.dial(t)
		c.send(t, post+"Expect: 100-continue\r\n"+contentLength(100))
		began := time.Now()
		for _, want := range []int{100, 400} {
			status, _ := c.readResponse(t)
			if status != want {
				t.Errorf("%d after %v, want %d", status, time.Since(began), want)
			}
		}
		if waited := time.Since(began); waited != 30*time.Second {
			t.Errorf("ended after %v, want 30s", waited)
		}
		c.expectClosed(t)
	})
}

func TestLongWorkIsNotTimedOut(t *testing.T) {
	t.Parallel()
	const much = 1 << 20
	runInMemory(t, 10, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for range 4 {
			select {
			case <-time.After(time.Hour):
				io.WriteString(w, strings.Repeat("x", much/4))
			case <-r.Context().Done():
				t.Error("the request was given up")
			}
		}
	}, func(t *testing.T, p pipeListener, l *connlimit.Listener) {
		c := p.dial(t)
		c.send(t, post+contentLength(4)+"some")
		r, err := http.ReadResponse(c.Reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, r.Body); n != much || err != nil {
			t.Errorf("read %d bytes, %v", n, err)
		}
	})
}

// readSlowly reads pieces of a connection with a pause after each, until it ends.
func readSlowly(c net.Conn, piece int, pause time.Duration) (total int) {
	for buf := make([]byte, piece); ; time.Sleep(pause) {
		n, err := io.ReadFull(c, buf)
		if total += n; err != nil {
			return total
		}
	}
}

func TestAnAnswerHasToBeRead(t *testing.T) {
	t.Parallel()
	const kib, mib = 1 << 10, 1 << 20
	for _, c := range []struct {
		what   string
		answer int
		piece  int
		pause  time.Duration
		isSlow bool
		ended  time.Duration // after which the handler has ended
	}{
		{"at once", 8 * mib, mib, 0, false, 0},
		{"at 65 KiB a second", 8 * mib, 65 * kib, time.Second, false, 126 * time.Second},
		{"at 63 KiB a second", 8 * mib, 63 * kib, time.Second, true, 30 * time.Second},
		{"a byte at a time", 1 * mib, 1, 10 * time.Second, true, 30 * time.Second},
		{"never", 8 * mib, 1, time.Hour, true, 30 * time.Second},
		{"a small one never", 10 * kib, 1, time.Hour, true, 30 * time.Second},
		{"fast, with pauses below the limit", 8 * mib, 4 * mib, 29 * time.Second, false, 58 * time.Second},
		{"in bursts of 8 seconds", 16 * mib, 8 * 65 * kib, 8 * time.Second, false, 248 * time.Second},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			var ended atomic.Pointer[time.Time]
			runInMemory(t, 10, func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, strings.Repeat("x", c.answer))
				http.NewResponseController(w).Flush()
				now := time.Now()
				ended.Store(&now)
			}, func(t *testing.T, p pipeListener, l *connlimit.Listener) {
				began, client := time.Now(), p.dial(t)
				client.send(t, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				total := readSlowly(client.Conn, c.piece, c.pause)
				synctest.Wait()
				if took := ended.Load().Sub(began); took != c.ended {
					t.Errorf("the handler ended after %v, want %v", took, c.ended)
				}
				if slow := l.Status().SlowReaders; (slow == 1) != c.isSlow || (total < c.answer) != c.isSlow {
					t.Errorf("%d bytes were read, %d clients too slow", total, slow)
				}
			})
		})
	}
}

func TestEachAnswerOfAConnectionIsMeasuredByItself(t *testing.T) {
	t.Parallel()
	runInMemory(t, 10, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10240")
		io.WriteString(w, strings.Repeat("x", 10240))
	}, func(t *testing.T, p pipeListener, l *connlimit.Listener) {
		c := p.dial(t)
		for range 5 {
			c.send(t, get)
			time.Sleep(20 * time.Second)
			if status, _ := c.readResponse(t); status != 200 {
				t.Errorf("got %d", status)
			}
		}
	})
}

// TestAnAnswerIsBrokenOffWhileItIsWritten: the deadline that breaks an answer off ends a write that has begun.
func TestAnAnswerIsBrokenOffWhileItIsWritten(t *testing.T) {
	t.Parallel()
	var failed atomic.Pointer[error]
	runInMemory(t, 10, func(w http.ResponseWriter, r *http.Request) {
		time.AfterFunc(time.Second, func() { http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) })
		_, err := io.WriteString(w, strings.Repeat("x", 1<<20))
		failed.Store(&err)
	}, func(t *testing.T, p pipeListener, l *connlimit.Listener) {
		p.dial(t).send(t, get)
		time.Sleep(time.Second)
		synctest.Wait()
		if err := failed.Load(); err == nil || !errors.Is(*err, os.ErrDeadlineExceeded) {
			t.Errorf("the write has not ended as it should: %v", err)
		}
		if got := l.Status().SlowReaders; got != 0 {
			t.Errorf("%d clients were too slow", got)
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
