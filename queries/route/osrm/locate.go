package osrm

import (
	"context"
	"errors"
	"strconv"

	"golang.org/x/sync/errgroup"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
	"lieudit/queries/route/streetname"
	"lieudit/schemas/geo"
)

const (
	nearRoads = 50 // roads near a bound among which its street is looked for
	parallel  = 8  // concurrent requests for one question
)

// place is a bound and the position that stands for it in requests.
type place struct {
	route.Bound
	at geo.Point
}

// locate finds the positions of bounds. A bound whose street is not nearest to it, but costs less than any other road
// (route.OtherNameCost), is moved onto its street; the others stay where they are. Nothing is asked for bounds without a street.
func (s *server) locate(ctx context.Context, bounds []route.Bound) ([]place, error) {
	places := make([]place, len(bounds))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, b := range bounds {
		places[i] = place{b, b.Point}
		if b.Street == "" {
			continue
		}
		group.Go(func() error {
			near, err := s.nearest(groupCtx, b.Point, nearRoads, 0)
			if err == nil {
				places[i].at, err = ownRoad(b, near)
			}
			if errors.Is(err, errOffRoad) {
				return nil // the request for the answer reports this error too
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, firstError(ctx, err)
	}
	return places, nil
}

// firstError returns the error of ctx instead of the errors that it caused.
func firstError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// ownRoad returns the position on the bound's street, if that is the best of the roads near it, otherwise the bound's position.
func ownRoad(b route.Bound, near []waypoint) (geo.Point, error) {
	key := streetname.Fold(b.Street)
	best, bestCost := b.Point, -1.0
	for i, w := range near {
		p, err := w.point()
		if err != nil {
			return p, err
		}
		cost, isOwn := geo.Distance(b.Point, p), key != "" && streetname.Fold(w.Name) == key
		if !isOwn {
			cost += route.OtherNameCost
		}
		if bestCost < 0 || cost < bestCost {
			best, bestCost = b.Point, cost
			if isOwn && i > 0 {
				best = p
			}
		}
	}
	return best, nil
}

// nearest asks for the roads nearest to a position. It fails with errOffRoad if no road is near.
func (s *server) nearest(ctx context.Context, p geo.Point, number int, excluded route.Avoid) ([]waypoint, error) {
	options := "&number=" + strconv.Itoa(number)
	a, err := s.ask(ctx, s.requestPath("nearest", []geo.Point{p}, options, excluded), s.http.Route)
	return a.Waypoints, err
}

// nearestOf asks for the road nearest to each place, of those that are not excluded. The waypoint of a place that is too far from
// any road has no location.
func (s *server) nearestOf(ctx context.Context, places []place, excluded route.Avoid) ([]waypoint, error) {
	found := make([]waypoint, len(places))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, p := range places {
		group.Go(func() error {
			near, err := s.nearest(groupCtx, p.at, 1, excluded)
			if errors.Is(err, errOffRoad) {
				return nil
			}
			if err == nil && len(near) == 0 {
				err = &routeserver.BadAnswerError{Reason: "without a road"}
			}
			if err == nil {
				found[i] = near[0]
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, firstError(ctx, err)
	}
	return found, nil
}

// access returns where a place meets the network.
func (p place) access(w waypoint) (route.Access, error) {
	at, err := w.point()
	if err != nil {
		return route.Access{}, err
	}
	isOwn := p.Street != "" && streetname.Same(p.Street, w.Name)
	return route.Access{Point: at, Distance: geo.Distance(p.Point, at), Street: w.Name, IsOnOwn: isOwn}, nil
}
