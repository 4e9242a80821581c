package engine

import (
	"context"
	"math"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/isochrone"
	"lieudit/queries/worker"
)

// beyondLimits times the widest limit is how far the search goes. The roads just outside the limit tell package isochrone where the area
// must end.
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
		roads = &reachedRoads{mode: m, drawn: make([]uint8, m.layer.Segments())}
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
	a.Areas, err = roads.drawer.Areas(roads.all, roads.limits, func(done time.Duration) error { return worker.Yield(ctx, done) })
	return a, err
}

// reachedRoads collects the geometry of reached edges, with what it costs to reach their ends. Most segments are reached in both
// directions: one that lies whole within a limit is not collected again for a direction that is reached no sooner. Its memory is
// used again: the roads of a city are some megabytes.
type reachedRoads struct {
	mode     *modeEngine
	limits   []float64 // in the units of the graph, as all costs
	points   []route.FixedPoint
	all      []isochrone.Road
	drawn    []uint8  // of each segment one more than the number of the limit that it lies whole within; 0: it does not yet
	segments []uint32 // that are drawn
	drawer   isochrone.Drawer
}

// begin forgets the roads of the last call. unit is how many units of the graph the limits count as one.
func (r *reachedRoads) begin(unit float64, limits []float64) {
	for _, s := range r.segments {
		r.drawn[s] = 0
	}
	r.limits, r.points, r.all, r.segments = r.limits[:0], r.points[:0], r.all[:0], r.segments[:0]
	for _, limit := range limits {
		r.limits = append(r.limits, limit*unit)
	}
}

// add appends an edge. start and end are the costs at its tail and its head: on the edge of the centre one of them is negative, and
// what lies behind the centre is cut off. Roads are collected along their geometry, whichever way the edge goes.
func (r *reachedRoads) add(edge uint32, start, end int64) {
	s := r.mode.graph.Segment[edge]
	road := isochrone.Road{FromCost: float64(start), ToCost: float64(end)}
	if s&1 == backward {
		road.FromCost, road.ToCost = road.ToCost, road.FromCost
	}
	first, last := r.limitOf(min(road.FromCost, road.ToCost)), r.limitOf(max(road.FromCost, road.ToCost))
	if drawn := r.drawn[s>>1]; drawn != 0 && drawn-1 <= first {
		return
	}
	begin := len(r.points)
	r.points = r.mode.layer.AppendFixed(r.points, s>>1)
	road.Points = r.points[begin:len(r.points):len(r.points)]
	switch zero := road.FromCost / (road.FromCost - road.ToCost); { // how far along the road the centre lies
	case road.FromCost < 0:
		road.Points, road.FromCost = cutFixed(road.Points, zero, 1), 0
	case road.ToCost < 0:
		road.Points, road.ToCost = cutFixed(road.Points, 0, zero), 0
	case first == last:
		r.drawn[s>>1] = last + 1
		r.segments = append(r.segments, s>>1)
	}
	r.all = append(r.all, road)
}

// cutFixed is cutLine for fixed points.
func cutFixed(points []route.FixedPoint, from, to float64) []route.FixedPoint {
	var line []route.Point
	for _, p := range points {
		line = append(line, p.Point())
	}
	var cut []route.FixedPoint
	for _, p := range cutLine(line, from, to) {
		cut = append(cut, p.Fixed())
	}
	return cut
}

// limitOf is the number of the first limit that a cost is within; of a cost beyond all that of limits.
func (r *reachedRoads) limitOf(cost float64) (k uint8) {
	for int(k) < len(r.limits) && cost > r.limits[k] {
		k++
	}
	return k
}
