// Package live is the route.Router that the service answers from: the servers of another engine, if there are any, then its own
// road network, which Swap replaces at any time. A file is unmapped when its last query is done, not before; a file that a query
// finds damaged is no longer used. mappedfile.Holder takes care of both.
//
//	http/api ── Router ──► the other engine's server, whose failures are remembered (outage.go) ──► answer
//	               │            └─ route.ErrUnsupported ─┐
//	               └─ without a server ──────────────────┴──► mappedfile.Query ──► engine.Engine ──► answer
//	                                                             ▲
//	releases.Watcher ── Swap, Withdraw ──────────────────────────┘
//
// Only a question that the server does not support goes to the own network. The own network does not stand in for an unavailable
// server: the two may have different roads and durations, and nobody would know which one answered.
package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"lieudit/queries/mappedfile"
	"lieudit/queries/route"
	"lieudit/queries/route/engine"
	"lieudit/queries/route/network"
)

// Router is a route.Router on the file of the last Swap and, if it has one, on a server. The zero Router has neither. While there is no
// file, queries for it fail with route.ErrUnavailable. It is safe for concurrent use.
type Router struct {
	own    mappedfile.Holder[route.Router]
	server *server // nil if the own network answers everything
}

var _ route.Router = (*Router)(nil)

// New returns a router that asks another engine's servers first. engine is the engine's name in the log and in errors. If other is
// nil, the own network answers everything.
func New(other route.Router, engine string, log *slog.Logger) *Router {
	if other == nil {
		return &Router{}
	}
	return &Router{server: &server{Router: other, engine: engine, log: log, failures: map[route.Mode]error{}}}
}

// Swap answers queries from next from now on and owns it: next is closed after a later Swap or Withdraw, when its last query is
// done. A nil next is Withdraw without a reason.
func (r *Router) Swap(next *network.Network) {
	if next == nil {
		r.own.Withdraw(nil)
		return
	}
	r.own.Swap(next, engine.New(next))
}

// Withdraw stops answering from the own network. Its queries fail with route.ErrUnavailable, which wraps the reason, until the next Swap.
func (r *Router) Withdraw(reason error) { r.own.Withdraw(reason) }

// HasServer reports whether another engine answers first.
func (r *Router) HasServer() bool { return r.server != nil }

// Problem returns nil while no mode's last answer of a server is a failure. Otherwise its error names the engine and the modes, each
// with the reason.
func (r *Router) Problem() error {
	if r.server == nil {
		return nil
	}
	return r.server.problem()
}

// queryOwn runs a query on the own network, which stays mapped until the query returns.
func queryOwn[A any](r *Router, query func(route.Router) (A, error)) (A, error) {
	answer, err := mappedfile.Query(&r.own, query)
	if errors.Is(err, mappedfile.ErrNone) {
		err = fmt.Errorf("%w: %w", route.ErrUnavailable, err)
	}
	return answer, err
}

// query asks the server and, if that does not support the question, the own network. Without a network it returns the server's
// error.
func query[A any](ctx context.Context, r *Router, mode route.Mode, ask func(route.Router) (A, error)) (A, error) {
	if r.server == nil {
		return queryOwn(r, ask)
	}
	answer, err := ask(r.server)
	r.server.record(ctx, mode, err)
	if !errors.Is(err, route.ErrUnsupported) {
		return answer, err
	}
	own, ownErr := queryOwn(r, ask)
	if errors.Is(ownErr, route.ErrUnavailable) {
		return answer, err
	}
	return own, ownErr
}

// Route implements route.Router.
func (r *Router) Route(ctx context.Context, q route.Query) (route.Answer, error) {
	return query(ctx, r, q.Mode, func(x route.Router) (route.Answer, error) { return x.Route(ctx, q) })
}

// Matrix implements route.Router.
func (r *Router) Matrix(ctx context.Context, q route.MatrixQuery) (route.Matrix, error) {
	return query(ctx, r, q.Mode, func(x route.Router) (route.Matrix, error) { return x.Matrix(ctx, q) })
}

// Nearest implements route.Router.
func (r *Router) Nearest(ctx context.Context, q route.NearestQuery) (route.Nearest, error) {
	return query(ctx, r, q.Mode, func(x route.Router) (route.Nearest, error) { return x.Nearest(ctx, q) })
}

// Isochrone implements route.Router.
func (r *Router) Isochrone(ctx context.Context, q route.IsochroneQuery) (route.Isochrone, error) {
	return query(ctx, r, q.Mode, func(x route.Router) (route.Isochrone, error) { return x.Isochrone(ctx, q) })
}

// Network implements route.Router: it describes the server's network, with the modes of both.
func (r *Router) Network(ctx context.Context) (route.Network, error) {
	if r.server == nil {
		return r.OwnNetwork(ctx)
	}
	n, err := r.server.network(ctx)
	if err != nil {
		return n, err
	}
	own, err := r.OwnNetwork(ctx)
	if err != nil {
		return n, ctx.Err() // the server answers on its own
	}
	for _, mode := range own.Modes {
		if !slices.Contains(n.Modes, mode) {
			n.Modes = append(slices.Clip(n.Modes), mode)
		}
	}
	return n, nil
}

// ServerNetwork describes the server's network. Without a server it fails with route.ErrUnavailable.
func (r *Router) ServerNetwork(ctx context.Context) (route.Network, error) {
	if r.server == nil {
		return route.Network{}, route.ErrUnavailable
	}
	return r.server.network(ctx)
}

// OwnNetwork describes the own network. Without a network it fails with route.ErrUnavailable.
func (r *Router) OwnNetwork(ctx context.Context) (route.Network, error) {
	return queryOwn(r, func(x route.Router) (route.Network, error) { return x.Network(ctx) })
}
