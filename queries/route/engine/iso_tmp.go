package engine

import (
	"context"
	"lieudit/queries/route"
)

func (e *Engine) Isochrone(ctx context.Context, q route.IsochroneQuery) (a route.Isochrone, err error) {
	return a, route.ErrUnsupported
}
