package routing

import (
	"context"

	"lieudit/queries/route"
)

// NoRouter is a router without a network: every method fails with route.ErrUnavailable.
type NoRouter struct{}

// Route implements route.Router.
func (NoRouter) Route(context.Context, route.Query) (route.Answer, error) {
	return route.Answer{}, route.ErrUnavailable
}

// Matrix implements route.Router.
func (NoRouter) Matrix(context.Context, route.MatrixQuery) (route.Matrix, error) {
	return route.Matrix{}, route.ErrUnavailable
}

// Nearest implements route.Router.
func (NoRouter) Nearest(context.Context, route.NearestQuery) (route.Nearest, error) {
	return route.Nearest{}, route.ErrUnavailable
}

// Isochrone implements route.Router.
func (NoRouter) Isochrone(context.Context, route.IsochroneQuery) (route.Isochrone, error) {
	return route.Isochrone{}, route.ErrUnavailable
}

// Network implements route.Router.
func (NoRouter) Network(context.Context) (route.Network, error) {
	return route.Network{}, route.ErrUnavailable
}
