package routing

import (
	"context"
	"slices"

	"lieudit/queries/route"
	"lieudit/schemas/body"
)

// Nearest finds the destinations that are nearest to an origin. Destinations that cannot be reached are
// left out.
func (s *Service) Nearest(ctx context.Context, c Caller, in body.FindNearest) (any, error) {
	origins, err := s.resolveBounds(ctx, c.Account, in.Origin)
	if err != nil {
		return nil, err
	}
	destinations, release, err := s.destinations(ctx, c.Account, in.Destinations, in.SiteFilter())
	if err != nil {
		return nil, err
	}
	defer release()
	if len(destinations) == 0 {
		return body.NoResultsAnswer, nil
	}
	if err := c.reserveMemory(ctx, matrixBytes(1, len(destinations))); err != nil {
		return nil, err
	}
	found, err := s.Router.Nearest(ctx, route.NearestQuery{
		Profile: profileOf(in.TravelBy), Origin: origins[0].Bound, Destinations: routeBounds(destinations), Limit: in.Limit,
	})
	about := subject{in.Explaining, origins}
	if err != nil {
		return s.toAnswer(ctx, c, err, about)
	}
	if len(found.Found) == 0 {
		if in.SiteFilter() == nil {
			about.bounds = slices.Concat(origins, destinations)
		}
		return about.noRoute(body.NoWayReason, about.bounds...), nil
	}
	shown := body.Nearest{Envelope: body.OKEnvelope, Origin: origins[0].show(found.Access), RouteNetwork: s.network(ctx, in.Mode)}
	for _, d := range found.Found {
		result := body.NearestDestination{ResolvedBound: destinations[d.Index].show(d.Access), Distance: roundInt(d.Distance), Duration: roundInt(d.Duration)}
		if in.SiteFilter() == nil {
			result.Index = &d.Index
		}
		shown.Results = append(shown.Results, result)
	}
	return shown, nil
}
