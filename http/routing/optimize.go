package routing

import (
	"context"
	"slices"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/tour"
	"lieudit/queries/worker"
	"lieudit/schemas/body"
)

// fixedEnd is the value of start and end for a stop that stays first or last.
const fixedEnd = "fixed"

// Optimize finds the order of stops that costs least, and the route through them in that order.
func (s *Service) Optimize(ctx context.Context, c Caller, in body.OptimizeStops) (any, error) {
	stops, err := s.resolveBounds(ctx, c.Account, in.Stops...)
	if err != nil {
		return nil, err
	}
	e := encoder{in.Drawing}
	if err := c.reserveMemory(ctx, e.drawingBytes(stops, 1)); err != nil {
		return nil, err
	}
	if err := c.reserve(ctx, requestsFor(len(stops))); err != nil {
		return nil, err
	}
	order, isOptimal, err := s.orderStops(ctx, in, routeBounds(stops))
	if err != nil {
		return s.toAnswer(ctx, c, err, subject{in.Explaining, stops})
	}
	ordered := inOrder(stops, order, in.RoundTrip)
	found, err := s.Router.Route(ctx, route.Query{
		Profile: profileOf(in.TravelBy), Bounds: routeBounds(ordered), Geometry: e.wantsGeometry(), Steps: in.Steps,
	})
	if err != nil {
		return s.toAnswer(ctx, c, err, subject{in.Explaining, ordered})
	}
	accesses := make([]route.Access, len(stops))
	for i, stop := range order {
		accesses[stop] = found.Accesses[i]
	}
	return body.Tour{
		Envelope: body.OKEnvelope, Order: order, Optimal: isOptimal, Bounds: showBounds(stops, accesses), RoutePath: e.path(found.Routes[0]),
		PolylinePrecision: e.polylinePrecision(), RouteNetwork: s.network(ctx, in.Mode),
	}, nil
}

// orderStops finds the order with the least duration or distance, as the profile optimizes. It fails with route.ErrNoRoute if no
// order leads through all stops, and with a *route.OffRoadError if that is because a stop is too far from any road.
func (s *Service) orderStops(ctx context.Context, in body.OptimizeStops, stops []route.Bound) (order []int, isOptimal bool, err error) {
	profile := profileOf(in.TravelBy)
	m, err := s.Router.Matrix(ctx, route.MatrixQuery{Profile: profile, Origins: stops, Destinations: stops})
	if err != nil {
		return nil, false, err
	}
	cost := m.Durations
	if profile.Optimization == route.Shortest {
		cost = m.Distances
	}
	options := tour.Options{FixedStart: in.Start == fixedEnd, FixedEnd: in.End == fixedEnd, RoundTrip: in.RoundTrip}
	order, isOptimal, err = tour.Solve(cost, options, func(done time.Duration) error { return worker.Yield(ctx, done) })
	if err == nil && order == nil {
		err = route.ErrNoRoute
		if i := slices.Index(m.OriginAccesses, route.Access{}); i >= 0 {
			err = &route.OffRoadError{Bound: i}
		}
	}
	return order, isOptimal, err
}

// inOrder returns the bounds in an order, with the first again at the end of a round trip.
func inOrder(stops []bound, order []int, isRoundTrip bool) []bound {
	sorted := make([]bound, 0, len(order)+1)
	for _, stop := range order {
		sorted = append(sorted, stops[stop])
	}
	if isRoundTrip {
		sorted = append(sorted, sorted[0])
	}
	return slices.Clip(sorted)
}
