package simulation

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"time"

	"lieudit/cmd/bench/simulation/customers"
)

// clientTimeout is how long clients wait for an answer by default.
const clientTimeout = 30 * time.Second

// Call implements customers.World. It returns when the instance has answered or died, or when the client has lost patience: then the connection
// is closed, and the handler learns it by its context, but may continue.
func (w *World) Call(ctx context.Context, number int, surface customers.Surface, request customers.Request) customers.Answer {
	began := time.Now()
	a := w.call(ctx, number, surface, request)
	w.log.Debug("answer", "instance", number, "request", request.Method+" "+request.Path, "body", string(request.Body),
		"status", a.Status, "took", time.Since(began), "disturbed", w.IsDisturbed(), "answer", string(a.Body[:min(len(a.Body), 200)]))
	return a
}

func (w *World) call(ctx context.Context, number int, surface customers.Surface, request customers.Request) customers.Answer {
	r := w.nodes[number].beginRequest()
	if r == nil {
		return customers.Answer{}
	}
	ctx, hangUp := context.WithTimeout(ctx, clientTimeout)
	defer hangUp()
	recorder, done := httptest.NewRecorder(), make(chan bool, 1)
	answer := &slowWriter{ResponseRecorder: recorder, ctx: ctx, injector: r.injector}
	go func() {
		isWhole := false
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { // a handler cuts the connection with http.ErrAbortHandler
				w.Report("no handler panics", "%s %s: %v\n%s", request.Method, request.Path, p, debug.Stack())
			}
			done <- isWhole
			r.requests.Done()
		}()
		r.handler(surface).ServeHTTP(answer, r.newHTTPRequest(ctx, request))
		isWhole = !answer.isCut()
	}()
	select {
	case isWhole := <-done:
		if isWhole && !r.isDead() {
			return customers.Answer{Status: recorder.Code, Header: recorder.Header(), Body: recorder.Body.Bytes(), IsSent: true}
		}
	case <-r.died:
	case <-ctx.Done():
	}
	return customers.Answer{IsSent: true}
}

// beginRequest returns the node's run if it accepts requests, otherwise nil. The run does not end before requests.Done is called.
func (n *node) beginRequest() *run {
	r := n.current()
	if r == nil {
		return nil
	}
	r.counting.Lock()
	defer r.counting.Unlock()
	if !r.takesRequests() {
		return nil
	}
	r.requests.Add(1)
	return r
}

// Wall implements customers.World.
func (w *World) Wall(instance int) time.Time { return w.nodes[instance].now() }

// Deaths implements customers.World.
func (w *World) Deaths(instance int) int { return int(w.nodes[instance].deaths.Load()) }

// takesRequests reports whether the run's socket is open.
func (r *run) takesRequests() bool {
	select {
	case <-r.ready:
		return !r.isEnding.Load() && !r.isDead()
	default:
		return false
	}
}

func (r *run) handler(s customers.Surface) http.Handler {
	if s == customers.API {
		return r.instance.API()
	}
	return r.instance.Area()
}

// newHTTPRequest returns a request as a handler receives it.
func (run *run) newHTTPRequest(ctx context.Context, q customers.Request) *http.Request {
	r := httptest.NewRequestWithContext(ctx, q.Method, q.Path, bytes.NewReader(q.Body))
	for name, values := range q.Header {
		r.Header[name] = values
	}
	r.Body = slowBody{r.Body, ctx, run.injector}
	return r
}
