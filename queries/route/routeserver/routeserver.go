// Package routeserver calls a routing server over HTTP for the adapters in packages osrm and valhalla. A server that is gone, slow
// or misbehaving costs a request no more than its time limit and results in route.ErrUnavailable, never in a panic or a partly
// wrong answer.
//
//	adapter ── Call ──► Server.Ask ──► breaker ──► net/http ──► status, body (at most MaxAnswer bytes) ──► the adapter's read
//
// net/http retries a request if the server closed a kept connection before it answered, so this package does not retry.
package routeserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"lieudit/queries/worker"
)

const (
	// MaxAnswer is the length of the longest answer that is read, in bytes: a route of 2,000 km with its steps has 3 MB.
	MaxAnswer = 64 << 20

	dialTimeout     = time.Second
	idleConnections = 64
)

// Timeouts are how long a server may take: for a matrix, and for a route, an area or the nearest road.
type Timeouts struct{ Route, Matrix time.Duration }

// DefaultTimeouts fit within the time limits of the service's requests.
var DefaultTimeouts = Timeouts{Route: 2 * time.Second, Matrix: 10 * time.Second}

// Server is a routing server. It is safe for concurrent use. The caller sets Timeouts before the first Ask.
type Server struct {
	Timeouts

	url     string
	client  *http.Client
	breaker *breaker
}

// New returns the server at a URL, which may end with a slash. It sends no request before Ask. now returns elapsed time.
func New(serverURL string, now func() time.Time) *Server {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: time.Minute}
	t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	return &Server{Timeouts: DefaultTimeouts, url: strings.TrimRight(serverURL, "/"), client: &http.Client{Transport: t},
		breaker: &breaker{now: now}}
}

// Call is one request: a GET, or a POST of JSON if it has a body. It changes nothing on the server, so it may be repeated.
type Call struct {
	Path    string // with its query
	Body    []byte
	Timeout time.Duration
}

// Ask sends a call and hands the answer to read, whose error it returns. It fails with ctx's error when ctx ends, and with
// route.ErrUnavailable if the server does not answer in time or answers with a status of 500 or more. After several failures in a
// row, including a *BadAnswerError of read, the server is not called for a moment.
func (s *Server) Ask(ctx context.Context, c Call, read func(status int, body []byte) error) error {
	if err := s.breaker.check(); err != nil {
		return err
	}
	worker.Release(ctx)
	deadline, hasDeadline := ctx.Deadline()
	timeLeft := time.Until(deadline)
	status, body, err := s.send(ctx, c)
	switch {
	case hasDeadline && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &endedError{timeLeft}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if err == nil && status >= http.StatusInternalServerError {
		err = &BadAnswerError{fmt.Sprintf("with status %d", status)}
	}
	if err == nil {
		err = read(status, body)
	}
	if IsFailure(err) {
		s.breaker.record(err)
	} else {
		s.breaker.record(nil)
	}
	return err
}

// send sends a call and reads the whole answer.
func (s *Server) send(ctx context.Context, c Call) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	request, err := s.newRequest(ctx, c)
	if err != nil {
		return 0, nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, nil, newLostError(ctx, c.Timeout, withoutURL(err))
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, newLostError(ctx, c.Timeout, err)
	case len(body) > MaxAnswer:
		return 0, nil, &BadAnswerError{"more than it may"}
	}
	return response.StatusCode, body, nil
}

// newRequest makes the request of a call. The empty list of idempotency keys lets net/http repeat a POST too; it sends no such
// header.
func (s *Server) newRequest(ctx context.Context, c Call) (*http.Request, error) {
	method := http.MethodGet
	var body io.Reader
	if c.Body != nil {
		method, body = http.MethodPost, bytes.NewReader(c.Body)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url+c.Path, body)
	if err != nil {
		return nil, &lostError{cause: withoutURL(err)}
	}
	if c.Body != nil {
		r.Header.Set("Content-Type", "application/json")
		r.Header["Idempotency-Key"] = []string{}
	}
	return r, nil
}
