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
	for _, limit := range q.Limits {
		widest = max(widest, limit)
	}
	err = m.searcher.Reach(ctx, q.Profile, places, uint32(math.Round(beyondLimits*widest*unit)), q.Arrival, roads.add)
	if err != nil {
		return a, err
	}
	a.Areas, err = isochrone.Areas(roads.all, q.Limits, func(done time.Duration) error { return worker.Yield(ctx, done) })
	return a, err
}

// reachedRoads collects the geometry of reached edges, with what it costs to reach their ends. Most segments are reached in both
// directions: one that lies whole within a limit is not collected again for a direction that is reached no sooner. Its memory is
// used again: the roads of a city are tens of megabytes.
type reachedRoads struct {
	mode     *modeEngine
	unit     float64 // of a cost, in a second or a metre
	limits   []float64
	points   []route.Point
	all      []isochrone.Road
	drawn    []uint8  // of each segment one more than the number of the limit that it lies whole within; 0: it does not yet
	segments []uint32 // that are drawn
}

// begin forgets the roads of the last call.
func (r *reachedRoads) begin(unit float64, limits []float64) {
	for _, s := range r.segments {
		r.drawn[s] = 0
	}
	r.unit, r.limits, r.points, r.all, r.segments = unit, limits, r.points[:0], r.all[:0], r.segments[:0]
}

// add appends an edge. start and end are the costs at its tail and its head: on the edge of the centre one of them is negative, and
// what lies behind the centre is cut off.
func (r *reachedRoads) add(edge uint32, start, end int64) {
	road := isochrone.Road{FromCost: float64(start) / r.unit, ToCost: float64(end) / r.unit}
	s := r.mode.graph.Segment[edge]
	first, last := r.limitOf(min(road.FromCost, road.ToCost)), r.limitOf(max(road.FromCost, road.ToCost))
	if drawn := r.drawn[s>>1]; drawn != 0 && drawn-1 <= first {
		return
	}
	begin := len(r.points)
	r.points = r.mode.layer.AppendGeometry(r.points, s>>1, s&1 == 1)
	road.Points = r.points[begin:len(r.points):len(r.points)]
	switch zero := float64(start) / float64(start-end); { // how far along the edge the centre lies
	case start < 0:
		road.Points, road.FromCost = cutLine(road.Points, zero, 1), 0
	case end < 0:
		road.Points, road.ToCost = cutLine(road.Points, 0, zero), 0
	case first == last:
		r.drawn[s>>1] = last + 1
		r.segments = append(r.segments, s>>1)
	}
	r.all = append(r.all, road)
}

// limitOf is the number of the first limit that a cost is within; of a cost beyond all that of limits.
func (r *reachedRoads) limitOf(cost float64) (k uint8) {
	for int(k) < len(r.limits) && cost > r.limits[k] {
		k++
	}
	return k
}
