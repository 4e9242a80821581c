package osrm

import (
	"strings"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
)

// maneuverTypes are OSRM's types of manoeuvres (docs/http.md of OSRM). A type that is missing here is Continue, as OSRM requires
// for types that a client does not know.
var maneuverTypes = map[string]route.ManeuverType{
	"depart":          route.Depart,
	"arrive":          route.Arrive,
	"turn":            route.Turn,
	"end of road":     route.Turn,
	"new name":        route.Continue,
	"continue":        route.Continue,
	"notification":    route.Continue,
	"use lane":        route.Continue,
	"fork":            route.Fork,
	"on ramp":         route.OnRamp,
	"off ramp":        route.OffRamp,
	"merge":           route.Merge,
	"roundabout":      route.Roundabout,
	"rotary":          route.Roundabout,
	"roundabout turn": route.Roundabout,
}

// modifiers are OSRM's directions.
var modifiers = map[string]route.Modifier{
	"straight":     route.Straight,
	"slight left":  route.SlightLeft,
	"left":         route.Left,
	"sharp left":   route.SharpLeft,
	"slight right": route.SlightRight,
	"right":        route.Right,
	"sharp right":  route.SharpRight,
	"uturn":        route.Backwards,
}

// readSteps converts steps. A roundabout becomes one step: the road in it and the road after its exit.
func readSteps(answers []stepAnswer) ([]route.Step, error) {
	steps := make([]route.Step, 0, len(answers))
	for i := range answers {
		a := &answers[i]
		if n := len(steps); n > 0 && strings.HasPrefix(a.Maneuver.Type, "exit ") && steps[n-1].Maneuver.Type == route.Roundabout {
			leaveRoundabout(&steps[n-1], a)
			continue
		}
		at, err := waypoint{Location: a.Maneuver.Location}.point()
		if err != nil {
			return nil, err
		}
		isFerryBefore := i > 0 && answers[i-1].Mode == ferryMode
		m := route.Maneuver{Point: at, Type: a.maneuverType(isFerryBefore)}
		switch m.Type {
		case route.Depart, route.Arrive, route.TakeFerry: // these have no direction
		case route.Roundabout:
			m.Exit = a.Maneuver.Exit
		case route.UTurn:
			m.Modifier = route.Backwards
		default:
			m.Modifier = modifiers[a.Maneuver.Modifier]
		}
		steps = append(steps, route.Step{Distance: a.Distance, Duration: a.Duration, Maneuver: m, Name: a.Name, Ref: a.Ref,
			Destinations: destinationsOf(a.Destinations), Geometry: routeserver.AppendPoints(nil, a.points)})
	}
	routeserver.MarkSameRoads(steps)
	return steps, nil
}

// leaveRoundabout adds the road after the exit to the step of a roundabout.
func leaveRoundabout(s *route.Step, a *stepAnswer) {
	s.Distance += a.Distance
	s.Duration += a.Duration
	s.Name, s.Ref, s.Destinations = a.Name, a.Ref, destinationsOf(a.Destinations)
	s.Geometry = routeserver.AppendPoints(s.Geometry, a.points)
}

// maneuverType returns the type of a step's manoeuvre.
func (a *stepAnswer) maneuverType(isFerryBefore bool) route.ManeuverType {
	kind, ok := maneuverTypes[a.Maneuver.Type]
	switch {
	case a.Mode == ferryMode && !isFerryBefore && kind != route.Depart && kind != route.Arrive:
		return route.TakeFerry
	case !ok:
		return route.Continue
	case a.Maneuver.Modifier == "uturn" && (kind == route.Turn || kind == route.Continue):
		return route.UTurn
	}
	return kind
}

// destinationsOf returns the text of the signs. OSRM writes the numbers of roads before it: "A 6: Lyon, Grenoble".
func destinationsOf(s string) string {
	if _, places, ok := strings.Cut(s, ": "); ok {
		return places
	}
	return s
}
