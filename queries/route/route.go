// Package route defines what a router can be asked and what it answers: the way between positions, the durations between many, the
// area within reach, the nearest of many. Router is the interface; package engine implements it on the project's own road network,
// packages osrm and valhalla on servers of these names, and package routertest is the contract suite that all of them pass. A
// router knows positions and street names, never addresses or accounts. The caller resolves text to an address first and passes a
// Bound.
//
//	text, id, site ── http/api ──► Bound{Point, Street} ── Router ──► Access (where it meets the network), Route, Matrix, Area
//
// Durations are seconds and distances metres, both as unrounded float64: code that displays them rounds once.
package route

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"lieudit/schemas/geo"
)

// Mode is how somebody travels.
type Mode string

// The modes.
const (
	Car  Mode = "car"
	Foot Mode = "foot"
	Bike Mode = "bike"
)

// Optimization is what a route minimises.
type Optimization string

// The optimizations.
const (
	Fastest  Optimization = "fastest"
	Shortest Optimization = "shortest"
)

// Avoid is a set of kinds of roads to avoid. Avoiding is best effort: an avoided road weighs AvoidFactor times as much, so it is
// still used if there is no other way, and the answer says so.
type Avoid uint8

// The kinds of roads that can be avoided.
const (
	Tolls Avoid = 1 << iota
	Motorways
	Ferries
)

// AvoidFactor is how many times more an avoided road weighs.
const AvoidFactor = 50

// FixedPoint is a position in whole FixedUnit parts of a degree, as OpenStreetMap has it.
type FixedPoint struct{ Lon, Lat int32 }

// FixedUnit is how many units of a FixedPoint are a degree.
const FixedUnit = 1e7

// Fix rounds a position to whole units.
func Fix(p geo.Point) FixedPoint {
	return FixedPoint{Lon: int32(math.Round(p.Lon * FixedUnit)), Lat: int32(math.Round(p.Lat * FixedUnit))}
}

// Point is the position in degrees.
func (p FixedPoint) Point() geo.Point {
	return geo.Point{Lon: float64(p.Lon) / FixedUnit, Lat: float64(p.Lat) / FixedUnit}
}

// Profile is how to travel: it selects the weights of roads.
type Profile struct {
	Mode         Mode
	Optimization Optimization
	Avoid        Avoid
}

// Bound is where a route begins, ends or stops. A position may lie anywhere, on a motorway too. An address lies on a street: roads
// on which nobody lives are not preferred when it is moved onto the network. Street is the name of that street, as the address base
// writes it, or "" if it is unknown: a road of that name is preferred.
type Bound struct {
	geo.Point
	IsAddress bool
	Street    string // only of an address
}

// Access is where a bound meets the network: never on a ferry or a shuttle train. A bound may have several that are about as near,
// such as the roads at a junction; then a route takes the one that makes it best, and reports it. The extra distance to a farther
// access counts in that choice, but never in a duration.
type Access struct {
	geo.Point
	Distance float64 // metres from the bound
	Street   string  // name of the road there, or ""
	IsOnOwn  bool    // the road has the name of the bound's street
}

// MaxAccessDistance is how far a bound may be from the nearest road, in metres.
const MaxAccessDistance = 1_000

// The cost of a road near an address besides its distance, in metres: the address is moved onto the road with the least sum. A road
// of the right name may be farther away: with 30 m, 95.2 % of the numbers of Bondy whose street the map names would meet that
// street, with 150 m 99.4 %, and without names 87.2 %.
const (
	OtherNameCost = 150 // the road does not have the name of the bound's street
	ThroughCost   = 60  // a motorway, a ramp, a tunnel or a bridge: nobody lives there
)

// Query asks for the route through bounds in their order: at least two.
type Query struct {
	Profile
	Bounds       []Bound
	Alternatives int  // at most this many other routes; only between two bounds
	Geometry     bool // whether Route.Geometry is wanted
	Steps        bool // whether Leg.Steps are wanted
}

// Answer holds at least one route: the best and the alternatives to it, best first. Accesses has one item for each bound: the
// access that the routes take.
type Answer struct {
	Accesses []Access
	Routes   []Route
}

// Route is a way through all bounds. A leg leads from one bound to the next.
type Route struct {
	Distance, Duration float64
	Legs               []Leg
	Geometry           []geo.Point // of all legs, without repeated positions; nil unless asked for
	Avoided            []Avoided   // roads of avoided kinds that could not be avoided, by kind
	TollDistance       float64     // metres on roads with a toll
}

// Avoided is the distance of a route on roads of a kind that was to be avoided.
type Avoided struct {
	Kind     Avoid // one kind
	Distance float64
}

// Leg is the way from one bound to the next. Steps is nil unless asked for.
type Leg struct {
	Distance, Duration float64
	Steps              []Step
}

// Step is a manoeuvre and the road that follows it, up to the next manoeuvre. The last step of a leg is Arrive, of no length.
type Step struct {
	Distance, Duration float64
	Maneuver           Maneuver
	Name               string // of the road that follows, or ""
	Ref                string // its number, such as "D 806", or ""
	Destinations       string // what its signs show, such as "Lyon, Grenoble"
	PathKind           PathKind
	Geometry           []geo.Point
}

// PathKind is the kind of the road of a step if that has neither name nor number and the mode is Foot or Bike; otherwise "".
// Routers that do not know it leave it empty.
type PathKind string

// The kinds of paths.
const (
	Track     PathKind = "chemin"
	CyclePath PathKind = "piste_cyclable"
	Walkway   PathKind = "passage" // for pedestrians
	Stairs    PathKind = "escaliers"
)

// Maneuver is what a driver does where a step begins.
type Maneuver struct {
	geo.Point
	Type     ManeuverType
	Modifier Modifier // direction, where the type has one
	Exit     int      // number of the exit of a roundabout, from 1; otherwise 0
	Stop     int      // of an Arrive: number of the stop on the way, from 1; 0 at the destination
	Sign     string   // number of the exit of a motorway as its signs show it, such as "12" or "12a"; otherwise ""

	// IsSameRoad reports whether the road after the manoeuvre has the name of the road before it, or its number if people call it
	// by that. It is false where a leg begins or ends.
	IsSameRoad bool

	BearingBefore, BearingAfter float64 // of the road before and behind, in degrees clockwise from north
}

// ManeuverType is the kind of a manoeuvre. Its values are those of answers.
type ManeuverType string

// The kinds of manoeuvres.
const (
	Depart     ManeuverType = "depart" // with the modifier Backwards if a leg goes back on the road by which the previous leg arrived
	Arrive     ManeuverType = "arrivee"
	Turn       ManeuverType = "tourner"
	Continue   ManeuverType = "continuer"   // the same road continues, and another could be taken for it; or its name changes
	Fork       ManeuverType = "bifurcation" // roads of one kind part
	OnRamp     ManeuverType = "bretelle"    // onto the ramp of a motorway
	OffRamp    ManeuverType = "sortie"      // off a motorway
	Merge      ManeuverType = "insertion"   // from a ramp into the traffic
	Roundabout ManeuverType = "rond_point"
	UTurn      ManeuverType = "demi_tour"
	TakeFerry  ManeuverType = "bac"
)

// Modifier is the direction of a manoeuvre. Its values are those of answers.
type Modifier string

// The directions.
const (
	Straight    Modifier = "tout_droit"
	SlightLeft  Modifier = "legerement_gauche"
	Left        Modifier = "gauche"
	SharpLeft   Modifier = "fortement_gauche"
	SlightRight Modifier = "legerement_droite"
	Right       Modifier = "droite"
	SharpRight  Modifier = "fortement_droite"
	Backwards   Modifier = "demi_tour"
)

// MatrixQuery asks for the durations from each origin to each destination.
type MatrixQuery struct {
	Profile
	Origins, Destinations []Bound
}

// Matrix has a row for each origin and a column for each destination: the duration and the distance of the best route, or
// Unreachable. A cell equals the result of a Query with the same two bounds.
type Matrix struct {
	OriginAccesses, DestinationAccesses []Access // the best of each bound; zero for a bound too far from any road
	Durations, Distances                [][]float64
}

// Unreachable stands in a matrix for a pair without a route, and for a bound that is too far from any road.
const Unreachable = -1

// NearestQuery asks for the destinations that are nearest to an origin by the profile's optimization.
type NearestQuery struct {
	Profile
	Origin       Bound
	Destinations []Bound
	Limit        int
}

// Nearest is the access of the origin and the destinations found, the nearest first; ties keep their order. Unreachable ones are
// left out.
type Nearest struct {
	Access Access
	Found  []NearDestination
}

// NearDestination is a destination of a NearestQuery by its index.
type NearDestination struct {
	Index              int
	Access             Access
	Distance, Duration float64
}

// CostType is what the limits of an isochrone measure.
type CostType string

// The cost types.
const (
	ByDuration CostType = "duration"
	ByDistance CostType = "distance"
)

// IsochroneQuery asks for the area that can be reached from a bound, or from which the bound can be reached, within each limit:
// seconds or metres, ascending.
type IsochroneQuery struct {
	Profile
	Center  Bound
	Cost    CostType
	Limits  []float64
	Arrival bool // travel towards the centre
}

// Isochrone has an area for each limit, in their order.
type Isochrone struct {
	Access Access
	Areas  []Area
}

// Area is a set of polygons (a GeoJSON MultiPolygon). The first ring of each polygon is its border, counter-clockwise; the others
// are holes, clockwise. The last position of a ring repeats its first.
type Area [][][]geo.Point

// Network describes what a router answers from.
type Network struct {
	Engine      string    // own, osrm or valhalla
	Date        time.Time // of the data; zero if unknown
	Modes       []Mode
	IsSynthetic bool // the roads are invented
	Attribution string
}

// DateText is the day of the data, such as 2026-11-21; "" if it is unknown.
func (n Network) DateText() string {
	if n.Date.IsZero() {
		return ""
	}
	return n.Date.UTC().Format(time.DateOnly)
}

// OSMAttribution is the notice that the licence of OpenStreetMap's data requires.
const OSMAttribution = "© les contributeurs d'OpenStreetMap, ODbL 1.0"

// Router finds routes. It is safe for concurrent use. A call fails with ctx's error when ctx ends. Besides the errors of its
// methods, each call may fail with ErrUnavailable, ErrUnsupported or ErrTooMuchWork.
type Router interface {
	// Route fails with ErrNoRoute, and with an *OffRoadError for the first bound that is too far from any road.
	Route(context.Context, Query) (Answer, error)

	// Matrix has Unreachable where Route would fail.
	Matrix(context.Context, MatrixQuery) (Matrix, error)

	// Nearest fails with an *OffRoadError for the origin alone.
	Nearest(context.Context, NearestQuery) (Nearest, error)

	// Isochrone fails with an *OffRoadError for the centre.
	Isochrone(context.Context, IsochroneQuery) (Isochrone, error)

	// Network describes the network that is served now. Without one it fails with ErrUnavailable.
	Network(context.Context) (Network, error)
}

var (
	// ErrNoRoute says that no way leads through the bounds.
	ErrNoRoute = errors.New("no route")
	// ErrUnavailable says that no network is loaded or that the server of the router does not answer as it should.
	ErrUnavailable = errors.New("the routing engine is unavailable")
	// ErrUnsupported says that the router cannot answer questions of this kind.
	ErrUnsupported = errors.New("the routing engine does not support this")
	// ErrTooMuchWork says that an answer would have cost more than the router spends on one question.
	ErrTooMuchWork = errors.New("too much work for one question")
)

// OffRoadError says that a bound is farther than MaxAccessDistance from any road of the mode.
type OffRoadError struct{ Bound int } // index among the bounds of the query

func (e *OffRoadError) Error() string {
	return fmt.Sprintf("bound %d is too far from any road", e.Bound)
}
