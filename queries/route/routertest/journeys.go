package routertest

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// journey is a rule about the way that a route takes in one quarter.
type journey struct {
	rule    string
	quarter string
	mode    route.Mode // Car unless set
	avoid   route.Avoid
	stops   string             // positions of the bounds
	path    string             // positions that the route passes, between the first stop and the last
	least   route.Optimization // Fastest unless set
}

// journeys are the rules about ways.
var journeys = []journey{
	{rule: "a one-way street is driven in its direction", quarter: "oneway", stops: "0A BE", path: "A B"},
	{rule: "a one-way street is not driven against its direction", quarter: "oneway", stops: "BE 0A", path: "B C D A"},
	{rule: "on one road the way leads straight to the end", quarter: "oneway", stops: "0A@20 0A@80"},
	{rule: "on one road the way leads straight back", quarter: "oneway", stops: "0A@80 0A@20"},
	{rule: "on a one-way street the way back leads around", quarter: "oneway", stops: "AB@80 AB@20", path: "B C D A"},
	{rule: "a forbidden turn is not taken", quarter: "restricted", stops: "0A DA", path: "A B C D"},
	{rule: "a forbidden turn is free from other roads", quarter: "restricted", stops: "BE DA", path: "B A"},
	{rule: "a mandatory turn forbids the others", quarter: "straight", stops: "0A AN", path: "A B C D A"},
	{rule: "a mandatory turn can be taken", quarter: "straight", stops: "0A BE", path: "A B"},
	{rule: "a turn forbidden by way of a road is not taken", quarter: "byway", stops: "0A BC", path: "A D C"},
	{rule: "a turn forbidden by way of a road is free to who begins on that road", quarter: "byway", stops: "AB BC", path: "B"},
	{rule: "a mandatory turn by way of a road forbids the others", quarter: "onlybyway", stops: "0A BC", path: "A D C"},
	{rule: "a roundabout is driven counter-clockwise", quarter: "roundabout", stops: "0w nN", path: "w s e n"},
	{rule: "a ferry is taken where there is no other way", quarter: "ferry", stops: "0A BC", path: "A B"},
	{rule: "an avoided ferry is taken where there is no other way", quarter: "ferry", avoid: route.Ferries, stops: "0A BC", path: "A B"},
	{rule: "a toll road is taken when it is faster", quarter: "toll", stops: "0A BE", path: "A B"},
	{rule: "an avoided toll road is not taken", quarter: "toll", avoid: route.Tolls, stops: "0A BE", path: "A D C B"},
	{rule: "toll roads are avoided where they can be, though not all of them can", quarter: "toll", avoid: route.Tolls, stops: "0A FG", path: "A D C B E F"},
	{rule: "a motorway is taken when it is faster", quarter: "motorway", stops: "0A BE", path: "A P Q B"},
	{rule: "an avoided motorway is not taken", quarter: "motorway", avoid: route.Motorways, stops: "0A BE", path: "A B"},
	{rule: "all kinds of roads can be avoided together", quarter: "motorway", avoid: route.Motorways | route.Tolls | route.Ferries, stops: "0A BE", path: "A B"},
	{rule: "a dead end is left by turning round at its end", quarter: "deadend", stops: "0A B AC", path: "A B A"},
	{rule: "a stop on the way may be left in either direction", quarter: "deadend", stops: "0A AB AC", path: "A AB A"},
	{rule: "a stop may be at the end of a road", quarter: "deadend", stops: "0A B", path: "A"},
	{rule: "bollards close a road to cars", quarter: "bollard", stops: "0A BE", path: "A D C B"},
	{rule: "bollards leave a road open to bicycles", quarter: "bollard", mode: route.Bike, stops: "0A BE", path: "A x B"},
	{rule: "bollards leave a road open to pedestrians", quarter: "bollard", mode: route.Foot, stops: "0A BE", path: "A x B"},
	{rule: "a closed gate closes a road", quarter: "gate", stops: "0A BE", path: "A D C B"},
	{rule: "roads on a bridge and below it do not meet", quarter: "bridge", stops: "0A SN@90", path: "A D S"},
	{rule: "a loop is driven on its shorter side", quarter: "loop", stops: "0A DC@60", path: "A D"},
	{rule: "the other carriageway is reached where they meet", quarter: "dual", stops: "0A AB", path: "A C D B"},
	{rule: "the carriageway of the direction is driven", quarter: "dual", stops: "BE 0A", path: "B A"},
	{rule: "a footway is open to pedestrians", quarter: "footway", mode: route.Foot, stops: "0A BE", path: "A B"},
	{rule: "a footway is closed to cars", quarter: "footway", stops: "0A BE", path: "A D C B"},
	{rule: "a cycleway is open to bicycles", quarter: "cycleway", mode: route.Bike, stops: "0A BE", path: "A B"},
	{rule: "a cycleway is closed to cars", quarter: "cycleway", stops: "0A BE", path: "A D C B"},
	{rule: "pedestrians go against a one-way street", quarter: "oneway", mode: route.Foot, stops: "BE 0A", path: "B A"},
	{rule: "bicycles do not go against a one-way street", quarter: "oneway", mode: route.Bike, stops: "BE 0A", path: "B C D A"},
	{rule: "bicycles go against a one-way street that lets them", quarter: "contraflow", mode: route.Bike, stops: "BE 0A", path: "B A"},
	{rule: "cars do not go against a one-way street that lets bicycles", quarter: "contraflow", stops: "BE 0A", path: "B C D A"},
	{rule: "the motorway is closed to pedestrians", quarter: "motorway", mode: route.Foot, stops: "0A BE", path: "A B"},
	{rule: "the motorway is closed to bicycles", quarter: "motorway", mode: route.Bike, stops: "0A BE", path: "A B"},
	{rule: "a bound at a corner is left by any of its roads", quarter: "cornerout", stops: "AB@100.5 0A", path: "B A"},
	{rule: "a bound on a junction is left by any of its roads", quarter: "cornerout", stops: "B 0A", path: "A"},
	{rule: "of roads side by side that do not meet a bound is on its own", quarter: "terrace", stops: "0A CD@10", path: "A B D"},
	{rule: "a bound on a junction is left by a road onto which no turn leads", quarter: "banned", stops: "B BE@90"},
	{rule: "the fastest way may be longer", quarter: "slow", stops: "0A BE", path: "A D C B"},
	{rule: "the shortest way may be slower", quarter: "slow", least: route.Shortest, stops: "0A BE", path: "A B"},
	{rule: "one lane for both directions makes a road a worse choice", quarter: "narrow", stops: "0A BE", path: "A D C B"},
	{rule: "a road that is a worse choice is taken to what lies on it", quarter: "narrow", stops: "0A AB", path: "A"},
	{rule: "bicycles prefer the track beside a primary road", quarter: "trackside", mode: route.Bike, stops: "0A BE", path: "A D C B"},
	{rule: "cars drive on the primary road beside a track", quarter: "trackside", stops: "0A BE", path: "A B"},
	{rule: "who is on a road before a junction takes no turn that is forbidden there", quarter: "ahead", stops: "AB@93 BC", path: "B E F C"},
	{rule: "a private road is not driven through", quarter: "private", stops: "0A BE", path: "A D C B"},
	{rule: "a private road is driven to what lies on it", quarter: "private", stops: "0A AB", path: "A"},
	{rule: "a private road is left to either side", quarter: "private", stops: "AB@80 BE", path: "B"},
	{rule: "a stop on a private road is left to either side", quarter: "private", stops: "0A AB@80 BE", path: "A AB@80 B"},
	{rule: "a road for those who go there is not driven through", quarter: "delivery", stops: "0A BE", path: "A D C B"},
	{rule: "streets behind a private road are reached", quarter: "estate", stops: "0A PQ", path: "A P"},
	{rule: "streets behind a private road are left", quarter: "estate", stops: "PQ BE", path: "Q B"},
	{rule: "streets behind a private road are not driven through", quarter: "estate", stops: "0A BE", path: "A D C B"},
	{rule: "a route within private roads stays there", quarter: "estate", stops: "AP QB", path: "P Q"},
	{rule: "a route within private roads stays there though it is slower", quarter: "yard", stops: "AP QB", path: "P Q"},
	{rule: "a stop within private roads is reached and left there", quarter: "yard", stops: "AP QB PQ@20", path: "P Q QB Q"},
	{rule: "a route within private roads leaves them where it has to", quarter: "yard", stops: "AP 0A QB", path: "A 0A A B"},
	{rule: "a private gate is not driven through", quarter: "lodge", stops: "0A BE", path: "A D C B"},
	{rule: "a route goes through its bounds in their order", quarter: "toll", stops: "0A DC BE AB", path: "A D DC C B BE B"},
}

// query is the query of a journey, with everything that an answer can have.
func (j journey) query(s *suite) (route.Query, error) {
	bounds, err := s.bounds(j.quarter, j.stops)
	profile := route.Profile{Mode: cmp.Or(j.mode, route.Car), Optimization: cmp.Or(j.least, route.Fastest), Avoid: j.avoid}
	return route.Query{Profile: profile, Bounds: bounds, Geometry: true, Steps: true}, err
}

// check asks for the route and compares it with the path.
func (j journey) check(ctx context.Context, s *suite) error {
	q, err := j.query(s)
	if err != nil {
		return err
	}
	a, err := s.findWhole(ctx, q)
	if err != nil {
		return err
	}
	passed, err := s.positions(j.quarter, j.path)
	if err != nil {
		return err
	}
	line := append(append([]geo.Point{q.Bounds[0].Point}, passed...), q.Bounds[len(q.Bounds)-1].Point)
	best := a.Routes[0]
	if want := length(line); !s.isNear(best.Distance, want) {
		return fmt.Errorf("%.1f m by %s, want %.1f m by %s", best.Distance, s.describe(j.quarter, best.Geometry), want, j.path)
	}
	if missed := firstMissed(best.Geometry, passed); missed >= 0 {
		return fmt.Errorf("it goes by %s, and not by %s of %s", s.describe(j.quarter, best.Geometry), strings.Fields(j.path)[missed], j.path)
	}
	return nil
}

// firstMissed returns the index of the first position that a line does not pass in its turn, or -1.
func firstMissed(line, positions []geo.Point) int {
	at := 0
	for i, p := range positions {
		for at < len(line) && geo.Distance(line[at], p) > 3 {
			at++
		}
		if at == len(line) {
			return i
		}
	}
	return -1
}

// describe lists the junctions of a quarter that a line passes.
func (s *suite) describe(quarter string, line []geo.Point) string {
	var names []string
	for _, p := range line {
		for name, at := range s.points {
			if letter, ok := strings.CutPrefix(name, quarter+"."); ok && geo.Distance(p, at) < 3 {
				names = append(names, letter)
			}
		}
	}
	return strings.Join(names, " ")
}
