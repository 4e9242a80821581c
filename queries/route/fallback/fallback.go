// Package fallback makes one route.Router of two: a server that cannot answer some questions, and the project's own network, which
// answers those. Its one constraint: only a question that the first does not support goes to the second. A first that is
// unavailable is not replaced, as the two may have other roads and other durations, and nobody would know which answered.
//
//	question ── first ──► answer
//	              └─ route.ErrUnsupported ──► second ──► answer, or the first's error where the second has no network
package fallback

import (
	"context"
	"errors"
	"slices"

	"lieudit/queries/route"
)

// Router asks the first router and then, for what that does not support, the second. It is as safe for concurrent use as they are.
type Router struct{ first, second route.Router }

// New returns a router on two others.
func New(first, second route.Router) *Router { return &Router{first, second} }

// answer asks the first router and, if that does not support the question, the second. The first's error stays where the second has
// no network.
func answer[A any](ask func(route.Router) (A, error), r *Router) (A, error) {
	a, err := ask(r.first)
	if !errors.Is(err, route.ErrUnsupported) {
		return a, err
	}
	b, err2 := ask(r.second)
	if errors.Is(err2, route.ErrUnavailable) {
		return a, err
	}
	return b, err2
}

// Route answers as route.Router says.
func (r *Router) Route(ctx context.Context, q route.Query) (route.Answer, error) {
	return answer(func(x route.Router) (route.Answer, error) { return x.Route(ctx, q) }, r)
}

// Matrix answers as route.Router says.
func (r *Router) Matrix(ctx context.Context, q route.MatrixQuery) (route.Matrix, error) {
	return answer(func(x route.Router) (route.Matrix, error) { return x.Matrix(ctx, q) }, r)
}

// Nearest answers as route.Router says.
func (r *Router) Nearest(ctx context.Context, q route.NearestQuery) (route.Nearest, error) {
	return answer(func(x route.Router) (route.Nearest, error) { return x.Nearest(ctx, q) }, r)
}

// Isochrone answers as route.Router says.
func (r *Router) Isochrone(ctx context.Context, q route.IsochroneQuery) (route.Isochrone, error) {
	return answer(func(x route.Router) (route.Isochrone, error) { return x.Isochrone(ctx, q) }, r)
}

// Network describes the first router's network, with the modes of both.
func (r *Router) Network(ctx context.Context) (route.Network, error) {
	n, err := r.first.Network(ctx)
	if err != nil {
		return n, err
	}
	own, err := r.second.Network(ctx)
	if err != nil {
		return n, ctx.Err() // the first answers on its own
	}
	for _, mode := range own.Modes {
		if !slices.Contains(n.Modes, mode) {
			n.Modes = append(slices.Clip(n.Modes), mode)
		}
	}
	return n, nil
}
