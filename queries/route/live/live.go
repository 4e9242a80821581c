// Package live is the route.Router on the road network file that the service uses now. Swap replaces the file at any time;
// queries that run continue with the old one. Its one constraint: a file is unmapped when its last query is done, never before.
// A file that a query finds damaged is not used any more: mappedfile.Holder sees to both.
//
//	datafile watcher ── Swap, Withdraw ──► Network ── mappedfile.Query ──► engine.Engine
//	                                          ▲
//	http/api ── route.Router ─────────────────┘
package live

import (
	"context"
	"errors"
	"fmt"

	"lieudit/queries/mappedfile"
	"lieudit/queries/route"
	"lieudit/queries/route/engine"
	"lieudit/queries/route/network"
)

// Network is a route.Router on the file of the last Swap. The zero Network has none. While there is none, every query fails with
// route.ErrUnavailable. It is safe for concurrent use.
type Network struct {
	holder mappedfile.Holder[*engine.Engine]
}

var _ route.Router = (*Network)(nil)

// Swap answers queries from next from now on and owns it: next is closed after a later Swap or Withdraw, when its last query is
// done. A nil next is Withdraw without a reason.
func (n *Network) Swap(next *network.Network) {
	if next == nil {
		n.holder.Withdraw(nil)
		return
	}
	n.holder.Swap(next, engine.New(next))
}

// Withdraw stops answering. Queries fail with route.ErrUnavailable, which wraps the reason, until the next Swap.
func (n *Network) Withdraw(reason error) { n.holder.Withdraw(reason) }

// queryServed runs a query on the engine of the current network, and keeps the network mapped until the query returns.
func queryServed[A any](n *Network, query func(*engine.Engine) (A, error)) (A, error) {
	answer, err := mappedfile.Query(&n.holder, query)
	if errors.Is(err, mappedfile.ErrNone) {
		err = fmt.Errorf("%w: %w", route.ErrUnavailable, err)
	}
	return answer, err
}

// Route implements route.Router.
func (n *Network) Route(ctx context.Context, q route.Query) (route.Answer, error) {
	return queryServed(n, func(e *engine.Engine) (route.Answer, error) { return e.Route(ctx, q) })
}

// Matrix implements route.Router.
func (n *Network) Matrix(ctx context.Context, q route.MatrixQuery) (route.Matrix, error) {
	return queryServed(n, func(e *engine.Engine) (route.Matrix, error) { return e.Matrix(ctx, q) })
}

// Nearest implements route.Router.
func (n *Network) Nearest(ctx context.Context, q route.NearestQuery) (route.Nearest, error) {
	return queryServed(n, func(e *engine.Engine) (route.Nearest, error) { return e.Nearest(ctx, q) })
}

// Isochrone implements route.Router.
func (n *Network) Isochrone(ctx context.Context, q route.IsochroneQuery) (route.Isochrone, error) {
	return queryServed(n, func(e *engine.Engine) (route.Isochrone, error) { return e.Isochrone(ctx, q) })
}

// Network implements route.Router.
func (n *Network) Network(ctx context.Context) (route.Network, error) {
	return queryServed(n, func(e *engine.Engine) (route.Network, error) { return e.Network(ctx) })
}
