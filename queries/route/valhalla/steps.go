package valhalla

import (
	"strings"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
	"lieudit/schemas/geo"
)

// maneuver is a manoeuvre and the road up to the next one.
type maneuver struct {
	Type        int      `json:"type"`
	StreetNames []string `json:"street_names"`
	Time        float64  `json:"time"`
	Length      float64  `json:"length"` // kilometres
	Begin       int      `json:"begin_shape_index"`
	End         int      `json:"end_shape_index"`
	Toll        bool     `json:"toll"`
	Highway     bool     `json:"highway"`
	Ferry       bool     `json:"ferry"`
	Exit        int      `json:"roundabout_exit_count"`
	Sign        struct {
		Toward []signElement `json:"exit_toward_elements"`
	} `json:"sign"`
}

type signElement struct {
	Text string `json:"text"`
}

// Types of manoeuvres that steps treat specially.
const (
	roundaboutEnter = 26
	roundaboutExit  = 27
	ferryEnter      = 28
)

// maneuverTypes are Valhalla's types of manoeuvres by their numbers (docs/docs/api/turn-by-turn/api-reference.md of Valhalla). A
// type that is missing here is route.Continue.
var maneuverTypes = map[int]struct {
	kind     route.ManeuverType
	modifier route.Modifier
}{
	1: {route.Depart, ""}, 2: {route.Depart, ""}, 3: {route.Depart, ""},
	4: {route.Arrive, ""}, 5: {route.Arrive, ""}, 6: {route.Arrive, ""},
	7: {route.Continue, route.Straight}, 8: {route.Continue, route.Straight},
	9: {route.Turn, route.SlightRight}, 10: {route.Turn, route.Right}, 11: {route.Turn, route.SharpRight},
	12: {route.UTurn, route.Backwards}, 13: {route.UTurn, route.Backwards},
	14: {route.Turn, route.SharpLeft}, 15: {route.Turn, route.Left}, 16: {route.Turn, route.SlightLeft},
	17: {route.OnRamp, route.Straight}, 18: {route.OnRamp, route.Right}, 19: {route.OnRamp, route.Left},
	20: {route.OffRamp, route.Right}, 21: {route.OffRamp, route.Left},
	22: {route.Fork, route.Straight}, 23: {route.Fork, route.SlightRight}, 24: {route.Fork, route.SlightLeft},
	25: {route.Merge, ""}, 37: {route.Merge, route.SlightRight}, 38: {route.Merge, route.SlightLeft},
	roundaboutEnter: {route.Roundabout, ""}, roundaboutExit: {route.Roundabout, ""},
	ferryEnter: {route.TakeFerry, ""}, 29: {route.Continue, ""},
}

// readSteps converts steps. A roundabout becomes one step: the road in it and the road after its exit.
func readSteps(all []maneuver, points []geo.Point) []route.Step {
	steps := make([]route.Step, 0, len(all))
	for _, m := range all {
		name, ref := splitNames(m.StreetNames)
		line := routeserver.AppendPoints(nil, points[m.Begin:m.End+1])
		if n := len(steps); m.Type == roundaboutExit && n > 0 && steps[n-1].Maneuver.Type == route.Roundabout {
			s := &steps[n-1]
			s.Distance, s.Duration = s.Distance+m.Length*metresPerKilometre, s.Duration+m.Time
			s.Name, s.Ref, s.Destinations, s.Geometry = name, ref, m.destinations(), routeserver.AppendPoints(s.Geometry, line)
			continue
		}
		steps = append(steps, route.Step{Distance: m.Length * metresPerKilometre, Duration: m.Time, Maneuver: m.describe(points[m.Begin]),
			Name: name, Ref: ref, Destinations: m.destinations(), Geometry: line})
	}
	routeserver.MarkSameRoads(steps)
	return steps
}

// describe returns the manoeuvre at a position.
func (m maneuver) describe(at geo.Point) route.Maneuver {
	known, ok := maneuverTypes[m.Type]
	if !ok {
		known.kind = route.Continue
	}
	d := route.Maneuver{Point: at, Type: known.kind, Modifier: known.modifier}
	if d.Type == route.Roundabout {
		d.Exit = max(0, m.Exit)
	}
	return d
}

// destinations returns what the signs show.
func (m maneuver) destinations() string {
	var places []string
	for _, e := range m.Sign.Toward {
		places = append(places, e.Text)
	}
	return strings.Join(places, ", ")
}

// addKinds adds the metres of a manoeuvre to those of the kinds of its road. A flag applies to the whole manoeuvre, even if only a
// part has a toll.
func (m maneuver) addKinds(metres map[route.Avoid]float64) {
	for kind, has := range map[route.Avoid]bool{route.Tolls: m.Toll, route.Motorways: m.Highway, route.Ferries: m.Ferry} {
		if has {
			metres[kind] += m.Length * metresPerKilometre
		}
	}
}
