package routertest

import (
	"context"
	"errors"
	"fmt"

	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// boundRules are the rules about where a bound meets the network.
func boundRules() []rule {
	return []rule{
		{"a bound at a corner is reached by any of its roads", atBothCorners("0A AB@100.5", "A B")},
		{"a bound on a junction is reached by any of its roads", atBothCorners("0A B", "A")},
		{"a position on a motorway meets the motorway", checkMotorwayPosition},
		{"nobody steps from a bridge onto the street below", checkBelowBridge},
		{"no bound is moved onto a ferry", checkFerryBound},
		{"the first step tells of the road that is driven", checkFirstStep},
		{"an address on a junction begins and ends with the road that is driven", checkOwnStreetAtJunction},
		{"a stop between two carriageways is left from where it was reached", checkStopAccess},
		{"within a street that is only entered the way leads along it", checkAlongPocket},
		{"a street that is only entered is left from the nearest road that leads away", func(ctx context.Context, s *suite) error {
			return checkMoved(ctx, s, "pocket", "YZ 0A", "X 0A", 0)
		}},
		{"a street that is only entered leads back to its beginning from the nearest road that leads there", func(ctx context.Context, s *suite) error {
			return checkMoved(ctx, s, "pocket", "XY@80 XY@30", "X XY@30", 0)
		}},
		{"a street that is only left leads into the town", func(ctx context.Context, s *suite) error {
			return checkMoved(ctx, s, "outlet", "YZ 0A", "YZ 0A", -1)
		}},
		{"a street that is only left is reached at the nearest road to which a way leads", func(ctx context.Context, s *suite) error {
			return checkMoved(ctx, s, "outlet", "0A YZ", "0A X", 1)
		}},
		{"a stop in a street that is only entered does not end the route", checkPocketStop},
		{"a cell of a matrix is the route in streets that are only entered or only left", checkPocketCells},
		{"a cell of a matrix and the nearest are the route within private roads", checkYardCells},
		{"from a street that is only entered the nearest are all that can be reached", checkPocketNearest},
	}
}

// atBothCorners is a rule about two quarters that differ in the order of their roads.
func atBothCorners(stops, path string) func(context.Context, *suite) error {
	return func(ctx context.Context, s *suite) error {
		for _, quarter := range []string{"corner", "othercorner"} {
			if err := (journey{quarter: quarter, stops: stops, path: path}).check(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", quarter, err)
			}
		}
		return nil
	}
}

// checkMotorwayPosition asks from a position 2 m next to a motorway that has a street 38 m away.
func checkMotorwayPosition(ctx context.Context, s *suite) error {
	bounds, err := s.bounds("motorway", "PQ BE")
	if err != nil {
		return err
	}
	bounds[0].Point = offset(bounds[0].Point, 0, 2)
	a, err := s.router.Route(ctx, route.Query{Profile: byCar, Bounds: bounds})
	if err == nil && a.Accesses[0].Street != "Autoroute de la Ville" {
		err = fmt.Errorf("got %+v", a.Accesses[0])
	}
	return err
}

// checkBelowBridge asks for routes to the street from a step next to the bridge above it, and to the bridge from a step next to the
// street below: each is the nearest road there, though the other would be the shorter way.
func checkBelowBridge(ctx context.Context, s *suite) error {
	const step = 2.5
	for _, c := range []struct {
		stops       string
		east, south float64
		street      string
	}{
		{"N AB@50", step, 0, "Rue sous le Pont"}, {"N AB@50", -step, 0, "Rue sous le Pont"},
		{"0A AB@50", 0, step, "Rue du Pont"}, {"B AB@50", 0, -step, "Rue du Pont"},
	} {
		bounds, err := s.bounds("bridge", c.stops)
		if err != nil {
			return err
		}
		bounds[1].Point = offset(bounds[1].Point, c.east, c.south)
		a, err := s.router.Route(ctx, route.Query{Profile: byCar, Bounds: bounds})
		if err != nil {
			return err
		}
		if got := a.Accesses[1].Street; got != c.street {
			return fmt.Errorf("%v, %v metres from the crossing: got %s, want %s", c.east, c.south, got, c.street)
		}
	}
	return nil
}

func checkFerryBound(ctx context.Context, s *suite) error {
	bounds, err := s.bounds("ferry", "AB@40 0A")
	if err != nil {
		return err
	}
	a, err := s.router.Route(ctx, route.Query{Profile: byCar, Bounds: bounds})
	if err == nil && a.Accesses[0].Distance < 100 {
		err = fmt.Errorf("got %+v", a.Accesses[0])
	}
	return err
}

func checkFirstStep(ctx context.Context, s *suite) error {
	for _, quarter := range []string{"corner", "othercorner"} {
		a, err := s.find(ctx, quarter, "B 0A", 0)
		if err != nil {
			return err
		}
		if step := a.Routes[0].Legs[0].Steps[0]; step.Name != "Rue de l'Équerre" || step.Distance < 100 {
			return fmt.Errorf("%s: got %s for %.1f m", quarter, step.Name, step.Distance)
		}
	}
	return nil
}

// checkOwnStreetAtJunction asks for routes from and to an address at the end of its street, which is not driven.
func checkOwnStreetAtJunction(ctx context.Context, s *suite) error {
	for _, c := range []struct{ quarter, street, stops string }{
		{"corner", "R MONTEE", "B 0A"}, {"cornerout", "R DESCENTE", "0A B"},
	} {
		q, err := journey{quarter: c.quarter, stops: c.stops}.query(s)
		if err != nil {
			return err
		}
		for i := range q.Bounds {
			if q.Bounds[i].Point == s.points[c.quarter+".B"] {
				q.Bounds[i].IsAddress, q.Bounds[i].Street = true, c.street
			}
		}
		a, err := s.findWhole(ctx, q)
		if err != nil {
			return err
		}
		for _, step := range a.Routes[0].Legs[0].Steps {
			if step.Name != "Rue de l'Équerre" && step.Name != "Rue de l'Angle" {
				return fmt.Errorf("%s: a step tells of %s for %.1f m", c.quarter, step.Name, step.Distance)
			}
		}
	}
	return nil
}

// checkStopAccess stops between two carriageways: the one is nearer to the way there, the other to the way back.
func checkStopAccess(ctx context.Context, s *suite) error {
	q, err := journey{quarter: "dual", stops: "0A AB 0A"}.query(s)
	if err != nil {
		return err
	}
	q.Bounds[1].Point = offset(q.Bounds[1].Point, 0, 10)
	a, err := s.findWhole(ctx, q)
	if err != nil {
		return err
	}
	arrival, departure := a.Routes[0].Legs[0].Steps, a.Routes[0].Legs[1].Steps
	reached, left := arrival[len(arrival)-1].Maneuver.Point, departure[0].Maneuver.Point
	if geo.Distance(reached, left) > 3 || geo.Distance(reached, a.Accesses[1].Point) > 3 {
		return fmt.Errorf("it is reached at %v and left at %v, and the answer tells %+v", reached, left, a.Accesses[1])
	}
	return nil
}

func checkAlongPocket(ctx context.Context, s *suite) error {
	return checkMoved(ctx, s, "pocket", "XY@30 XY@80", "XY@30 XY@80", -1)
}

// checkMoved asks for a route between two positions and wants it between others, along a straight line. moved is the index of the bound
// that has to give way, or -1.
func checkMoved(ctx context.Context, s *suite, quarter, stops, want string, moved int) error {
	a, err := s.find(ctx, quarter, stops, 0)
	if err != nil {
		return err
	}
	line, err := s.positions(quarter, want)
	if err != nil {
		return err
	}
	for i, access := range a.Accesses {
		if geo.Distance(access.Point, line[i]) > 3 || (access.Distance > 3) != (i == moved) {
			return fmt.Errorf("bound %d meets the network at %+v, want %v", i, access, line[i])
		}
	}
	if got, want := a.Routes[0].Distance, length(line); !s.isNear(got, want) {
		return fmt.Errorf("got %.1f m, want %.1f m", got, want)
	}
	return nil
}

func checkPocketStop(ctx context.Context, s *suite) error {
	a, err := s.find(ctx, "pocket", "0A XY@60 0A@20", 0)
	if err != nil {
		return err
	}
	line, err := s.positions("pocket", "0A X 0A@20")
	if err != nil {
		return err
	}
	if got, want := a.Routes[0].Distance, length(line); !s.isNear(got, want) {
		return fmt.Errorf("got %.1f m, want %.1f m by the end of the street that leads both ways", got, want)
	}
	return nil
}

// pocketBounds are bounds in and around streets that are only entered or only left.
func (s *suite) pocketBounds() (bounds []route.Bound, err error) {
	for _, quarter := range []string{"pocket", "outlet"} {
		b, err2 := s.bounds(quarter, "0A AX@90 XY@30 XY@80 YZ")
		bounds, err = append(bounds, b...), errors.Join(err, err2)
	}
	return bounds, err
}

func checkPocketCells(ctx context.Context, s *suite) error {
	bounds, err := s.pocketBounds()
	if err != nil {
		return err
	}
	return s.compareCells(ctx, byCar, bounds, bounds)
}

// checkYardCells asks about bounds within private roads and around them.
func checkYardCells(ctx context.Context, s *suite) error {
	bounds, err := s.bounds("yard", "AP QB PQ@20 0A AB@70 A Q P")
	if err != nil {
		return err
	}
	if err := s.compareCells(ctx, byCar, bounds, bounds); err != nil {
		return err
	}
	a, err := s.find(ctx, "yard", "AP QB", 0)
	if err != nil {
		return err
	}
	n, err := s.router.Nearest(ctx, route.NearestQuery{Profile: byCar, Origin: bounds[0], Destinations: bounds[1:2], Limit: 1})
	if err == nil && (len(n.Found) != 1 || !s.isNear(n.Found[0].Distance, a.Routes[0].Distance)) {
		err = fmt.Errorf("the nearest is %+v, want %.1f m", n.Found, a.Routes[0].Distance)
	}
	return err
}

func checkPocketNearest(ctx context.Context, s *suite) error {
	bounds, err := s.pocketBounds()
	if err != nil {
		return err
	}
	for i, origin := range bounds {
		n, err := s.router.Nearest(ctx, route.NearestQuery{Profile: byCar, Origin: origin, Destinations: bounds, Limit: len(bounds)})
		if err != nil {
			return err
		}
		if len(n.Found) != len(bounds) {
			return fmt.Errorf("from %d: %d of %d are found", i, len(n.Found), len(bounds))
		}
	}
	return nil
}
