package connlimit_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lieudit/http/connlimit"
)

// serve serves a handler on a listener with a limit.
func serve(t *testing.T, limit int, h http.HandlerFunc) *connlimit.Listener {
	t.Helper()
	return serveOn(t, listen(t), limit, h)
}

func serveOn(t *testing.T, inner net.Listener, limit int, h http.HandlerFunc) *connlimit.Listener {
	t.Helper()
	l := connlimit.NewListener(inner, limit, slog.New(slog.NewTextHandler(t.Output(), nil)))
	s := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.NewTextHandler(t.Output(), nil), slog.LevelWarn)}
	done := make(chan error, 1)
	go func() { done <- l.Serve(s) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
	return l
}

// awaitIdleTurns waits until connections have become idle some number of times.
func awaitIdleTurns(t *testing.T, l *connlimit.Listener, n int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); connlimit.IdleTurns(l) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("connections became idle %d times, want %d", connlimit.IdleTurns(l), n)
		}
	}
}

// client is one connection.
type client struct {
	net.Conn
	*bufio.Reader
}

func dial(t *testing.T, l *connlimit.Listener) client {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return client{c, bufio.NewReader(c)}
}

func (c client) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c.Conn, text); err != nil {
		t.Fatal(err)
	}
}

// readResponse reads a response and returns its status, and whether it closes the connection.
func (c client) readResponse(t *testing.T) (status int, closes bool) {
	t.Helper()
	r, err := http.ReadResponse(c.Reader, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Fatalf("half an answer: %v", err)
	}
	return r.StatusCode, r.Close
}

// expectClosed waits until the server has closed its side.
func (c client) expectClosed(t *testing.T) {
	t.Helper()
	if b, err := c.ReadByte(); err != io.EOF {
		t.Fatalf("got %q, %v; want the end of the connection", b, err)
	}
}

const (
	get  = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	post = "POST / HTTP/1.1\r\nHost: x\r\n"
)

func contentLength(n int) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n", n) }

// refuseUnread answers without reading the body.
func refuseUnread(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "2")
	w.WriteHeader(http.StatusUnauthorized)
	io.WriteString(w, "no")
}

func TestOnlyARefusalWhoseBodyIsUnreadCloses(t *testing.T) {
	t.Parallel()
	l := serve(t, 100, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/read" {
			io.Copy(io.Discard, r.Body)
		}
		w.Header().Set("Content-Length", "0")
		if r.URL.Path != "/fine" {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	const chunked = "Transfer-Encoding: chunked\r\n\r\n"
	chunk := func(n int) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n, strings.Repeat("x", n)) }
	for _, c := range []struct {
		what, request string
		closes        bool
	}{
		{"no body", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", false},
		{"a small body", post + contentLength(10) + "0123456789", false},
		{"a small body that is read", "POST /read HTTP/1.1\r\nHost: x\r\n" + contentLength(10) + "0123456789", false},
		{"a large body that is read", "POST /read HTTP/1.1\r\nHost: x\r\n" + contentLength(100_000) + strings.Repeat("x", 100_000), false},
		{"a large body", post + contentLength(100_000) + strings.Repeat("x", 100_000), true},
		{"a large body that does not come", post + contentLength(100_000), true},
		{"a small one in chunks", post + chunked + chunk(10), false},
		{"a body of GET, ignored", "GET /fine HTTP/1.1\r\nHost: x\r\n" + contentLength(100_000) + strings.Repeat("x", 100_000), false},
		{"a small body of HEAD", "HEAD / HTTP/1.1\r\nHost: x\r\n" + contentLength(10) + "0123456789", false},
		{"a body that waits to be asked for", post + "Expect: 100-continue\r\n" + contentLength(10), true},
		{"two at once", post + contentLength(10) + "0123456789" + post + contentLength(10) + "0123456789", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, l)
			conn.send(t, c.request)
			method, _, _ := strings.Cut(c.request, " ")
			asked, _ := http.NewRequest(method, "/", nil)
			r, err := http.ReadResponse(conn.Reader, asked)
			if err != nil || r.StatusCode == http.StatusContinue || r.Close != c.closes {
				t.Fatalf("got %+v, %v; closes %t", r, err, c.closes)
			}
			r.Body.Close()
			if c.closes {
				conn.expectClosed(t)
				return
			}
			if strings.Count(c.request, " HTTP/1.1") == 2 {
				conn.readResponse(t)
			}
			conn.send(t, "GET /fine HTTP/1.1\r\nHost: x\r\n\r\n")
			if status, _ := conn.readResponse(t); status != 200 {
				t.Errorf("then %d on the same connection", status)
			}
		})
	}
}

func TestASmallBodyThatDoesNotComeDoesNotKeepTheAnswerNorTheConnection(t *testing.T) {
	t.Parallel()
	l := serve(t, 100, refuseUnread)
	for _, body := range []string{contentLength(10), contentLength(10) + "012", "Transfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nff\r\nx"} {
		c := dial(t, l)
		c.send(t, post+body)
		if status, _ := c.readResponse(t); status != 401 {
			t.Errorf("%q: %d", body, status)
		}
		c.expectClosed(t)
	}
}

func TestABodyWithoutEndIsAnsweredAndEnds(t *testing.T) {
	t.Parallel()
	l := serve(t, 100, refuseUnread)
	for _, head := range []string{contentLength(1 << 40), "Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n"} {
		c := dial(t, l)
		c.send(t, post+head)
		var sending sync.WaitGroup
		sending.Go(func() {
			for some := make([]byte, 64<<10); ; {
				if _, err := c.Write(some); err != nil {
					return
				}
			}
		})
		if status, _ := c.readResponse(t); status != 401 {
			t.Errorf("%q: %d", head, status)
		}
		sending.Wait() // the server has closed
	}
}

func TestAnAnswerThatStreamsIsWhole(t *testing.T) {
	t.Parallel()
	l := serve(t, 100, func(w http.ResponseWriter, r *http.Request) {
		for range 100 {
			io.WriteString(w, strings.Repeat("y", 1000))
			http.NewResponseController(w).Flush()
		}
	})
	for _, body := range []string{contentLength(10) + "0123456789", contentLength(10), contentLength(1 << 20), "Expect: 100-continue\r\n" + contentLength(10)} {
		c := dial(t, l)
		c.send(t, post+body)
		r, err := http.ReadResponse(c.Reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.Copy(io.Discard, r.Body); got != 100_000 || err != nil {
			t.Errorf("%q: %d bytes, %v", body, got, err)
		}
	}
}

func TestAnAnswerThatIsBrokenOffEndsWithAReset(t *testing.T) {
	t.Parallel()
	l := serve(t, 10, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "some")
		controller := http.NewResponseController(w)
		controller.Flush()
		io.Copy(io.Discard, r.Body)
		controller.SetWriteDeadline(time.Unix(1, 0))
	})
	for _, version := range []string{"1.0", "1.1"} {
		c := dial(t, l)
		c.send(t, "POST / HTTP/"+version+"\r\nHost: x\r\nContent-Length: 1\r\n\r\n")
		r, err := http.ReadResponse(c.Reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r.Body, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		c.send(t, "x") // only now the answer is broken off: a reset may take back what was not read
		if n, err := io.Copy(io.Discard, r.Body); n != 0 || err == nil {
			t.Errorf("%s: %d more bytes, %v; want an answer that is not whole", version, n, err)
		}
	}
}

// TestTheSystemKeepsLittleOfAnAnswerThatIsNotRead: otherwise it takes some MB for each connection.
func TestTheSystemKeepsLittleOfAnAnswerThatIsNotRead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("what the system keeps unsent is limited on Linux")
	}
	taken := make(chan int64, 1)
	l := serve(t, 10, func(w http.ResponseWriter, r *http.Request) {
		var n int64
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
		for some := make([]byte, 4<<10); ; n += int64(len(some)) {
			if _, err := w.Write(some); err != nil {
				taken <- n
				return
			}
		}
	})
	c := dial(t, l)
	c.Conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	c.send(t, get)
	if n := <-taken; n > 1<<20 {
		t.Errorf("the system took %d bytes", n)
	}
}

func TestAtTheLimitTheLongestIdleConnectionIsClosed(t *testing.T) {
	t.Parallel()
	l := serve(t, 3, func(http.ResponseWriter, *http.Request) {})
	var all []client
	for i := range 3 {
		c := dial(t, l)
		c.send(t, get)
		c.readResponse(t)
		awaitIdleTurns(t, l, int64(2*i+2)) // accepted, and answered
		all = append(all, c)
	}
	all[0].send(t, get) // now the second one is idle longest
	all[0].readResponse(t)
	awaitIdleTurns(t, l, 7)
	fourth := dial(t, l)
	fourth.send(t, get)
	if status, _ := fourth.readResponse(t); status != 200 {
		t.Errorf("the new connection: %d", status)
	}
	all[1].expectClosed(t)
	for _, c := range []client{all[0], all[2], fourth} {
		c.send(t, get)
		if status, _ := c.readResponse(t); status != 200 {
			t.Errorf("another connection: %d", status)
		}
	}
	if got := l.Status(); got.Open != 3 || got.Evicted != 1 || got.Full {
		t.Errorf("got %+v, want 3 open and 1 evicted", got)
	}
}

// dialFrom connects from another address of this machine. Where the machine has none, the test is skipped.
func dialFrom(t *testing.T, l *connlimit.Listener, address string) client {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	c, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return client{c, bufio.NewReader(c)}
}

func TestAtTheLimitTheAddressWithTheMostConnectionsLosesOne(t *testing.T) {
	t.Parallel()
	l := serve(t, 6, func(http.ResponseWriter, *http.Request) {})
	customer := dial(t, l)
	customer.send(t, get)
	customer.readResponse(t) // and is idle longest from now on
	const opened, kept = 20, 5
	var stranger []client
	for range opened {
		c := dialFrom(t, l, "127.0.0.2")
		c.send(t, get)
		c.readResponse(t)
		stranger = append(stranger, c)
	}
	closed := 0
	for _, c := range stranger {
		c.SetDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := c.ReadByte(); err == io.EOF {
			closed++
		}
	}
	if closed != opened-kept {
		t.Errorf("the stranger lost %d connections, want %d", closed, opened-kept)
	}
	customer.send(t, get)
	if status, _ := customer.readResponse(t); status != 200 {
		t.Errorf("the customer: %d", status)
	}
}

func TestANewConnectionIsIdle(t *testing.T) {
	t.Parallel()
	l := serve(t, 1, func(http.ResponseWriter, *http.Request) {})
	for range 20 {
		silent, half := dial(t, l), dial(t, l)
		silent.expectClosed(t)
		half.send(t, "GET / HTTP/1.1\r\nHost: ")
		c := dial(t, l)
		if _, err := half.ReadByte(); err == nil {
			t.Error("half a request is answered")
		}
		c.send(t, get)
		c.readResponse(t)
		c.Close()
	}
}

// acceptNotifier is a listener that signals each connection it accepts.
type acceptNotifier struct {
	net.Listener
	accepted chan struct{}
}

func listen(t *testing.T) acceptNotifier {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return acceptNotifier{inner, make(chan struct{}, 100)}
}

func (w acceptNotifier) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err == nil {
		w.accepted <- struct{}{}
	}
	return c, err
}

func TestWhileNoneIsIdleNewConnectionsWait(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 3), make(chan struct{})
	inner := listen(t)
	l := serveOn(t, inner, 2, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/work" {
			entered <- struct{}{}
			<-leave
		}
	})
	var all []client
	for range 2 {
		c := dial(t, l)
		c.send(t, "GET /work HTTP/1.1\r\nHost: x\r\n\r\n")
		all = append(all, c)
		<-entered
	}
	next := dial(t, l)
	next.send(t, get)
	for range 3 {
		<-inner.accepted
	}
	if got := l.Status(); got.Open != 2 || got.Evicted != 0 {
		t.Errorf("got %+v, want the 2 at work", got)
	}
	leave <- struct{}{}
	if status, _ := next.readResponse(t); status != 200 {
		t.Errorf("who waited: %d", status)
	}
	close(leave)
	for _, c := range all {
		if status, _ := c.readResponse(t); status != 200 {
			t.Errorf("who was at work: %d", status)
		}
	}
}

// descriptorlessListener is a listener without a file descriptor at first.
type descriptorlessListener struct {
	net.Listener
	left int
}

func (f *descriptorlessListener) Accept() (net.Conn, error) {
	if f.left > 0 {
		f.left--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

func TestAcceptGoesOnWhenNoDescriptorIsLeft(t *testing.T) {
	t.Parallel()
	l := serveOn(t, &descriptorlessListener{listen(t), 3}, 10, func(http.ResponseWriter, *http.Request) {})
	c := dial(t, l)
	c.send(t, get)
	if status, _ := c.readResponse(t); status != 200 {
		t.Errorf("got %d", status)
	}
}

func TestAClosedListenerAcceptsNobodyAnyMore(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	inner := listen(t)
	l := connlimit.NewListener(inner, 1, slog.New(slog.DiscardHandler))
	done := make(chan error)
	go func() {
		done <- l.Serve(&http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(entered); <-leave })})
	}()
	c := dial(t, l)
	c.send(t, get)
	<-entered
	dial(t, l)
	for range 2 {
		<-inner.accepted
	}
	l.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("it ended with %v, want net.ErrClosed", err)
	}
	close(leave)
}

func TestAListenerThatEndsAcceptsWhoConnectedBefore(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := connlimit.NewListener(inner, 10, slog.New(slog.NewTextHandler(t.Output(), nil)))
	t.Cleanup(func() { l.Close() })
	const waiting = 5
	for range waiting {
		dial(t, l) // the system has connected it when dial returns
	}
	var ending sync.WaitGroup
	ending.Go(l.CloseWhenEmpty)
	accepted := 0
	for {
		c, err := l.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("got %v, want net.ErrClosed", err)
			}
			break
		}
		accepted++
		c.Close()
	}
	ending.Wait()
	if accepted != waiting {
		t.Errorf("%d connections were accepted, want %d", accepted, waiting)
	}
}

func TestAListenerEndsThoughNobodyAccepts(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := connlimit.NewListener(inner, 10, slog.New(slog.NewTextHandler(t.Output(), nil)))
	l.CloseWhenEmpty()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want net.ErrClosed", err)
	}
}
