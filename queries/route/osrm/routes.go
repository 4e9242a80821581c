package osrm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"lieudit/queries/route"
	"lieudit/queries/route/guidance"
	"lieudit/queries/route/routeserver"
	"lieudit/schemas/geo"
)

// routeAnswer is a route of a server.
type routeAnswer struct {
	Distance   float64     `json:"distance"`
	Duration   float64     `json:"duration"`
	WeightName string      `json:"weight_name"`
	Legs       []legAnswer `json:"legs"`
}

type legAnswer struct {
	Distance float64      `json:"distance"`
	Duration float64      `json:"duration"`
	Steps    []stepAnswer `json:"steps"`
}

// stepAnswer is a step: a manoeuvre and the road up to the next one.
type stepAnswer struct {
	Distance      float64        `json:"distance"`
	Duration      float64        `json:"duration"`
	Name          string         `json:"name"`
	Ref           string         `json:"ref"`
	Destinations  string         `json:"destinations"`
	Mode          string         `json:"mode"`
	Geometry      string         `json:"geometry"` // a polyline with six digits
	Maneuver      maneuver       `json:"maneuver"`
	Intersections []intersection `json:"intersections"`

	points []geo.Point // of the geometry
}

type maneuver struct {
	Type     string    `json:"type"`
	Modifier string    `json:"modifier"`
	Exit     int       `json:"exit"`
	Location []float64 `json:"location"`
}

// intersection is where roads meet on a step. Classes are those of the road that leaves it.
type intersection struct {
	Location []float64 `json:"location"`
	Classes  []string  `json:"classes"`
}

// route asks for a route without the roads that are excluded. Steps are asked for in any case: only they have the classes of roads.
// A leg may leave its bound in any direction, so that it equals the cell of a matrix.
func (s *server) route(ctx context.Context, q route.Query, places []place, excluded route.Avoid) (route.Answer, error) {
	options := "&overview=false&steps=true&geometries=polyline6&continue_straight=false"
	if len(places) == 2 && q.Alternatives > 0 {
		options += "&alternatives=" + strconv.Itoa(q.Alternatives)
	}
	a, err := s.ask(ctx, s.requestPath("route", positions(places), options, excluded), s.http.Route)
	if errors.Is(err, errOffRoad) {
		return route.Answer{}, s.offRoad(ctx, places, excluded)
	}
	if err != nil {
		return route.Answer{}, err
	}
	read, err := readAnswer(q, places, a)
	if err == nil {
		err = s.checkWeight(q.Profile, a.Routes[0].WeightName)
	}
	if err != nil {
		return route.Answer{}, err
	}
	return read, nil
}

// checkWeight fails with route.ErrUnsupported if the server's profile does not minimise what the query asks for.
func (s *server) checkWeight(p route.Profile, weightName string) error {
	s.weight.Store(&weightName)
	if (p.Optimization == route.Shortest) != (weightName == "distance") {
		return fmt.Errorf("%w: the profile of the server weighs by %s", route.ErrUnsupported, weightName)
	}
	return nil
}

// offRoad returns the error that names the first place that is too far from a road.
func (s *server) offRoad(ctx context.Context, places []place, excluded route.Avoid) error {
	near, err := s.nearestOf(ctx, places, excluded)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(near, func(w waypoint) bool { return w.Location == nil }); i >= 0 {
		return &route.OffRoadError{Bound: i}
	}
	return errContradiction
}

func positions(places []place) []geo.Point {
	at := make([]geo.Point, len(places))
	for i, p := range places {
		at[i] = p.at
	}
	return at
}

// readAnswer checks an answer and converts it; the result has at least one route.
func readAnswer(q route.Query, places []place, a answer) (read route.Answer, err error) {
	if len(a.Routes) == 0 || len(a.Waypoints) != len(places) {
		return read, &routeserver.BadAnswerError{Reason: "without a route"}
	}
	for i, w := range a.Waypoints {
		access, err := places[i].access(w)
		if err != nil {
			return read, err
		}
		read.Accesses = append(read.Accesses, access)
	}
	if most := 1 + max(0, q.Alternatives); len(a.Routes) > most {
		a.Routes = a.Routes[:most]
	}
	for _, r := range a.Routes {
		if len(r.Legs) != len(places)-1 {
			return read, &routeserver.BadAnswerError{Reason: "with another number of legs"}
		}
		one, err := readRoute(q, r)
		if err != nil {
			return read, err
		}
		read.Routes = append(read.Routes, one)
	}
	return read, nil
}

// readRoute checks a route and converts it.
func readRoute(q route.Query, r routeAnswer) (read route.Route, err error) {
	read = route.Route{Distance: r.Distance, Duration: r.Duration}
	costs := []float64{r.Distance, r.Duration}
	for _, l := range r.Legs {
		leg := route.Leg{Distance: l.Distance, Duration: l.Duration}
		costs = append(costs, l.Distance, l.Duration)
		for i := range l.Steps {
			step := &l.Steps[i]
			if step.points, err = routeserver.DecodePolyline(step.Geometry); err != nil {
				return read, err
			}
			costs = append(costs, step.Distance, step.Duration)
			if q.Geometry {
				read.Geometry = routeserver.AppendPoints(read.Geometry, step.points)
			}
		}
		if q.Steps {
			if leg.Steps, err = readSteps(l.Steps); err != nil {
				return read, err
			}
		}
		read.Legs = append(read.Legs, leg)
	}
	if err := routeserver.CheckCosts(costs...); err != nil {
		return read, err
	}
	guidance.MarkTurnsBack(read.Legs)
	remain := classDistances(r.Legs)
	read.TollDistance = remain[route.Tolls]
	for _, c := range classes {
		if metres := remain[c.kind]; metres > 0 && q.Avoid&c.kind != 0 {
			read.Avoided = append(read.Avoided, route.Avoided{Kind: c.kind, Distance: metres})
		}
	}
	return read, nil
}
