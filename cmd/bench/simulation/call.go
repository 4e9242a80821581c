package simulation

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"time"
)

// Surface is one of the two interfaces of an instance.
type Surface int

const (
	API  Surface = iota // /services/v1
	Area                // /customer-area/v1
)

// Request is a request of a client.
type Request struct {
	Method, Path string // the path with its query, from the root
	Header       http.Header
	Body         []byte
}

// Answer is what a client gets. Without a Status it got no whole answer: whether the request had an effect is unknown where IsSent.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	IsSent bool // the request reached an instance
}

// clientTimeout is how long clients wait for an answer.
const clientTimeout = 30 * time.Second

// Call sends a request to an instance. It returns when that has answered or died, or the client has lost its patience.
func (w *World) Call(ctx context.Context, number int, surface Surface, request Request) Answer {
	r := w.nodes[number].current()
	if r == nil || !r.takesRequests() {
		return Answer{}
	}
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	recorder, done := httptest.NewRecorder(), make(chan bool, 1)
	r.requests.Add(1)
	go func() {
		isWhole := false
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { // which cuts the connection, as a handler may
				w.report("no handler panics", "%s %s: %v\n%s", request.Method, request.Path, p, debug.Stack())
			}
			done <- isWhole
			r.requests.Done()
		}()
		r.handler(surface).ServeHTTP(recorder, request.newHTTP(ctx))
		isWhole = true
	}()
	select {
	case isWhole := <-done:
		if isWhole && !r.isDead() {
			return Answer{recorder.Code, recorder.Header(), recorder.Body.Bytes(), true}
		}
	case <-r.died:
	case <-ctx.Done():
		<-done
	}
	return Answer{IsSent: true}
}

// takesRequests says whether the run's socket is open.
func (r *run) takesRequests() bool {
	select {
	case <-r.ready:
		return !r.isEnding.Load() && !r.isDead()
	default:
		return false
	}
}

func (r *run) handler(s Surface) http.Handler {
	if s == API {
		return r.instance.API()
	}
	return r.instance.Area()
}

// newHTTP is the request as a handler takes it.
func (q Request) newHTTP(ctx context.Context) *http.Request {
	r := httptest.NewRequestWithContext(ctx, q.Method, q.Path, bytes.NewReader(q.Body))
	for name, values := range q.Header {
		r.Header[name] = values
	}
	return r
}
