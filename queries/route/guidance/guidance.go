// Package guidance makes turn-by-turn instructions: the steps of a leg, and the sentence of each step in French and in English. It
// looks only at the path and at the roads that meet it, never at a map or a graph, so that it can describe the steps of any router.
//
//	path ──► []Stretch ── Steps ──► []route.Step ── Text ──► "Prenez à gauche la rue de la République"
//
// Steps works in three passes. find looks at each junction of the path and finds a manoeuvre there, unless the way is obvious.
// merge joins manoeuvres that follow closely, such as the two halves of a turn at a road with separate carriageways. build cuts the
// path at the manoeuvres that are left. Traffic keeps right, unless a stretch says that it keeps left.
package guidance

import (
	"lieudit/queries/route"
	"lieudit/queries/route/profile"
	"lieudit/schemas/geo"
)

// Road is what guidance needs to know about a road.
type Road struct {
	Name, Ref            string
	Destinations         string // what signs show, such as "A 6: Lyon, Grenoble"
	Exit                 string // number of the exit of a motorway that it is
	Class                profile.Class
	IsLink, IsRoundabout bool
}

func (r *Road) isFerry() bool { return r.Class == profile.Ferry || r.Class == profile.ShuttleTrain }

// isFast reports whether the road is a motorway or one like it, or the ramp of one.
func (r *Road) isFast() bool { return r.Class <= profile.Trunk }

// isMinor reports whether cars take the road only to reach what lies on it.
func (r *Road) isMinor() bool { return r.Class >= profile.Service && !r.isFerry() }

func (r *Road) isStairs() bool { return r.Class == profile.Steps }

// pathKinds are the classes of roads that are called by their kind if they have no name.
var pathKinds = map[profile.Class]route.PathKind{
	profile.Track: route.Track, profile.Path: route.Track, profile.Cycleway: route.CyclePath,
	profile.Footway: route.Walkway, profile.Pedestrian: route.Walkway, profile.Steps: route.Stairs,
}

func (r *Road) hasLabel() bool { return r.Name != "" || r.Ref != "" }

// Branch is another road at a junction of the path.
type Branch struct {
	Road
	Bearing  float64 // in degrees clockwise from north, as Bearing measures it away from the junction
	CanEnter bool    // the mode may leave the junction by it, coming along the path
}

// Stretch is a piece of a path between two junctions, or between a junction and an end of the path. Points has one position at least,
// two where it has a length; steps share its memory. Branches are the other roads at the junction where it begins: neither the stretch itself nor the one before.
type Stretch struct {
	Road
	Points             []geo.Point
	Distance, Duration float64
	Branches           []Branch
	IsMiniRoundabout   bool // the junction where it begins is a mini roundabout
	KeepsLeft          bool // traffic keeps left there; needed only if the stretch or the previous one is a roundabout, or this
}

// Steps makes the steps of a leg: Depart first, Arrive last. The side of the destination is not known here: see Side. It returns nil
// for no stretches.
func Steps(mode route.Mode, stretches []Stretch) []route.Step {
	if len(stretches) == 0 {
		return nil
	}
	p := newPath(mode, stretches)
	return p.build(merger{p}.merge(p.find()))
}

// path is the leg that Steps works on.
type path struct {
	mode      route.Mode
	stretches []Stretch
	in, out   []float64 // bearings of each stretch: where it ends and where it begins
}

// newPath measures the bearings.
func newPath(mode route.Mode, stretches []Stretch) *path {
	p := &path{mode: mode, stretches: stretches, in: make([]float64, len(stretches)), out: make([]float64, len(stretches))}
	for i := range stretches {
		p.out[i] = Bearing(stretches[i].Points)
		p.in[i] = endBearing(stretches[i].Points)
	}
	p.fixBearings()
	return p
}

// tooShort is the length in metres below which a stretch has no bearing of its own: a bound may lie next to a junction.
const tooShort = 1

// fixBearings gives stretches that are too short the bearing of the previous stretch, otherwise that of the next.
func (p *path) fixBearings() {
	for i := 1; i < len(p.stretches); i++ {
		if p.stretches[i].Distance < tooShort {
			p.out[i], p.in[i] = p.in[i-1], p.in[i-1]
		}
	}
	if p.stretches[0].Distance < tooShort && len(p.stretches) > 1 {
		p.out[0], p.in[0] = p.out[1], p.out[1]
	}
}

// isRoundabout is false on foot: one walks along a roundabout in both directions, as along other roads.
func (p *path) isRoundabout(i int) bool { return p.stretches[i].IsRoundabout && p.mode != route.Foot }

// event is a manoeuvre where the stretch at begins. Its road is that of the stretch road, which differs from at where a roundabout
// or a slip road lies between.
type event struct {
	at, road      int
	kind          route.ManeuverType
	modifier      route.Modifier
	exit          int
	before, after float64
	isChange      bool // the way is obvious: its name changes
	isStairs      bool // a flight of steps begins
}

func (e event) angle() float64 { return turnAngle(e.before, e.after) }

// distance is the length of the path from one stretch up to another.
func (p *path) distance(from, to int) float64 {
	sum := 0.0
	for i := from; i < to; i++ {
		sum += p.stretches[i].Distance
	}
	return sum
}

// build makes the steps of events.
func (p *path) build(events []event) []route.Step {
	steps := make([]route.Step, 0, len(events)+1)
	for k, e := range events {
		end := len(p.stretches)
		if k+1 < len(events) {
			end = events[k+1].at
		}
		s := p.step(e, end)
		if k > 0 {
			s.Maneuver.IsSameRoad = isCalledTheSame(p.roadBefore(events[k-1].road, e.at), &p.stretches[p.labelled(e.road, end)].Road)
		}
		steps = append(steps, s)
	}
	return append(steps, p.arrival())
}

// roadBefore is the last road with a name or a number from a stretch on up to another, or the last of all if no road has either.
func (p *path) roadBefore(first, end int) *Road {
	for i := end - 1; i >= first; i-- {
		if p.stretches[i].hasLabel() {
			return &p.stretches[i].Road
		}
	}
	return &p.stretches[max(end-1, 0)].Road
}

// step makes the step of an event that ends where the stretch end begins.
func (p *path) step(e event, end int) route.Step {
	s := route.Step{Maneuver: route.Maneuver{
		Point: p.stretches[e.at].Points[0], Type: e.kind, Modifier: e.modifier, Exit: e.exit,
		BearingBefore: e.before, BearingAfter: e.after,
	}}
	for i := e.at; i < end; i++ {
		s.Distance += p.stretches[i].Distance
		s.Duration += p.stretches[i].Duration
	}
	s.Geometry = joinLines(p.stretches[e.at:end])
	road := &p.stretches[p.labelled(e.road, end)].Road
	s.Name, s.Ref = road.Name, road.Ref
	if p.mode != route.Car && !road.hasLabel() {
		s.PathKind = pathKinds[p.stretches[e.road].Class]
	}
	s.Destinations = p.stretches[e.road].Destinations
	p.addSigns(&s, e, end)
	return s
}

// addSigns adds the text of the signs along a ramp: they may stand beyond its beginning.
func (p *path) addSigns(s *route.Step, e event, end int) {
	if e.kind != route.OnRamp && e.kind != route.OffRamp && e.kind != route.Fork {
		return
	}
	for i := e.at; i < end && p.stretches[i].IsLink; i++ {
		if s.Destinations == "" {
			s.Destinations = p.stretches[i].Destinations
		}
		if s.Maneuver.Sign == "" && e.kind == route.OffRamp {
			s.Maneuver.Sign = p.stretches[i].Exit
		}
	}
}

// nameReach is how far beyond a junction a road may get its name, in metres: the middle of a junction often has no name.
const nameReach = 60

// labelled returns the first stretch from road on that has a name or a number, or road if no stretch near it does.
func (p *path) labelled(road, end int) int {
	gone := 0.0
	for i := road; i < end && gone < nameReach; i++ {
		if p.stretches[i].hasLabel() {
			return i
		}
		if p.stretches[i].IsLink || p.stretches[i].isFerry() || p.stretches[i].isStairs() {
			return road
		}
		gone += p.stretches[i].Distance
	}
	return road
}

// roadFrom is the road of a stretch, with a name if it gets one near.
func (p *path) roadFrom(i int) *Road { return &p.stretches[p.labelled(i, len(p.stretches))].Road }

func (p *path) arrival() route.Step {
	last := len(p.stretches) - 1
	s := &p.stretches[last]
	at := s.Points[len(s.Points)-1]
	return route.Step{
		Maneuver: route.Maneuver{Point: at, Type: route.Arrive, BearingBefore: p.in[last]},
		Name:     s.Name, Ref: s.Ref, Geometry: []geo.Point{at},
	}
}

// joinLines is the line along stretches, without repeating the position that two of them share. Stretches whose points are
// consecutive in memory, each beginning at the last point of the previous one, are joined without a copy.
func joinLines(stretches []Stretch) []geo.Point {
	if len(stretches) == 0 {
		return nil
	}
	line := stretches[0].Points
	for i := range stretches[1:] {
		points := stretches[1+i].Points
		switch {
		case len(line) == 0:
			line = points
		case len(points) > 0 && &line[len(line)-1] == &points[0] && cap(line) >= len(line)+len(points)-1:
			line = line[:len(line)+len(points)-1]
		default:
			return copyLines(stretches)
		}
	}
	return line[:len(line):len(line)]
}

// copyLines is the line along stretches, without repeating the position that two of them share.
func copyLines(stretches []Stretch) (line []geo.Point) {
	for i := range stretches {
		points := stretches[i].Points
		if len(line) > 0 && len(points) > 0 && line[len(line)-1] == points[0] {
			points = points[1:]
		}
		line = append(line, points...)
	}
	return line
}
