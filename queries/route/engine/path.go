package engine

import (
	"context"
	"math"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/guidance"
	"lieudit/queries/route/profile"
	"lieudit/queries/route/search"
	"lieudit/queries/worker"
	"lieudit/schemas/geo"
)

// The approximate times to add up an edge of a path, to append its geometry, and to turn it into steps.
const (
	edgeWork     = 50 * time.Nanosecond
	geometryWork = 200 * time.Nanosecond
	stepsWork    = 2500 * time.Nanosecond
)

// workOf estimates how long it takes to make a leg of n edges.
func workOf(q route.Query, edges int) time.Duration {
	work := edgeWork
	if q.Geometry {
		work += geometryWork
	}
	if q.Steps {
		work += stepsWork
	}
	return time.Duration(edges) * work
}

// newRoute is the route along paths, a leg for each, with as much detail as the query asks for. Between two legs it gives way to
// other requests.
func (m *modeEngine) newRoute(ctx context.Context, q route.Query, paths []search.Path) (r route.Route, err error) {
	avoided := map[route.Avoid]float64{}
	for i := range paths {
		if err := worker.Yield(ctx, 0); err != nil {
			return r, err
		}
		p := &paths[i]
		worker.Count(ctx, workOf(q, len(p.Edges)))
		var line pathLine
		if q.Geometry || q.Steps {
			line = m.newPathLine(p)
		}
		r.Legs = append(r.Legs, m.newLeg(q, p, line, q.Bounds[i+1].Point))
		r.Distance += metres(p.Cost.Distance)
		r.Duration += seconds(p.Cost.Duration)
		r.TollDistance += m.measureKind(p, route.Tolls)
		for kind := route.Tolls; kind <= route.Ferries; kind <<= 1 {
			if q.Avoid&kind != 0 {
				avoided[kind] += m.measureKind(p, kind)
			}
		}
		if q.Geometry {
			r.Geometry = line.appendTo(r.Geometry)
		}
	}
	guidance.MarkTurnsBack(r.Legs)
	for kind := route.Tolls; kind <= route.Ferries; kind <<= 1 {
		if avoided[kind] > 0 {
			r.Avoided = append(r.Avoided, route.Avoided{Kind: kind, Distance: avoided[kind]})
		}
	}
	return r, nil
}

// newLeg is the leg along a path to a bound. The position of the bound decides on which side of the road the arrival is.
func (m *modeEngine) newLeg(q route.Query, p *search.Path, line pathLine, destination geo.Point) route.Leg {
	leg := route.Leg{Distance: metres(p.Cost.Distance), Duration: seconds(p.Cost.Duration)}
	if q.Steps {
		stretches := dropUndriven(m.stretches(p, line))
		leg.Steps = guidance.Steps(m.mode, stretches)
		last := &leg.Steps[len(leg.Steps)-1]
		last.Maneuver.Modifier = guidance.Side(stretches[len(stretches)-1].Points, destination)
	}
	return leg
}

// measureKind is the distance of a path on roads of a kind, in metres.
func (m *modeEngine) measureKind(p *search.Path, kind route.Avoid) float64 {
	var sum uint32
	for i, e := range p.Edges {
		if route.Avoid(m.graph.Flags[e])&kind != 0 {
			sum += m.edgeCost(p, i).Distance
		}
	}
	return metres(sum)
}

// edgeCost is the cost of edge i of a path, without turns: only a part of the first and of the last edge.
func (m *modeEngine) edgeCost(p *search.Path, i int) search.Cost {
	e, last := p.Edges[i], len(p.Edges)-1
	whole := search.Cost{Duration: m.graph.Duration[e], Distance: m.graph.Distance[e]}
	switch {
	case i == 0 && last == 0:
		return search.Cost{Duration: p.End.Before.Duration - p.Start.Before.Duration, Distance: p.End.Before.Distance - p.Start.Before.Distance}
	case i == 0:
		return p.Start.After
	case i == last:
		return p.End.Before
	}
	return whole
}

// appendEdge appends the geometry of edge i of a path: only a part of the first and of the last edge.
func (m *modeEngine) appendEdge(dst []geo.Point, p *search.Path, i int) []geo.Point {
	e := p.Edges[i]
	first := len(dst)
	dst = m.layer.AppendGeometry(dst, m.graph.Segment[e]>>1, m.graph.Segment[e]&1 == 1)
	from, to := 0.0, 1.0
	if i == 0 {
		from = fractionOf(p.Start)
	}
	if i == len(p.Edges)-1 {
		to = fractionOf(p.End)
	}
	if from == 0 && to == 1 {
		return dst
	}
	return append(dst[:first], cutLine(dst[first:], from, to)...)
}

// fractionOf is how much of its edge lies before a place.
func fractionOf(p search.Place) float64 {
	if whole := p.Before.Distance + p.After.Distance; whole > 0 {
		return float64(p.Before.Distance) / float64(whole)
	}
	return 0
}

// pathLine is the geometry of a path. Its edges share the positions where one ends and the next begins.
type pathLine struct {
	points []geo.Point
	first  []int // where the points of each edge begin, and finally the last point of the last edge
}

// newPathLine reads the geometry of a path: once for the whole way, its legs and its steps, which share the memory.
func (m *modeEngine) newPathLine(p *search.Path) pathLine {
	const pointsAnEdge = 4 // about
	l := pathLine{points: make([]geo.Point, 0, pointsAnEdge*len(p.Edges)), first: make([]int, 0, len(p.Edges)+1)}
	for i := range p.Edges {
		if i > 0 {
			l.points = l.points[:len(l.points)-1] // the edge begins with this point
		}
		l.first = append(l.first, len(l.points))
		l.points = m.appendEdge(l.points, p, i)
	}
	l.first = append(l.first, len(l.points)-1)
	return l
}

// edge is the geometry of edge i: at least two positions.
func (l pathLine) edge(i int) []geo.Point { return l.points[l.first[i] : l.first[i+1]+1] }

// appendTo appends the line, without repeating the position that it shares with the end of dst.
func (l pathLine) appendTo(dst []geo.Point) []geo.Point {
	switch {
	case len(dst) == 0:
		return l.points[:len(l.points):len(l.points)]
	case dst[len(dst)-1] == l.points[0]:
		return append(dst, l.points[1:]...)
	}
	return append(dst, l.points...)
}

// cutLine is the part of a line between two fractions of its length. It always has two positions.
func cutLine(line []geo.Point, from, to float64) []geo.Point {
	lengths := make([]float64, len(line))
	for i := 1; i < len(line); i++ {
		lengths[i] = lengths[i-1] + flatDistance(line[i-1], line[i])
	}
	whole := lengths[len(line)-1]
	out := []geo.Point{pointAt(line, lengths, from*whole)}
	for i := range line {
		if lengths[i] > from*whole && lengths[i] < to*whole {
			out = append(out, line[i])
		}
	}
	return append(out, pointAt(line, lengths, to*whole))
}

// pointAt is the point of a line at a length from its beginning. lengths are those of its positions.
func pointAt(line []geo.Point, lengths []float64, at float64) geo.Point {
	for i := 1; i < len(line); i++ {
		if lengths[i] >= at {
			share := 0.0
			if lengths[i] > lengths[i-1] {
				share = (at - lengths[i-1]) / (lengths[i] - lengths[i-1])
			}
			a, b := line[i-1], line[i]
			return geo.Point{Lon: a.Lon + share*(b.Lon-a.Lon), Lat: a.Lat + share*(b.Lat-a.Lat)}
		}
	}
	return line[len(line)-1]
}

// flatDistance is the distance of two near points in degrees of latitude: enough to compare lengths along one line.
func flatDistance(a, b geo.Point) float64 {
	return math.Hypot((b.Lon-a.Lon)*math.Cos(a.Lat*math.Pi/180), b.Lat-a.Lat)
}

// stretches are a path in the form that package guidance needs: each edge with its road, and the other roads at the junction where
// it begins.
func (m *modeEngine) stretches(p *search.Path, line pathLine) []guidance.Stretch {
	reader := m.borrowRoadReader()
	defer m.roads.Put(reader)
	all := make([]guidance.Stretch, len(p.Edges))
	for i, e := range p.Edges {
		cost := m.edgeCost(p, i)
		s := guidance.Stretch{
			Road: *reader.road(m.graph.Segment[e] >> 1), Points: line.edge(i),
			Distance: metres(cost.Distance), Duration: seconds(cost.Duration),
		}
		if i > 0 {
			s.Duration += float64(m.graph.Turn(p.Edges[i-1], e)) / graph.TurnUnit
			s.Branches = reader.branches(p.Edges[i-1], e)
			m.addExit(&s.Road, &all[i-1].Road, m.graph.Tail[e])
			s.IsMiniRoundabout = m.layer.IsMiniRoundabout(m.graph.Tail[e])
			if s.IsMiniRoundabout || s.IsRoundabout || all[i-1].IsRoundabout { // the only steps that depend on the side
				s.KeepsLeft = reader.keepsLeft(m.graph.Segment[e]>>1, s.Points[0])
			}
		}
		all[i] = s
	}
	return all
}

// dropUndriven drops a stretch of no length at either end of a leg: a bound on a junction may be on a road that is not driven. The
// cost of turning there stays.
func dropUndriven(all []guidance.Stretch) []guidance.Stretch {
	for len(all) > 1 && all[0].Distance == 0 {
		all = all[1:]
		all[0].Branches = nil
	}
	for last := len(all) - 1; last > 0 && all[last].Distance == 0; last-- {
		all[last-1].Duration += all[last].Duration
		all = all[:last]
	}
	return all
}

// addExit gives a ramp the number of the exit that begins where it leaves a motorway, or a road like one, at a junction. The tags
// of the ramp itself take precedence.
func (m *modeEngine) addExit(ramp, from *guidance.Road, junction uint32) {
	if ramp.Exit == "" && ramp.IsLink && !from.IsLink && from.Class <= profile.Trunk {
		ramp.Exit = m.layer.JunctionExit(junction)
	}
}
