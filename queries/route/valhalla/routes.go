package valhalla

import (
	"context"
	"errors"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/guidance"
	"lieudit/queries/route/routeserver"
)

// mostInRoute is how many bounds one request has: the server's default limit for cars.
const mostInRoute = 20

// routeQuestion is a request for a route.
type routeQuestion struct {
	costing
	Locations   []location `json:"locations"`
	Alternates  int        `json:"alternates,omitempty"`
	Units       string     `json:"units"`
	ShapeFormat string     `json:"shape_format"`
	Directions  string     `json:"directions_type"`
}

// routeAnswer is the best route and the alternates to it.
type routeAnswer struct {
	Trip       trip `json:"trip"`
	Alternates []struct {
		Trip trip `json:"trip"`
	} `json:"alternates"`
}

type trip struct {
	Legs []legAnswer `json:"legs"`
}

type legAnswer struct {
	Summary   summary    `json:"summary"`
	Shape     string     `json:"shape"` // a polyline with six digits
	Maneuvers []maneuver `json:"maneuvers"`
}

type summary struct {
	Time   float64 `json:"time"`   // seconds
	Length float64 `json:"length"` // kilometres
}

const metresPerKilometre = 1_000

// Route implements route.Router.
func (r *Router) Route(ctx context.Context, q route.Query) (route.Answer, error) {
	c, err := costingOf(q.Profile)
	if err != nil {
		return route.Answer{}, err
	}
	places, err := r.locate(ctx, c, q.Bounds)
	if err != nil {
		return route.Answer{}, err
	}
	if err := firstOffRoad(places); err != nil {
		return route.Answer{}, err
	}
	trips, err := r.askTrips(ctx, c, q, places)
	if err != nil {
		return route.Answer{}, err
	}
	var a route.Answer
	for _, p := range places {
		a.Accesses = append(a.Accesses, p.access)
	}
	for _, t := range trips {
		read, err := readRoute(q, t)
		if err != nil {
			return route.Answer{}, err
		}
		a.Routes = append(a.Routes, read)
	}
	return a, nil
}

// askTrips asks for the route through places and, between two, for the alternates. The legs of many places come in parts.
func (r *Router) askTrips(ctx context.Context, c costing, q route.Query, places []place) ([]trip, error) {
	var whole trip
	for first := 0; first < len(places)-1; first += mostInRoute - 1 {
		part := places[first:min(first+mostInRoute, len(places))]
		question := routeQuestion{costing: c, Units: "kilometers", ShapeFormat: "polyline6", Directions: "maneuvers"}
		if len(places) == 2 {
			question.Alternates = max(0, q.Alternatives)
		}
		for _, p := range part {
			question.Locations = append(question.Locations, locationOf(p.access.Point))
		}
		var answer routeAnswer
		err := r.ask(ctx, "/route", question, r.http.Route, &answer)
		if errors.Is(err, errOffRoad) { // the places are on roads, but these are not connected
			err = route.ErrNoRoute
		}
		if err != nil {
			return nil, err
		}
		if len(answer.Trip.Legs) != len(part)-1 {
			return nil, &routeserver.BadAnswerError{Reason: "with another number of legs"}
		}
		whole.Legs = append(whole.Legs, answer.Trip.Legs...)
		if len(places) == 2 {
			return alternates(answer, q.Alternatives)
		}
	}
	return []trip{whole}, nil
}

// alternates returns the route between two places and at most n alternates.
func alternates(a routeAnswer, most int) ([]trip, error) {
	trips := []trip{a.Trip}
	for _, other := range a.Alternates {
		if len(other.Trip.Legs) != 1 {
			return nil, &routeserver.BadAnswerError{Reason: "with another number of legs"}
		}
		if len(trips) <= most {
			trips = append(trips, other.Trip)
		}
	}
	return trips, nil
}

// readRoute checks a route and converts it.
func readRoute(q route.Query, t trip) (read route.Route, err error) {
	remain := map[route.Avoid]float64{}
	for _, l := range t.Legs {
		points, err := routeserver.DecodePolyline(l.Shape)
		if err != nil {
			return read, err
		}
		leg := route.Leg{Distance: l.Summary.Length * metresPerKilometre, Duration: l.Summary.Time}
		if err := routeserver.CheckCosts(leg.Distance, leg.Duration); err != nil {
			return read, err
		}
		if err := checkManeuvers(l.Maneuvers, len(points)); err != nil {
			return read, err
		}
		read.Distance, read.Duration = read.Distance+leg.Distance, read.Duration+leg.Duration
		if q.Geometry {
			read.Geometry = routeserver.AppendPoints(read.Geometry, points)
		}
		if q.Steps {
			leg.Steps = readSteps(l.Maneuvers, points)
		}
		for _, m := range l.Maneuvers {
			m.addKinds(remain)
		}
		read.Legs = append(read.Legs, leg)
	}
	guidance.MarkTurnsBack(read.Legs)
	read.TollDistance = remain[route.Tolls]
	for _, o := range avoidOptions {
		if metres := remain[o.kind]; metres > 0 && q.Avoid&o.kind != 0 {
			read.Avoided = append(read.Avoided, route.Avoided{Kind: o.kind, Distance: metres})
		}
	}
	return read, nil
}

// checkManeuvers checks that manoeuvres lie on a shape of n positions, in their order.
func checkManeuvers(all []maneuver, points int) error {
	isWrong := func(m maneuver) bool { return m.Begin < 0 || m.Begin > m.End || m.End >= points }
	if len(all) == 0 || slices.ContainsFunc(all, isWrong) {
		return &routeserver.BadAnswerError{Reason: "manoeuvres beside the route"}
	}
	for _, m := range all {
		if err := routeserver.CheckCosts(m.Time, m.Length); err != nil {
			return err
		}
	}
	return nil
}
