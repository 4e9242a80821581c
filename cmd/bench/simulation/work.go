package simulation

import (
	"context"
	"io"
	"net/http/httptest"
	"os"
	"time"

	"lieudit/cmd/bench/simulation/faults"
	"lieudit/queries/route"
)

// This file makes handlers take elapsed time, as they do outside the simulation: requests counted before the work are settled some time after
// it, and a period may end in between.

// slowRouter is a router that takes its time to answer.
type slowRouter struct {
	route.Router
	injector *faults.Injector
}

// Route implements route.Router.
func (s slowRouter) Route(ctx context.Context, q route.Query) (route.Answer, error) {
	return answerSlowly(ctx, s.injector, q, s.Router.Route)
}

// Matrix implements route.Router.
func (s slowRouter) Matrix(ctx context.Context, q route.MatrixQuery) (route.Matrix, error) {
	return answerSlowly(ctx, s.injector, q, s.Router.Matrix)
}

// Nearest implements route.Router.
func (s slowRouter) Nearest(ctx context.Context, q route.NearestQuery) (route.Nearest, error) {
	return answerSlowly(ctx, s.injector, q, s.Router.Nearest)
}

// Isochrone implements route.Router.
func (s slowRouter) Isochrone(ctx context.Context, q route.IsochroneQuery) (route.Isochrone, error) {
	return answerSlowly(ctx, s.injector, q, s.Router.Isochrone)
}

// answerSlowly answers a question after the time that the work takes.
func answerSlowly[Q, A any](ctx context.Context, injector *faults.Injector, q Q, answer func(context.Context, Q) (A, error)) (a A, err error) {
	if err := injector.Work(ctx); err != nil {
		return a, err
	}
	return answer(ctx, q)
}

// slowBody is the body of a request whose client may send it slowly. A client that has given up sends nothing more.
type slowBody struct {
	io.ReadCloser
	ctx      context.Context // of the request
	injector *faults.Injector
}

func (b slowBody) Read(p []byte) (int, error) {
	if err := b.injector.Transfer(b.ctx); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

// slowWriter receives the answer for a client that may read it slowly. A client that has given up reads nothing more. It is not safe for
// concurrent use.
type slowWriter struct {
	*httptest.ResponseRecorder
	ctx      context.Context // of the request
	injector *faults.Injector
	deadline time.Time // zero: none
}

func (w *slowWriter) Write(p []byte) (int, error) {
	if err := w.injector.Transfer(w.ctx); err != nil {
		return 0, err
	}
	if w.isCut() {
		return 0, os.ErrDeadlineExceeded
	}
	return w.ResponseRecorder.Write(p)
}

// SetWriteDeadline is called by http.ResponseController. A handler cuts an answer off by a deadline that has passed.
func (w *slowWriter) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

// isCut reports whether the end of the answer cannot reach the client any more.
func (w *slowWriter) isCut() bool { return !w.deadline.IsZero() && !w.deadline.After(time.Now()) }
