package route

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"lieudit/queries/route"
	"lieudit/queries/route/guidance"
	"lieudit/schemas/geo"
)

// verdict is how our own route of a pair differs from those of both peers.
type verdict string

// The verdicts, the worst first. A pair that a peer does not route is peersDisagree, and does not count.
const (
	noResults     verdict = "no_results"
	longer        verdict = "longer"   // than both by a tenth
	otherDuration verdict = "duration" // of nearly the same way: over 12 % and 40 s off OSRM's
	shorter       verdict = "shorter"  // than both by a tenth: it may use forbidden roads
	slower        verdict = "slower"   // than OSRM's by 5 s: only for pairs of junctions
	agrees        verdict = "agrees"
	peersDisagree verdict = "not both peers route it"
)

// answeredPair is one pair with the answers of all routers: our own first, OSRM second, Valhalla third.
type answeredPair struct {
	points  [2]geo.Point
	answers [3]route.Answer
	errs    [3]error
}

// askPair asks all routers. That there is no route is an answer; any other error of a peer leaves it without a route.
func askPair(ctx context.Context, routers []namedRouter, points [2]geo.Point) (p answeredPair, err error) {
	p.points = points
	query := route.Query{Profile: car, Bounds: []route.Bound{{Point: points[0]}, {Point: points[1]}}, Geometry: true}
	for i, r := range routers {
		p.answers[i], p.errs[i] = r.Route(ctx, query)
		failures := 0
		if err := r.countError(ctx, otherThanNoRoute(p.errs[i]), &failures); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *answeredPair) distance(router int) float64 { return p.answers[router].Routes[0].Distance }
func (p *answeredPair) duration(router int) float64 { return p.answers[router].Routes[0].Duration }

// Bounds of the verdicts.
const (
	tenth          = 1.1
	fewMetres      = 25.0 // a tenth of a short way is less than the distance from its ends to the road
	sameWay        = 0.02
	durationShare  = 0.12
	durationAmount = 40.0
)

func (p *answeredPair) verdict() verdict {
	switch {
	case p.errs[1] != nil || p.errs[2] != nil:
		return peersDisagree
	case p.errs[0] != nil:
		return noResults
	}
	own, least, most := p.distance(0), min(p.distance(1), p.distance(2)), max(p.distance(1), p.distance(2))
	switch {
	case own > tenth*most && own > most+fewMetres:
		return longer
	case own < least/tenth && own < least-fewMetres:
		return shorter
	}
	if difference := math.Abs(p.duration(0) - p.duration(1)); p.isSameWay(1) &&
		difference > durationAmount && difference > durationShare*p.duration(1) {
		return otherDuration
	}
	return agrees
}

// isSameWay reports whether our own way is as long as a peer's.
func (p *answeredPair) isSameWay(peer int) bool {
	return math.Abs(p.distance(0)-p.distance(peer)) <= sameWay*p.distance(peer)
}

// excess returns how much worse a pair is than the better peer. The pairs of a verdict are sorted by it.
func (p *answeredPair) excess() float64 {
	switch {
	case p.errs[0] != nil:
		return p.distance(1)
	case p.verdict() == otherDuration:
		return math.Abs(math.Log(max(p.duration(0), 1) / max(p.duration(1), 1)))
	}
	return math.Abs(math.Log(max(p.distance(0), 1) / max(min(p.distance(1), p.distance(2)), 1)))
}

// judge finds out why pairs differ.
type judge struct {
	own    route.Router
	roads  *mapRoads
	reckon func([]geo.Point) reckoning // our own engine's costs of a way
}

// The thresholds beyond which two routes differ in a fact.
const (
	sameAccess   = 3.0  // metres between accesses that are the same
	farther      = 1.0  // metres by which an access is farther than another
	factApart    = 20.0 // metres on roads of a fact
	againstAngle = 120  // degrees between the directions in which two routes begin
)

// explain names the kind of a difference from OSRM's route and describes it. It returns the first reason that holds: where the ends meet the
// network, in which direction they are left, what only one side uses; otherwise our own engine's costs of OSRM's way.
func (j *judge) explain(ctx context.Context, p *answeredPair) (kind, detail string, err error) {
	if offRoad, ok := errors.AsType[*route.OffRoadError](p.errs[0]); ok {
		return "access", fmt.Sprintf("bound %d is off the road", offRoad.Bound), nil
	}
	peers := j.roads.usageOf(p.answers[1].Routes[0].Geometry)
	if p.errs[0] != nil {
		return j.explainNone(ctx, p, &peers)
	}
	if kind, detail := j.explainEnds(p); kind != "" {
		return kind, detail, nil
	}
	own := j.roads.usageOf(p.answers[0].Routes[0].Geometry)
	if kind, detail := explainUsage(&own, &peers); kind != "" {
		return kind, detail, nil
	}
	if kind, detail := j.explainDirection(p); kind != "" {
		return kind, detail, nil
	}
	return j.explainChoice(ctx, p, &own, &peers)
}

// explainNone explains a missing route of our own by what it would have had to use.
func (j *judge) explainNone(ctx context.Context, p *answeredPair, peers *usage) (kind, detail string, err error) {
	if kind, detail := explainUsage(&usage{}, peers); kind == "gate" || kind == "restricted" || kind == "ferry" || kind == "forbidden" {
		return kind, detail, nil
	}
	kind, detail, err = j.explainChoice(ctx, p, &usage{}, peers)
	if kind == "choice" { // there are ways between other accesses
		kind = "access"
	}
	return kind, detail, err
}

// explainEnds compares accesses.
func (j *judge) explainEnds(p *answeredPair) (kind, detail string) {
	for end, name := range []string{"origin", "destination"} {
		own, osrm, valhalla := p.accesses(end)
		apart := geo.Distance(own.Point, osrm.Point)
		nearest := min(osrm.Distance, valhalla.Distance)
		switch {
		case apart <= sameAccess:
			continue
		case own.Distance > nearest+farther:
			kind = j.secondRoad(p, end)
		case nearest > own.Distance+farther:
			kind = "peers farther" // they ignore the small part of the network that has the nearest road
		case osrm.Distance > own.Distance+farther:
			kind = "OSRM farther"
		default:
			kind = "as near" // two roads are equally near, like both carriageways for somebody between them
		}
		return kind, fmt.Sprintf("%s: own %.0f m away on %q, OSRM %.0f m on %q, Valhalla %.0f m",
			name, own.Distance, own.Street, osrm.Distance, osrm.Street, valhalla.Distance)
	}
	return "", ""
}

// accesses returns the accesses of an end. If Valhalla has no route, OSRM's access stands in for Valhalla's.
func (p *answeredPair) accesses(end int) (own, osrm, valhalla route.Access) {
	own, osrm = p.answers[0].Accesses[end], p.answers[1].Accesses[end]
	if p.errs[2] != nil {
		return own, osrm, osrm
	}
	return own, osrm, p.answers[2].Accesses[end]
}

// secondRoad returns the kind of an end at which our own engine takes a road a little farther away than the nearest one, because the way is
// shorter from there. The traveller may be unable to reach that road: because of a wall that is not in the way to the nearest road, or because
// one of the two roads is above the other.
func (j *judge) secondRoad(p *answeredPair, end int) string {
	own, osrm := p.answers[0].Accesses[end].Point, p.answers[1].Accesses[end].Point
	if name := j.roads.wallBetween(p.points[end], own); name != "" && j.roads.wallBetween(p.points[end], osrm) == "" {
		return "second road, beyond a " + name
	}
	if j.roads.levelAt(own) != j.roads.levelAt(osrm) {
		return "second road, on another level"
	}
	return "second road"
}

// explainDirection compares the directions of the first and of the last metres of ways between the same ends.
func (j *judge) explainDirection(p *answeredPair) (kind, detail string) {
	own, osrm := p.answers[0].Routes[0].Geometry, p.answers[1].Routes[0].Geometry
	if j.reckon != nil {
		if r := j.reckon(osrm); r.isOpen {
			return "", "" // our own engine's costs explain more
		}
	}
	for end, name := range []string{"origin", "destination"} {
		if a := angleBetween(endBearing(own, end == 1), endBearing(osrm, end == 1)); a > againstAngle {
			return "direction", name + ": OSRM goes the other way"
		}
	}
	return "", ""
}

// endBearing returns the direction in which a line leaves its beginning, or its end if it is followed backwards.
func endBearing(line []geo.Point, atEnd bool) float64 {
	if len(line) < 2 {
		return 0
	}
	if atEnd {
		line = slices.Clone(line)
		slices.Reverse(line)
	}
	return guidance.Bearing(line)
}

func angleBetween(a, b float64) float64 {
	d := math.Mod(math.Abs(a-b), 360)
	return min(d, 360-d)
}

// explainUsage compares the gates, and the facts that may forbid a way.
func explainUsage(own, peers *usage) (kind, detail string) {
	if len(own.gates) != len(peers.gates) {
		return "gate", fmt.Sprintf("own %s, OSRM %s", listOrNone(own.gates), listOrNone(peers.gates))
	}
	for bit, name := range useNames {
		if fact := roadUse(1 << bit); fact < useToll && math.Abs(own.on(fact)-peers.on(fact)) > factApart {
			return name, fmt.Sprintf("own %.0f m, OSRM %.0f m", own.on(fact), peers.on(fact))
		}
	}
	return "", ""
}

func listOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// viaShares are the shares of OSRM's way at which our own engine is made to pass.
var viaShares = []float64{0.25, 0.5, 0.75}

// explainChoice asks our own engine for OSRM's way, through points on it. If the engine can drive it, it prefers its own way, and the class of
// roads on which the two differ most is reported. If it cannot, something on OSRM's way is closed to it.
func (j *judge) explainChoice(ctx context.Context, p *answeredPair, own, peers *usage) (kind, detail string, err error) {
	line := p.answers[1].Routes[0].Geometry
	if j.reckon != nil && p.errs[0] == nil {
		if kind, detail := explainReckoning(p, j.reckon(p.answers[0].Routes[0].Geometry), j.reckon(line), own, peers); kind != "" {
			return kind, detail, nil
		}
	}
	query := route.Query{Profile: car, Bounds: []route.Bound{{Point: p.points[0]}}}
	for _, share := range viaShares {
		query.Bounds = append(query.Bounds, route.Bound{Point: pointAlong(line, share)})
	}
	query.Bounds = append(query.Bounds, route.Bound{Point: p.points[1]})
	a, err := j.own.Route(ctx, query)
	if otherThanNoRoute(err) != nil {
		return "", "", err
	}
	if err != nil {
		return "closed", "OSRM's way is closed to the own engine", nil
	}
	via := a.Routes[0]
	if via.Distance > tenth*p.distance(1)+fewMetres {
		return "closed", fmt.Sprintf("along OSRM's way the own engine drives %.0f m", via.Distance), nil
	}
	return "choice", fmt.Sprintf("OSRM's way takes %.0f s by own reckoning; %s", via.Duration, largestDifference(own, peers)), nil
}

// alikeShare and alikeAmount bound differences between durations that nobody would notice.
const (
	alikeShare  = 0.05
	alikeAmount = 5.0
)

// explainReckoning compares our own engine's costs of both ways. It returns no kind if a way has nodes that are not in our network.
func explainReckoning(p *answeredPair, own, osrm reckoning, ownUse, osrmUse *usage) (kind, detail string) {
	if !own.isOpen {
		return "", ""
	}
	if !osrm.isOpen {
		if osrm.reason == turnForbidden {
			return "forbidden turn", "the own engine may not take a turn of OSRM's way"
		}
		return "", ""
	}
	detail = fmt.Sprintf("by own reckoning own %.0f s, OSRM's way %.0f s (chosen by %.0f and %.0f); %s",
		own.duration(), osrm.duration(), own.weight(), osrm.weight(), largestDifference(ownUse, osrmUse))
	more := osrm.duration() - own.duration()
	switch {
	case math.Abs(more) < sameReckoning && math.Abs(own.weight()-osrm.weight()) < sameReckoning:
		return "told time", fmt.Sprintf("the same way: own %.0f s driving and %.0f s turns, OSRM %.0f s", own.driving, own.turns, p.duration(1))
	case osrm.weight() < own.weight()-1:
		return "worse by own reckoning", detail
	case math.Abs(more) <= max(alikeAmount, alikeShare*own.duration()):
		return "choice, like time", detail
	case more < 0:
		return "choice, better roads", detail // our way is slower, on preferred roads
	}
	return "choice, faster", detail
}

// sameReckoning is how many seconds two costs of the same way may differ.
const sameReckoning = 0.5

// largestDifference returns the class of roads on which two routes differ most.
func largestDifference(own, peers *usage) string {
	best, text := 0.0, "the same classes"
	for bit := range useNames {
		fact := roadUse(1 << bit)
		if d := math.Abs(own.on(fact) - peers.on(fact)); fact >= useToll && d > max(best, factApart) {
			best, text = d, fmt.Sprintf("%s %.0f m, OSRM %.0f m", useNames[bit], own.on(fact), peers.on(fact))
		}
	}
	return text
}

// pointAlong returns the point of a line after a share of its length.
func pointAlong(line []geo.Point, share float64) geo.Point {
	whole := 0.0
	for i := 1; i < len(line); i++ {
		whole += geo.Distance(line[i-1], line[i])
	}
	left := share * whole
	for i := 1; i < len(line); i++ {
		length := geo.Distance(line[i-1], line[i])
		if length > 0 && length >= left {
			return geo.Between(line[i-1], line[i], left/length)
		}
		left -= length
	}
	return line[len(line)-1]
}
