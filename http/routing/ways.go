package routing

import (
	"context"
	"errors"

	"lieudit/queries/route"
	sites "lieudit/schemas/locations"
)

// Way is the duration and length of the way to a site by car, in seconds and metres.
type Way struct{ Duration, Distance int }

// WaysByCar returns the fastest way from a centre to each of the sites, which must have a position; nil for a site that
// cannot be reached. Its error can be answered to the client as it is.
func (s *Service) WaysByCar(ctx context.Context, center route.Bound, to []sites.Site) ([]*Way, error) {
	ways := make([]*Way, len(to))
	if len(to) == 0 {
		return ways, nil
	}
	bounds, err := s.siteBounds(ctx, "", to...)
	if err != nil {
		return nil, err
	}
	destinations := routeBounds(bounds)
	found, err := s.Router.Nearest(ctx, route.NearestQuery{
		Profile: route.Profile{Mode: route.Car, Optimization: route.Fastest}, Origin: center, Destinations: destinations, Limit: len(destinations),
	})
	if _, isOffRoad := errors.AsType[*route.OffRoadError](err); isOffRoad {
		return ways, nil
	}
	if err != nil {
		_, err = s.toAnswer(ctx, Caller{Part: "query"}, err, subject{})
		return nil, err
	}
	for _, d := range found.Found {
		ways[d.Index] = &Way{roundInt(d.Duration), roundInt(d.Distance)}
	}
	return ways, nil
}
