// Package live holds the road network that the service answers from, and is the route.Router on it. Swap replaces the network at
// any time without stopping queries. Its one constraint: a network is unmapped when its last reader is done, never before; one
// that proves to be damaged answers no more.
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

// Network holds the served network, or none. The zero Network holds none. It is safe for concurrent use.
type Network struct {
	holder mappedfile.Holder[*engine.Engine]
}

var _ route.Router = (*Network)(nil)

// Swap serves a network from now on and owns it: it is closed after a later Swap or Withdraw. Nil serves none.
func (n *Network) Swap(next *network.Network) {
	if next == nil {
		n.holder.Withdraw(nil)
		return
	}
	n.holder.Swap(next, engine.New(next))
}

// Withdraw stops serving. Questions fail with route.ErrUnavailable, for that reason, until the next Swap.
func (n *Network) Withdraw(reason error) { n.holder.Withdraw(reason) }

// ask runs a question on the served network.
func ask[A any](n *Network, question func(*engine.Engine) (A, error)) (A, error) {
	answer, err := mappedfile.Query(&n.holder, question)
	if errors.Is(err, mappedfile.ErrNone) {
		err = fmt.Errorf("%w: %w", route.ErrUnavailable, err)
	}
	return answer, err
}

// Route implements route.Router.
func (n *Network) Route(ctx context.Context, q route.Query) (route.Answer, error) {
	return ask(n, func(e *engine.Engine) (route.Answer, error) { return e.Route(ctx, q) })
}

// Matrix implements route.Router.
func (n *Network) Matrix(ctx context.Context, q route.MatrixQuery) (route.Matrix, error) {
	return ask(n, func(e *engine.Engine) (route.Matrix, error) { return e.Matrix(ctx, q) })
}

// Nearest implements route.Router.
func (n *Network) Nearest(ctx context.Context, q route.NearestQuery) (route.Nearest, error) {
	return ask(n, func(e *engine.Engine) (route.Nearest, error) { return e.Nearest(ctx, q) })
}

// Isochrone implements route.Router.
func (n *Network) Isochrone(ctx context.Context, q route.IsochroneQuery) (route.Isochrone, error) {
	return ask(n, func(e *engine.Engine) (route.Isochrone, error) { return e.Isochrone(ctx, q) })
}

// Network implements route.Router.
func (n *Network) Network(ctx context.Context) (route.Network, error) {
	return ask(n, func(e *engine.Engine) (route.Network, error) { return e.Network(ctx) })
}
