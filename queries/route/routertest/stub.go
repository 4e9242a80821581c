package routertest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// Behaviour is how a stub treats one request.
type Behaviour int

// The behaviours.
const (
	Answer       Behaviour = iota // as recorded
	AnswerAndCut                  // as recorded, and then it closes the connection without having announced it
	Drop                          // it closes the connection instead of an answer
	CutShort                      // it closes the connection in the middle of the answer
	Hang                          // it never answers
	Replace                       // it answers with the stub's Status and Body
)

// Stub is a server over TCP that gives recorded answers, and misbehaves.
type Stub struct {
	URL      string
	Requests atomic.Int64 // that were read

	// Status and Body are the answer of Replace. They are set before the first request.
	Status int
	Body   string

	t         testing.TB
	recording Recording
	behave    func(request, onConnection int) Behaviour
	listener  net.Listener
	done      chan struct{}
	running   sync.WaitGroup
}

// StartStub starts a stub that ends with the test. behave says how it treats a request, given its number among all requests and
// among those of its connection, from 1.
func StartStub(t testing.TB, recording Recording, behave func(request, onConnection int) Behaviour) *Stub {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Stub{URL: "http://" + l.Addr().String(), t: t, recording: recording, behave: behave, listener: l, done: make(chan struct{})}
	s.running.Go(s.accept)
	t.Cleanup(s.Stop)
	return s
}

// Stop closes the stub's socket and its connections. It may be called more than once, by one goroutine.
func (s *Stub) Stop() {
	select {
	case <-s.done:
		return
	default:
	}
	close(s.done)
	s.listener.Close() // runs only once
	s.running.Wait()
}

func (s *Stub) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return // the stub was stopped
		}
		s.running.Go(func() { s.serve(c) })
	}
}

// serve answers the requests of a connection until one of them ends it.
func (s *Stub) serve(c net.Conn) {
	ended := make(chan struct{})
	defer close(ended)
	s.running.Go(func() { // closes the connection with the stub
		select {
		case <-s.done:
		case <-ended:
		}
		c.Close()
	})
	in := bufio.NewReader(c)
	for n := 1; ; n++ {
		request, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		behaviour := s.behave(int(s.Requests.Add(1)), n)
		e := Exchange{Status: s.Status, Answer: []byte(s.Body)}
		if behaviour != Replace {
			e = s.find(request, string(body))
		}
		if !s.answer(c, e, behaviour) {
			return
		}
	}
}

// find returns the recorded answer. A request that was not recorded fails the test.
func (s *Stub) find(request *http.Request, body string) Exchange {
	e, ok := s.recording.find(request.URL.RequestURI(), body)
	if !ok {
		s.t.Errorf("not recorded: %s %s; record again with -record", request.URL.RequestURI(), body)
		e = Exchange{Status: http.StatusNotFound, Answer: []byte("{}")}
	}
	return e
}

// answer writes an answer and reports whether the connection stays open.
func (s *Stub) answer(c net.Conn, e Exchange, b Behaviour) (isOpen bool) {
	whole := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		e.Status, http.StatusText(e.Status), len(e.Answer), e.Answer)
	switch b {
	case Drop:
		return false
	case Hang:
		<-s.done
		return false
	case CutShort:
		whole = whole[:len(whole)-len(e.Answer)/2-1]
	}
	_, err := io.WriteString(c, whole)
	return err == nil && b != CutShort && b != AnswerAndCut
}

// Always returns the behaviour that treats every request alike.
func Always(b Behaviour) func(request, onConnection int) Behaviour {
	return func(int, int) Behaviour { return b }
}
