// Package outage remembers which questions the servers of another engine failed to answer, so that operators hear of it even where
// such a server answers a simple probe. Its one constraint: it changes no answer and no error of a question.
//
//	question ── Router ──► the engine's router ──► answer
//	               └─ record, by mode ──► Problem (readiness), one line in the log as an outage begins and one as it ends
package outage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
)

// Router passes questions to another router and remembers of each mode whether its last answer was a failure of a server. It is
// safe for concurrent use.
type Router struct {
	router route.Router
	engine string
	log    *slog.Logger

	mu       sync.Mutex
	failures map[route.Mode]error // of the modes whose last answer failed; of "" the last failure of Network
}

var _ route.Router = (*Router)(nil)

// New returns a router that watches another one. engine is its name in the log and in errors.
func New(router route.Router, engine string, log *slog.Logger) *Router {
	return &Router{router: router, engine: engine, log: log, failures: map[route.Mode]error{}}
}

// Problem returns nil while no mode's last answer is a failure. Otherwise its error names the engine and the modes, each with the reason.
func (r *Router) Problem() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var problems []error
	for _, mode := range []route.Mode{"", route.Car, route.Foot, route.Bike} {
		switch err := r.failures[mode]; {
		case err != nil && mode == "":
			problems = append(problems, err) // Network names what failed
		case err != nil:
			problems = append(problems, fmt.Errorf("%s, %s: %w", r.engine, mode, err))
		}
	}
	return errors.Join(problems...)
}

// record notes how a question ended. No way, and a bound that is too far from any road, are answers. Other refusals, and the end of
// a question's own time, say nothing about the server.
func (r *Router) record(ctx context.Context, mode route.Mode, err error) {
	isAnswer := err == nil || errors.Is(err, route.ErrNoRoute) || errors.As(err, new(*route.OffRoadError))
	switch {
	case isAnswer:
		r.forget(func(failed route.Mode, _ error) bool { return failed == mode })
	case ctx.Err() == nil && routeserver.IsFailure(err):
		r.remember(mode, err)
	}
}

// remember keeps a failure, and logs it where none is known.
func (r *Router) remember(mode route.Mode, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) == 0 {
		r.log.Warn("the routing server fails", "router", r.engine, "mode", string(mode), "reason", err)
	}
	r.failures[mode] = err
}

// forget drops the failures that are over, and logs it where none is left.
func (r *Router) forget(isOver func(route.Mode, error) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) == 0 {
		return
	}
	for mode, err := range r.failures {
		if isOver(mode, err) {
			delete(r.failures, mode)
		}
	}
	if len(r.failures) == 0 {
		r.log.Info("the routing server answers again", "router", r.engine)
	}
}

// Route implements route.Router.
func (r *Router) Route(ctx context.Context, q route.Query) (route.Answer, error) {
	a, err := r.router.Route(ctx, q)
	r.record(ctx, q.Mode, err)
	return a, err
}

// Matrix implements route.Router.
func (r *Router) Matrix(ctx context.Context, q route.MatrixQuery) (route.Matrix, error) {
	m, err := r.router.Matrix(ctx, q)
	r.record(ctx, q.Mode, err)
	return m, err
}

// Nearest implements route.Router.
func (r *Router) Nearest(ctx context.Context, q route.NearestQuery) (route.Nearest, error) {
	n, err := r.router.Nearest(ctx, q)
	r.record(ctx, q.Mode, err)
	return n, err
}

// Isochrone implements route.Router.
func (r *Router) Isochrone(ctx context.Context, q route.IsochroneQuery) (route.Isochrone, error) {
	i, err := r.router.Isochrone(ctx, q)
	r.record(ctx, q.Mode, err)
	return i, err
}

// Network implements route.Router. That it succeeds ends an outage only where servers could not be reached: it asks less than a
// question does.
func (r *Router) Network(ctx context.Context) (route.Network, error) {
	n, err := r.router.Network(ctx)
	switch {
	case err == nil:
		r.forget(func(failed route.Mode, reason error) bool {
			return failed == "" || routeserver.IsUnconnected(reason) && slices.Contains(n.Modes, failed)
		})
	case ctx.Err() == nil && routeserver.IsFailure(err):
		r.remember("", err)
	}
	return n, err
}
