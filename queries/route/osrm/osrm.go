// Package osrm finds routes on servers of the program osrm-routed (https://project-osrm.org), one for each mode. It is a
// route.Router. A question that a server cannot answer as route.Router promises fails with route.ErrUnsupported, so that another
// router can answer it; it never gets a different kind of answer.
//
//	Bound… ── locate ──► place… ── relaxations: a set of roads to exclude ──► /route, /table ──► answer ── checks ──► route.Answer
//	  /nearest, by the street's name          the largest set that has a way                        route.Matrix, route.Nearest
//
// OSRM excludes strictly: it may leave no way at all. So it is asked again with fewer exclusions, and the classes of the roads show
// what could not be avoided. A server knows only the combinations of its profile; the others are not supported, and neither are
// isochrones, nor the shortest route where the profile weighs by time.
package osrm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
)

// modes are the modes in the order in which they are listed.
var modes = [...]route.Mode{route.Car, route.Foot, route.Bike}

// Router asks the servers. It is safe for concurrent use.
type Router struct {
	byMode map[route.Mode]*server
}

// New returns a router on servers, given by their URLs: each has the roads of one mode. It sends no request before the first
// question. now returns elapsed time.
func New(servers map[route.Mode]string, now func() time.Time) *Router {
	r := &Router{byMode: map[route.Mode]*server{}}
	for mode, serverURL := range servers {
		r.byMode[mode] = &server{mode: mode, http: routeserver.New(serverURL, now)}
	}
	return r
}

// SetTimeouts replaces routeserver.DefaultTimeouts. It must be called before the first question.
func (r *Router) SetTimeouts(t routeserver.Timeouts) {
	for _, s := range r.byMode {
		s.http.Timeouts = t
	}
}

// serverFor returns the server for a mode, or route.ErrUnsupported.
func (r *Router) serverFor(mode route.Mode) (*server, error) {
	s, ok := r.byMode[mode]
	if !ok {
		return nil, fmt.Errorf("%w: no server for %s", route.ErrUnsupported, mode)
	}
	return s, nil
}

// Route implements route.Router. The same roads are excluded on all legs: if one leg needs them, the others may use them too.
func (r *Router) Route(ctx context.Context, q route.Query) (route.Answer, error) {
	s, err := r.serverFor(q.Mode)
	if err != nil {
		return route.Answer{}, err
	}
	places, err := s.locate(ctx, q.Bounds)
	if err != nil {
		return route.Answer{}, err
	}
	var answer route.Answer
	err = relax(q.Profile, func(excluded route.Avoid) error {
		answer, err = s.route(ctx, q, places, excluded)
		return err
	})
	return answer, err
}

// Isochrone fails with route.ErrUnsupported: OSRM has no isochrones.
func (r *Router) Isochrone(context.Context, route.IsochroneQuery) (route.Isochrone, error) {
	return route.Isochrone{}, route.ErrUnsupported
}

// Network lists the modes whose servers answer. Its date is the oldest of theirs, if their data was extracted with a data_version
// that is a time (osrm-extract --data_version osmosis). Its errors name the mode, unlike those of questions.
func (r *Router) Network(ctx context.Context) (route.Network, error) {
	n := route.Network{Engine: "osrm", Attribution: route.OSMAttribution}
	err := fmt.Errorf("%w: no server is set", route.ErrUnavailable)
	for _, mode := range modes {
		s, ok := r.byMode[mode]
		if !ok {
			continue
		}
		var date time.Time
		if date, err = s.dataDate(ctx); err != nil {
			err = fmt.Errorf("osrm, %s: %w", mode, err)
			if ctx.Err() != nil {
				return n, err
			}
			continue
		}
		n.Modes = append(n.Modes, mode)
		if n.Date.IsZero() || date.Before(n.Date) {
			n.Date = date
		}
	}
	if len(n.Modes) > 0 {
		return n, nil
	}
	return n, err
}

// exclusions are all sets of kinds of roads to exclude, the larger first. Among sets of one size, the first gives up ferries, which
// are the hardest to avoid.
var exclusions = [...]route.Avoid{
	route.Tolls | route.Motorways | route.Ferries,
	route.Tolls | route.Motorways, route.Tolls | route.Ferries, route.Motorways | route.Ferries,
	route.Tolls, route.Motorways, route.Ferries,
	0,
}

// relax calls ask with the profile's avoid set and then with smaller ones, until there is a route, or an error that does not depend
// on the exclusions. A server that does not know the whole set is not asked for less.
func relax(p route.Profile, ask func(excluded route.Avoid) error) error {
	wanted := excludable(p)
	for _, excluded := range exclusions {
		if excluded&^wanted != 0 {
			continue
		}
		err := ask(excluded)
		isMissing := errors.Is(err, route.ErrNoRoute) || errors.As(err, new(*route.OffRoadError))
		isUnknown := errors.Is(err, route.ErrUnsupported) && excluded != wanted
		if excluded == 0 || !isMissing && !isUnknown {
			return err
		}
	}
	return route.ErrNoRoute
}

// excludable is the part of the profile's avoid set that applies to a mode: only cars use motorways and pay tolls.
func excludable(p route.Profile) route.Avoid {
	if p.Mode == route.Car {
		return p.Avoid
	}
	return p.Avoid & route.Ferries
}
