package engine

import (
	"context"
	"math"
	"slices"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/isochrone"
	"lieudit/queries/worker"
	"lieudit/schemas/geo"
)

// beyondLimits times the widest limit is how far the search goes. The roads just outside the limit show package isochrone where the
// area must end.
const beyondLimits = 1.1

// Isochrone implements route.Router. Limits of distance are measured along the shortest paths, whatever the optimization. Searcher.Reach
// gives the edges with their costs; package isochrone draws the areas around them.
func (e *Engine) Isochrone(ctx context.Context, q route.IsochroneQuery) (a route.Isochrone, err error) {
	m, err := e.mode(ctx, q.Mode)
	if err != nil {
		return a, err
	}
	center, _ := m.snap(q.Center)
	if center == nil {
		return a, &route.OffRoadError{}
	}
	a.Access = center.best()
	places := center.from
	if q.Arrival {
		places = center.to
	}
	unit := float64(graph.DurationUnit)
	q.Optimization = route.Fastest
	if q.Cost == route.ByDistance {
		unit, q.Optimization = graph.DistanceUnit, route.Shortest
	}
	roads, ok := m.reached.Get().(*reachedRoads)
	if !ok {
		roads = &reachedRoads{mode: m, whole: make([]uint8, m.layer.Segments())}
	}
	defer m.reached.Put(roads)
	roads.begin(unit, q.Limits)
	widest := 0.0
	for _, limit := range roads.limits {
		widest = max(widest, limit)
	}
	err = m.searcher.Reach(ctx, q.Profile, places, uint32(math.Round(beyondLimits*widest)), q.Arrival, roads.add)
	if err != nil {
		return a, err
	}
	a.Areas, err = roads.drawer.Areas(roads.read(), roads.limits, func(done time.Duration) error { return worker.Yield(ctx, done) })
	return a, err
}

// reachedRoads are the reached edges, with the costs of reaching their ends. Nearly all segments lie entirely within a limit, or
// entirely between two, and most are reached in both directions: then only the lower limit counts. Their geometry is read while
// they are drawn, in the order of the file, which is several times faster than the order of the search.
type reachedRoads struct {
	mode   *modeEngine
	limits []float64 // in the units of the graph, as all costs
	bounds []int64   // the largest whole costs within the limits
	whole  []uint8   // for each segment, one more than the number of the limit that it lies entirely within; 0: within no limit
	edges  []reachedEdge
	parts  []isochrone.Road
	points []route.FixedPoint // of parts, and of the whole road that is being read
	drawer isochrone.Drawer
}

// reachedEdge is an edge with the costs at its tail and at its head.
type reachedEdge struct {
	edge       uint32
	start, end int64
}

// begin discards the roads of the previous call. unit is how many units of the graph the limits count as one.
func (r *reachedRoads) begin(unit float64, limits []float64) {
	clear(r.whole)
	r.limits, r.bounds, r.edges, r.parts, r.points = r.limits[:0], r.bounds[:0], r.edges[:0], r.parts[:0], r.points[:0]
	for _, limit := range limits {
		r.limits, r.bounds = append(r.limits, limit*unit), append(r.bounds, int64(math.Floor(limit*unit)))
	}
}

// add adds an edge. start and end are the costs at its tail and its head: on the edge of the centre one of them is negative.
func (r *reachedRoads) add(edge uint32, start, end int64) {
	first := r.limitOf(min(start, end))
	if int(first) < len(r.bounds) && max(start, end) > r.bounds[first] || start < 0 || end < 0 {
		r.edges = append(r.edges, reachedEdge{edge, start, end})
		return
	}
	if whole := &r.whole[r.mode.graph.Segment[edge]>>1]; *whole == 0 || *whole > first+1 {
		*whole = first + 1
	}
}

// limitOf is the number of the first limit that a cost is within; the number of limits if the cost is beyond all.
func (r *reachedRoads) limitOf(cost int64) (k uint8) {
	for int(k) < len(r.bounds) && cost > r.bounds[k] {
		k++
	}
	return k
}

// read returns the roads from which the area is drawn. They are valid until begin.
func (r *reachedRoads) read() isochrone.Roads {
	for _, edge := range r.edges {
		r.readPart(edge)
	}
	box, around := r.boxes()
	if around.IsRound() {
		return isochrone.NewRoads(r.readWhole(), r.limits)
	}
	return isochrone.Roads{Whole: r.eachWhole, Box: box, Parts: r.parts}
}

// eachWhole visits the roads that lie entirely within a limit, or between two.
func (r *reachedRoads) eachWhole(visit func(limit int, points []route.FixedPoint) bool) {
	begin := len(r.points)
	for segment, whole := range r.whole {
		if whole == 0 {
			continue
		}
		r.points = r.mode.layer.AppendFixed(r.points[:begin], uint32(segment))
		if !visit(int(whole-1), r.points[begin:]) {
			return
		}
	}
}

// boxes returns the box of all whole roads that are within a limit, and one around all. The points of a road are read only if the box
// may have to grow.
func (r *reachedRoads) boxes() (box, around isochrone.Box) {
	box, around = isochrone.EmptyBox(), isochrone.EmptyBox()
	begin := len(r.points)
	for segment, whole := range r.whole {
		if whole == 0 {
			continue
		}
		near := isochrone.NewBox(r.mode.layer.BoxAround(uint32(segment)))
		around.Include(near)
		if int(whole) <= len(r.limits) && !box.Holds(near) {
			r.points = r.mode.layer.AppendFixed(r.points[:begin], uint32(segment))
			box.HoldAll(r.points[begin:])
		}
	}
	return box, around
}

// readWhole returns all roads; those that lie entirely within a limit, or between two, get the cost of the upper limit.
func (r *reachedRoads) readWhole() []isochrone.Road {
	all := r.parts
	for k, points := range r.eachWhole {
		cost := math.MaxFloat64 // beyond all
		if k < len(r.limits) {
			cost = r.limits[k]
		}
		all = append(all, isochrone.Road{Points: slices.Clone(points), FromCost: cost, ToCost: cost})
	}
	return all
}

// readPart reads an edge on which the cost crosses a limit, unless the segment is reached sooner in the other direction. The part
// behind the centre is cut off. The road follows its geometry, whichever way the edge goes.
func (r *reachedRoads) readPart(part reachedEdge) {
	s := r.mode.graph.Segment[part.edge]
	road := isochrone.Road{FromCost: float64(part.start), ToCost: float64(part.end)}
	if whole := r.whole[s>>1]; whole > 0 && whole-1 <= r.limitOf(min(part.start, part.end)) {
		return
	}
	if s&1 == backward {
		road.FromCost, road.ToCost = road.ToCost, road.FromCost
	}
	road.Points = r.pointsOf(s >> 1)
	switch zero := road.FromCost / (road.FromCost - road.ToCost); { // how far along the road the centre lies
	case road.FromCost < 0:
		road.Points, road.FromCost = cutFixed(road.Points, zero, 1), 0
	case road.ToCost < 0:
		road.Points, road.ToCost = cutFixed(road.Points, 0, zero), 0
	}
	r.parts = append(r.parts, road)
}

// pointsOf reads the points of a segment. They are valid until begin.
func (r *reachedRoads) pointsOf(segment uint32) []route.FixedPoint {
	begin := len(r.points)
	r.points = r.mode.layer.AppendFixed(r.points, segment)
	return r.points[begin:len(r.points):len(r.points)]
}

// cutFixed is cutLine for fixed points.
func cutFixed(points []route.FixedPoint, from, to float64) []route.FixedPoint {
	var line []geo.Point
	for _, p := range points {
		line = append(line, p.Point())
	}
	var cut []route.FixedPoint
	for _, p := range cutLine(line, from, to) {
		cut = append(cut, route.Fix(p))
	}
	return cut
}
