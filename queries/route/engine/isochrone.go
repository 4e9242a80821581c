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
	lines, ok := m.lines.Get().(*reachedLines)
	if !ok {
		lines = &reachedLines{mode: m}
	}
	defer m.lines.Put(lines)
	lines.unit, lines.all = unit, lines.all[:0]
	widest := 0.0
	for _, limit := range q.Limits {
		widest = max(widest, limit)
	}
	err = m.searcher.Reach(ctx, q.Profile, places, uint32(math.Round(beyondLimits*widest*unit)), q.Arrival, lines.add)
	if err != nil {
		return a, err
	}
	a.Areas, err = isochrone.Areas(lines.all, q.Limits, func(done time.Duration) error { return worker.Yield(ctx, done) })
	return a, err
}

// reachedLines collects the geometry of reached edges, with what it costs to reach each position. Its memory is used again: the
// lines of a city are tens of megabytes.
type reachedLines struct {
	mode    *modeEngine
	unit    float64 // of a cost, in a second or a metre
	points  []route.Point
	lengths []float64 // of the lines between points
	all     []isochrone.Line
}

// add appends the lines of an edge. start and end are the costs at its tail and its head: on the edge of the centre one of them
// is negative, and what lies behind the centre is cut off.
func (l *reachedLines) add(edge uint32, start, end int64) {
	s := l.mode.graph.Segment[edge]
	l.points = l.mode.layer.AppendGeometry(l.points[:0], s>>1, s&1 == 1)
	points := l.points
	if start < 0 || end < 0 {
		zero := float64(start) / float64(start-end) // how far along the edge the centre lies
		if start < 0 {
			points, start = cutLine(points, zero, 1), 0
		} else {
			points, end = cutLine(points, 0, zero), 0
		}
	}
	whole := l.measure(points)
	from, perLength := float64(start)/l.unit, 0.0
	if whole > 0 {
		perLength = float64(end-start) / l.unit / whole
	}
	for i, length := range l.lengths {
		to := from + perLength*length
		l.all = append(l.all, isochrone.Line{From: points[i], To: points[i+1], FromCost: from, ToCost: to})
		from = to
	}
}

// measure keeps the lengths of the lines between points, in degrees of latitude, and returns their sum. An edge is short enough for one
// scale of longitudes.
func (l *reachedLines) measure(points []route.Point) (sum float64) {
	scale := math.Cos(points[0].Lat * math.Pi / 180)
	l.lengths = l.lengths[:0]
	for i := 1; i < len(points); i++ {
		x, y := (points[i].Lon-points[i-1].Lon)*scale, points[i].Lat-points[i-1].Lat
		l.lengths = append(l.lengths, math.Sqrt(x*x+y*y))
		sum += l.lengths[i-1]
	}
	return sum
}
