package routertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// answerRules are the rules about the other contents of an answer, and about questions without an answer.
func answerRules() []rule {
	return []rule{
		{"the same place twice is a route of no length", checkSamePlace},
		{"bounds that no road connects have no route", checkIsland},
		{"the first bound that is far from any road is named", checkOffRoad},
		{"a bound is moved onto the nearest road", checkAccess},
		{"a bound is moved onto its street where that is a little farther", nameRule("RUE BASSE", "Rue Basse", true)},
		{"a bound is moved onto another street where its own is far", nameRule("R PROFONDE", "Rue Haute", false)},
		{"a bound is moved onto its street rather than onto the motorway beside it", checkMotorwayByName},
		{"an address without a street is not moved onto a motorway", checkMotorwayWithoutName},
		{"a route goes through as many as 25 bounds", checkManyBounds},
		{"exits of roundabouts are counted", checkExits},
		{"steps name the roads", checkNames},
		{"boarding a ferry is a manoeuvre", checkFerryStep},
		{"metres on toll roads are told", checkTolls},
		{"avoided roads that remain are told", checkRemaining},
		{"nothing is told of avoided roads that are not driven", checkNothingRemains},
		{"alternatives are other routes, and none is better", checkAlternatives},
		{"a road that is a worse choice is driven no slower", checkNarrow},
		{"arriving on a private road takes no longer", checkPrivateArrival},
		{"turning back at a stop on the way is told, and going on is not", checkTurnBack},
		{"what was not asked for is left out", checkSparse},
		{"a question ends with its context", checkCancelled},
		{"the network says what it is", checkNetwork},
	}
}

// find asks for a route by car between positions of a quarter, with geometry and steps.
func (s *suite) find(ctx context.Context, quarter, stops string, avoid route.Avoid) (route.Answer, error) {
	q, err := journey{quarter: quarter, stops: stops, avoid: avoid}.query(s)
	if err != nil {
		return route.Answer{}, err
	}
	return s.findWhole(ctx, q)
}

// findWhole asks for a route and checks what is true of every answer.
func (s *suite) findWhole(ctx context.Context, q route.Query) (route.Answer, error) {
	a, err := s.router.Route(ctx, q)
	if err != nil {
		return a, err
	}
	return a, s.checkWhole(q, a)
}

func checkSamePlace(ctx context.Context, s *suite) error {
	a, err := s.find(ctx, "oneway", "0A 0A", 0)
	if err != nil {
		return err
	}
	if r := a.Routes[0]; r.Distance > 0.5 || r.Duration > 1 {
		return fmt.Errorf("%.1f m, %.1f s", r.Distance, r.Duration)
	}
	return nil
}

// checkNarrow compares two stretches of the same length and kind, of which one is on a road with a single lane.
func checkNarrow(ctx context.Context, s *suite) error {
	narrow, err := s.find(ctx, "narrow", "AB@20 AB@80", 0)
	if err != nil {
		return err
	}
	wide, err := s.find(ctx, "narrow", "DC@20 DC@80", 0)
	if err != nil {
		return err
	}
	got, want := narrow.Routes[0].Duration, wide.Routes[0].Duration
	return unless(math.Abs(got-want) <= 1+0.02*want, fmt.Sprintf("%.1f s, and %.1f s on a road with two lanes", got, want))
}

// checkPrivateArrival compares the way to a private road with the same turn onto a public one.
func checkPrivateArrival(ctx context.Context, s *suite) error {
	private, err := s.find(ctx, "private", "0A AB@50", 0)
	if err != nil {
		return err
	}
	public, err := s.find(ctx, "oneway", "0A AB@50", 0)
	if err != nil {
		return err
	}
	pace := func(r route.Route) float64 { return r.Duration / r.Distance }
	got, want := pace(private.Routes[0]), pace(public.Routes[0])
	return unless(math.Abs(got/want-1) < 0.1, fmt.Sprintf("%.3f s a metre, and %.3f on public roads", got, want))
}

// checkTurnBack looks at how the second leg departs: of a route that goes back behind its stop, and of one that continues.
func checkTurnBack(ctx context.Context, s *suite) error {
	for stops, want := range map[string]route.Modifier{"0A AB AC": route.Backwards, "AC AB AB@80": "", "0A 0A@80 AC": ""} {
		a, err := s.find(ctx, "deadend", stops, 0)
		if err != nil {
			return err
		}
		m := a.Routes[0].Legs[1].Steps[0].Maneuver
		if isTold := m.Modifier == route.Backwards; m.Type != route.Depart || isTold != (want == route.Backwards) {
			return fmt.Errorf("%s: %s %s, want depart %s", stops, m.Type, m.Modifier, want)
		}
	}
	return nil
}

func checkIsland(ctx context.Context, s *suite) error {
	from, err := s.position("oneway", "0A")
	to, err2 := s.position("island", "AB")
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	for _, bounds := range [][]route.Bound{{{Point: from}, {Point: to}}, {{Point: to}, {Point: from}}} {
		a, err := s.router.Route(ctx, route.Query{Profile: byCar, Bounds: bounds})
		if !errors.Is(err, route.ErrNoRoute) {
			return fmt.Errorf("got %+v, %v, want %v", a, err, route.ErrNoRoute)
		}
	}
	return nil
}

// byCar is the profile of rules that are not about profiles.
var byCar = route.Profile{Mode: route.Car, Optimization: route.Fastest}

// atSea is a position far from any road.
var atSea = geo.Point{Lon: townLon - 0.5, Lat: townLat}

func checkOffRoad(ctx context.Context, s *suite) error {
	on, err := s.position("oneway", "0A")
	if err != nil {
		return err
	}
	sea, road := route.Bound{Point: atSea}, route.Bound{Point: on}
	for want, bounds := range [][]route.Bound{{sea, sea}, {road, sea}, {road, road, sea}} {
		_, err := s.router.Route(ctx, route.Query{Profile: byCar, Bounds: bounds})
		var off *route.OffRoadError
		if !errors.As(err, &off) || off.Bound != want {
			return fmt.Errorf("bound %d is at sea: got %v", want, err)
		}
	}
	return nil
}

func checkAccess(ctx context.Context, s *suite) error {
	on, err := s.position("names", "0A")
	to, err2 := s.position("oneway", "0A")
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	beside := route.Bound{Point: offset(on, 0, -40), IsAddress: true, Street: "RUE DU LIEN"}
	a, err := s.router.Route(ctx, route.Query{Profile: byCar, Bounds: []route.Bound{beside, {Point: to}}})
	if err != nil {
		return err
	}
	access := a.Accesses[0]
	if math.Abs(access.Distance-40) > 1 || access.Street != "Rue du Lien" || !access.IsOnOwn || math.Abs(access.Lat-on.Lat) > 1e-5 {
		return fmt.Errorf("a bound 40 m beside the middle of Rue du Lien meets the network at %+v", access)
	}
	return unless(!a.Accesses[1].IsOnOwn && a.Accesses[1].Street == "Rue de l'Avance", "a bound without a street is on its own")
}

// nameRule is a rule about a bound 10 m next to Rue Haute, 20 m next to Rue Basse and 50 m next to Rue Profonde.
func nameRule(street, want string, isOwn bool) func(context.Context, *suite) error {
	return func(ctx context.Context, s *suite) error {
		on, err := s.position("names", "AB")
		to, err2 := s.position("oneway", "0A")
		if err = errors.Join(err, err2); err != nil {
			return err
		}
		b := route.Bound{Point: offset(on, 0, 10), IsAddress: true, Street: street}
		a, err := s.router.Route(ctx, route.Query{Profile: byCar, Bounds: []route.Bound{b, {Point: to}}})
		if err != nil {
			return err
		}
		if got := a.Accesses[0]; got.Street != want || got.IsOnOwn != isOwn {
			return fmt.Errorf("got %+v, want %s", got, want)
		}
		return nil
	}
}

// besideMotorway finds where an address 12 m from the motorway and 28 m from Rue de la Rocade meets the network.
func besideMotorway(ctx context.Context, s *suite, street string) error {
	on, err := s.position("motorway", "PQ")
	to, err2 := s.position("motorway", "0A")
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	b := route.Bound{Point: offset(on, 0, -12), IsAddress: true, Street: street}
	a, err := s.router.Route(ctx, route.Query{Profile: byCar, Bounds: []route.Bound{b, {Point: to}}})
	if err == nil && a.Accesses[0].Street != "Rue de la Rocade" {
		err = fmt.Errorf("got %+v", a.Accesses[0])
	}
	return err
}

func checkMotorwayByName(ctx context.Context, s *suite) error {
	return besideMotorway(ctx, s, "R DE LA ROCADE")
}

func checkMotorwayWithoutName(ctx context.Context, s *suite) error {
	return besideMotorway(ctx, s, "")
}

// checkManyBounds goes to and fro on one road.
func checkManyBounds(ctx context.Context, s *suite) error {
	q, err := journey{quarter: "toll", stops: "0A@20" + strings.Repeat(" 0A@80 0A@20", 12)}.query(s)
	if err != nil {
		return err
	}
	a, err := s.findWhole(ctx, q)
	if err != nil {
		return err
	}
	want := length([]geo.Point{q.Bounds[0].Point, q.Bounds[1].Point})
	for i, l := range a.Routes[0].Legs {
		if !s.isNear(l.Distance, want) {
			return fmt.Errorf("leg %d has %.1f m, want %.1f", i, l.Distance, want)
		}
	}
	return nil
}

func checkExits(ctx context.Context, s *suite) error {
	for stops, want := range map[string]int{"0w sS": 1, "0w eE": 2, "0w nN": 3, "eE nN": 1, "sS 0w": 3} {
		a, err := s.find(ctx, "roundabout", stops, 0)
		if err != nil {
			return err
		}
		exits := []int{}
		for _, step := range a.Routes[0].Legs[0].Steps {
			if step.Maneuver.Type == route.Roundabout {
				exits = append(exits, step.Maneuver.Exit)
			}
		}
		if len(exits) != 1 || exits[0] != want {
			return fmt.Errorf("%s: got exits %v, want %d", stops, exits, want)
		}
	}
	return nil
}

func checkNames(ctx context.Context, s *suite) error {
	a, err := s.find(ctx, "oneway", "0A BC", 0)
	if err != nil {
		return err
	}
	var names []string
	for _, step := range a.Routes[0].Legs[0].Steps {
		if step.Distance > 0 {
			names = append(names, step.Name)
		}
	}
	if got, want := fmt.Sprint(names), "[Rue de l'Avance Rue Montante Rue Courte]"; got != want {
		return fmt.Errorf("got %s, want %s", got, want)
	}
	return nil
}

func checkFerryStep(ctx context.Context, s *suite) error {
	a, err := s.find(ctx, "ferry", "0A BC", 0)
	if err != nil {
		return err
	}
	boarded := 0
	for _, step := range a.Routes[0].Legs[0].Steps {
		if step.Maneuver.Type == route.TakeFerry && s.isNear(step.Distance, length([]geo.Point{s.points["ferry.A"], s.points["ferry.B"]})) {
			boarded++
		}
	}
	return unless(boarded == 1, fmt.Sprintf("%d ferries of the right length are boarded", boarded))
}

func checkTolls(ctx context.Context, s *suite) error {
	a, err := s.find(ctx, "toll", "0A BE", 0)
	if err != nil {
		return err
	}
	want := length([]geo.Point{s.points["toll.A"], s.points["toll.B"]})
	if got := a.Routes[0].TollDistance; !s.isNear(got, want) || a.Routes[0].Avoided != nil {
		return fmt.Errorf("got %.1f m, %v, want %.1f m", got, a.Routes[0].Avoided, want)
	}
	a, err = s.find(ctx, "oneway", "0A BE", 0)
	if err == nil && a.Routes[0].TollDistance != 0 {
		err = fmt.Errorf("%.1f m on toll roads where there are none", a.Routes[0].TollDistance)
	}
	return err
}

func checkRemaining(ctx context.Context, s *suite) error {
	for _, c := range []struct {
		quarter, stops, from, to string
		kind                     route.Avoid
	}{{"ferry", "0A BC", "A", "B", route.Ferries}, {"toll", "BE FG", "E", "F", route.Tolls}} {
		a, err := s.find(ctx, c.quarter, c.stops, c.kind)
		if err != nil {
			return err
		}
		want := length([]geo.Point{s.points[c.quarter+"."+c.from], s.points[c.quarter+"."+c.to]})
		if got := a.Routes[0].Avoided; len(got) != 1 || got[0].Kind != c.kind || !s.isNear(got[0].Distance, want) {
			return fmt.Errorf("%s: got %v, want %.1f m", c.quarter, got, want)
		}
	}
	return nil
}

func checkNothingRemains(ctx context.Context, s *suite) error {
	a, err := s.find(ctx, "toll", "0A BE", route.Tolls)
	if err == nil && (len(a.Routes[0].Avoided) > 0 || a.Routes[0].TollDistance > 0) {
		err = fmt.Errorf("got %+v", a.Routes[0])
	}
	return err
}

func checkAlternatives(ctx context.Context, s *suite) error {
	q, err := journey{quarter: "twoways", stops: "0A DE"}.query(s)
	if err != nil {
		return err
	}
	q.Alternatives = 2
	a, err := s.findWhole(ctx, q)
	if err != nil {
		return err
	}
	if len(a.Routes) < 2 {
		return errors.New("there is one route only")
	}
	for i, r := range a.Routes[1:] {
		if r.Duration < a.Routes[i].Duration || firstMissed(r.Geometry, a.Routes[0].Geometry) < 0 {
			return fmt.Errorf("alternative %d of %.1f s is better than %.1f s, or no other", i, r.Duration, a.Routes[i].Duration)
		}
	}
	return nil
}

func checkSparse(ctx context.Context, s *suite) error {
	q, err := journey{quarter: "oneway", stops: "0A BE"}.query(s)
	if err != nil {
		return err
	}
	q.Geometry, q.Steps = false, false
	a, err := s.findWhole(ctx, q)
	if err != nil {
		return err
	}
	return unless(a.Routes[0].Legs[0].Steps == nil, "steps that nobody asked for")
}

func checkCancelled(ctx context.Context, s *suite) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	bounds, err := s.bounds("oneway", "0A BE")
	if err != nil {
		return err
	}
	_, err1 := s.router.Route(ctx, route.Query{Profile: byCar, Bounds: bounds})
	_, err2 := s.router.Matrix(ctx, route.MatrixQuery{Profile: byCar, Origins: bounds, Destinations: bounds})
	_, err3 := s.router.Nearest(ctx, route.NearestQuery{Profile: byCar, Origin: bounds[0], Destinations: bounds, Limit: 1})
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("got %v, want %v", err, context.Canceled)
		}
	}
	return nil
}

func checkNetwork(ctx context.Context, s *suite) error {
	n, err := s.router.Network(ctx)
	if err != nil {
		return err
	}
	if len(n.Modes) != 3 || n.Engine == "" || n.Attribution == "" || n.IsSynthetic || !n.Date.IsZero() && !n.Date.Equal(townDate) {
		return fmt.Errorf("got %+v", n)
	}
	return nil
}
