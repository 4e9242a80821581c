package route

import (
	"math"

	"lieudit/queries/route/graph"
	"lieudit/queries/route/network"
	"lieudit/schemas/geo"
)

// wayReader finds the edges of our own network under a way of any engine, by the map nodes that both have, and adds up our own engine's costs
// of it. This separates two engines' choices from their costs.
type wayReader struct {
	layer *network.Layer
	steps map[step][]stepPlace
}

// nodeKey is a position in millionths of a degree, as all servers return them.
type nodeKey struct{ lon, lat int32 }

// step is a directed line between two consecutive nodes.
type step struct{ from, to nodeKey }

// stepPlace is the position of a step: a directed segment, and its index there.
type stepPlace struct {
	directed uint32
	index    int
}

func keyOf(p geo.Point) nodeKey {
	const perDegree = 1e6
	return nodeKey{int32(math.Round(p.Lon * perDegree)), int32(math.Round(p.Lat * perDegree))}
}

// newWayReader indexes the steps of all segments.
func newWayReader(layer *network.Layer) *wayReader {
	w := &wayReader{layer: layer, steps: map[step][]stepPlace{}}
	for segment := range uint32(layer.Segments()) {
		forward, backward := layer.SegmentEdges(segment)
		for direction, edge := range [2]uint32{forward, backward} {
			if edge == graph.None {
				continue
			}
			line := layer.AppendGeometry(nil, segment, direction == 1)
			for i := range line[1:] {
				s := step{keyOf(line[i]), keyOf(line[i+1])}
				w.steps[s] = append(w.steps[s], stepPlace{2*segment + uint32(direction), i})
			}
		}
	}
	return w
}

// reckoning is our own engine's cost of a way, in seconds.
type reckoning struct {
	isOpen  bool // the engine could drive the way
	reason  string
	driving float64 // including signals and signs
	turns   float64
	penalty float64 // what the choice of a way adds
}

// turnForbidden is the reason if each road of a way is open but the way is not.
const turnForbidden = "a turn is forbidden"

func (r *reckoning) duration() float64 { return r.driving + r.turns }
func (r *reckoning) weight() float64   { return r.duration() + r.penalty }

// piece is a directed segment of a way, with the part of it that is driven.
type piece struct {
	directed uint32
	from, to float64
}

// reckon adds up the costs of a way.
func (w *wayReader) reckon(line []geo.Point) reckoning {
	pieces, reason := w.pieces(line)
	if reason != "" {
		return reckoning{reason: reason}
	}
	// The copies of an edge differ in what follows them, so the costs over all copies are added up in parallel.
	best := map[uint32]reckoning{}
	for i, p := range pieces {
		next := map[uint32]reckoning{}
		for _, edge := range w.edgesOf(p.directed) {
			r := w.drive(edge, p)
			if i == 0 {
				next[edge] = r
				continue
			}
			for from, so := range best {
				turn := w.turn(from, edge)
				if turn == graph.ForbiddenTurn {
					continue
				}
				sum := reckoning{isOpen: true, driving: so.driving + r.driving, turns: so.turns + float64(turn)/graph.TurnUnit, penalty: so.penalty + r.penalty}
				if known, ok := next[edge]; !ok || sum.weight() < known.weight() {
					next[edge] = sum
				}
			}
		}
		if len(next) == 0 {
			return reckoning{reason: turnForbidden}
		}
		best = next
	}
	least := reckoning{reason: "no way"}
	for _, r := range best {
		if !least.isOpen || r.weight() < least.weight() {
			least = r
		}
	}
	return least
}

func (w *wayReader) edgesOf(directed uint32) []uint32 {
	forward, backward := w.layer.SegmentEdges(directed / 2)
	return w.layer.Graph.CopiesOf([2]uint32{forward, backward}[directed%2])
}

func (w *wayReader) turn(from, to uint32) uint8 {
	g := w.layer.Graph
	if g.Head[from] != g.Tail[to] {
		return graph.ForbiddenTurn
	}
	return g.Turn(from, to)
}

// drive returns the cost of a part of an edge.
func (w *wayReader) drive(edge uint32, p piece) reckoning {
	g, share := w.layer.Graph, p.to-p.from
	r := reckoning{isOpen: true, driving: share * float64(g.Duration[edge]) / graph.DurationUnit}
	if g.Penalty != nil {
		r.penalty = share * float64(g.Penalty[edge]) / graph.DurationUnit
	}
	return r
}

// pieces cuts a way into directed segments, or returns the reason why it cannot.
func (w *wayReader) pieces(line []geo.Point) (pieces []piece, reason string) {
	line = withoutRepeats(line)
	if len(line) < 2 {
		return nil, "no way"
	}
	// The ends are between nodes: the steps there are found by the one node that they have.
	for at := 0; at < len(line)-1; {
		place, ok := w.placeOf(line, at)
		if !ok {
			return pieces, "closed road"
		}
		points := w.layer.AppendGeometry(nil, place.directed/2, place.directed%2 == 1)
		lengths := lengthsOf(points)
		whole := lengths[len(points)-1]
		p := piece{directed: place.directed, from: lengths[place.index] / whole}
		if at == 0 {
			p.from = (lengths[place.index] + geo.Distance(points[place.index], line[0])) / whole
		}
		index := place.index
		for at < len(line)-1 && index < len(points)-1 {
			if isNear(points[index+1], line[at+1]) {
				at, index = at+1, index+1
				p.to = lengths[index] / whole
				continue
			}
			if at+1 == len(line)-1 {
				p.to = (lengths[index] + geo.Distance(points[index], line[at+1])) / whole
				at++
			}
			break
		}
		p.from, p.to = min(p.from, 1), min(p.to, 1)
		if p.to < p.from {
			return pieces, "closed road"
		}
		pieces = append(pieces, p)
		if index < len(points)-1 && at < len(line)-1 {
			return pieces, "turns back in a road"
		}
	}
	return pieces, ""
}

// withoutRepeats drops positions that repeat the one before.
func withoutRepeats(line []geo.Point) (out []geo.Point) {
	for _, p := range line {
		if len(out) == 0 || !isNear(out[len(out)-1], p) {
			out = append(out, p)
		}
	}
	return out
}

// isNear reports whether two positions are the same node: servers round differently.
func isNear(a, b geo.Point) bool {
	x, y := keyOf(a), keyOf(b)
	return max(x.lon-y.lon, y.lon-x.lon) <= 1 && max(x.lat-y.lat, y.lat-x.lat) <= 1
}

// placeOf finds the step that begins at a point of a way.
func (w *wayReader) placeOf(line []geo.Point, at int) (best stepPlace, ok bool) {
	isFirst, isLast := at == 0, at+1 == len(line)-1
	least := 2.0 // metres next to the road
	consider := func(s stepPlace, distance float64) {
		if distance < least {
			best, least, ok = s, distance, true
		}
	}
	if !isFirst && !isLast {
		for _, s := range w.stepsNear(line[at], line[at+1]) {
			consider(s, 0)
		}
		return best, ok
	}
	if isFirst || isLast {
		for _, s := range w.stepsNear(line[at], line[at+1]) {
			consider(s, 0)
		}
		if ok {
			return best, ok
		}
	}
	middle := geo.Between(line[at], line[at+1], 0.5)
	w.layer.Near(middle, 3, func(h network.Hit) bool {
		forward, backward := w.layer.SegmentEdges(h.Segment)
		for direction, edge := range [2]uint32{forward, backward} {
			if edge == graph.None {
				continue
			}
			points := w.layer.AppendGeometry(nil, h.Segment, direction == 1)
			for i := range points[1:] {
				fits := (isFirst || isNear(points[i], line[at])) && (isLast || isNear(points[i+1], line[at+1]))
				along := cosOf(points[i], points[i+1], line[at], line[at+1])
				if fits && along > 0.9 {
					consider(stepPlace{2*h.Segment + uint32(direction), i}, max(distanceToLine(line[at], points[i], points[i+1]), distanceToLine(line[at+1], points[i], points[i+1])))
				}
			}
		}
		return true
	})
	return best, ok
}

// stepsNear returns the steps between two nodes.
func (w *wayReader) stepsNear(from, to geo.Point) (all []stepPlace) {
	a, b := keyOf(from), keyOf(to)
	for i := range 81 {
		s := step{nodeKey{a.lon + int32(i%3) - 1, a.lat + int32(i/3%3) - 1}, nodeKey{b.lon + int32(i/9%3) - 1, b.lat + int32(i/27%3) - 1}}
		all = append(all, w.steps[s]...)
	}
	return all
}

// cosOf returns the cosine of the angle between two lines.
func cosOf(a, b, c, d geo.Point) float64 {
	scale := math.Cos(a.Lat * math.Pi / 180)
	x, y, u, v := (b.Lon-a.Lon)*scale, b.Lat-a.Lat, (d.Lon-c.Lon)*scale, d.Lat-c.Lat
	return (x*u + y*v) / max(math.Hypot(x, y)*math.Hypot(u, v), 1e-12)
}

// lengthsOf returns the distance along a line of each of its points, in metres.
func lengthsOf(line []geo.Point) []float64 {
	lengths := make([]float64, len(line))
	for i := 1; i < len(line); i++ {
		lengths[i] = lengths[i-1] + geo.Distance(line[i-1], line[i])
	}
	return lengths
}
