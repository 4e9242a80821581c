package routing

import (
	"context"
	"slices"

	"lieudit/queries/route"
	"lieudit/schemas/body"
)

// Compute finds the route through bounds, and its alternatives.
func (s *Service) Compute(ctx context.Context, c Caller, in body.ComputeRoute) (any, error) {
	bounds, err := s.resolveBounds(ctx, c.Account, slices.Concat([]body.Bound{in.Origin}, in.Waypoints, []body.Bound{in.Destination})...)
	if err != nil {
		return nil, err
	}
	e := encoder{in.Drawing}
	if err := c.reserveMemory(ctx, e.drawingBytes(bounds, 1+in.Alternatives)); err != nil {
		return nil, err
	}
	found, err := s.Router.Route(ctx, route.Query{
		Profile: profileOf(in.TravelBy), Bounds: routeBounds(bounds), Alternatives: in.Alternatives, Geometry: e.wantsGeometry(), Steps: in.Steps,
	})
	if err != nil {
		return s.toAnswer(ctx, c, err, subject{in.Explaining, bounds})
	}
	shown := body.ComputedRoute{
		Envelope: body.OKEnvelope, Bounds: showBounds(bounds, found.Accesses), RoutePath: e.path(found.Routes[0]),
		PolylinePrecision: e.polylinePrecision(), RouteNetwork: s.network(ctx, in.Mode),
	}
	for _, other := range found.Routes[1:] {
		shown.Alternatives = append(shown.Alternatives, e.path(other))
	}
	return shown, nil
}
