package synthetic

import (
	"math"
	"slices"
)

// layOff is how far a road may lie from the numbers of its street, in metres. Houses stand up to 20 m from the middle of the road.
const layOff = 24

// layStreets lays a road along the numbers of each street of the place. Where it crosses another, a junction is made.
func (t *town) layStreets() {
	for _, s := range t.streets {
		points := make([]point, len(s.Points))
		for i, p := range s.Points {
			points[i] = t.project(p.Lon, p.Lat)
		}
		line := t.fitLine(points)
		t.names = append(t.names, s.Name)
		made := edge{class: residential, street: int32(len(t.names) - 1), isLaid: true}
		if s.IsLocality {
			made.class = unclassified
		}
		from := t.newJunction(line[0])
		for _, p := range line[1:] {
			made.a, made.b = from, t.newJunction(p)
			from = made.b
			t.edges = append(t.edges, made)
		}
	}
	if len(t.streets) > 0 {
		t.crossStreets()
	}
}

// newJunction adds a junction even where another is near.
func (t *town) newJunction(p point) int32 {
	t.junctions = append(t.junctions, p)
	return int32(len(t.junctions) - 1)
}

// fitLine returns a line with all points within layOff: the straight one through their middle if possible, otherwise one through
// some of them.
func (t *town) fitLine(points []point) []point {
	middle := point{}
	for _, p := range points {
		middle = middle.plus(p.times(1 / float64(len(points))))
	}
	direction := mainDirection(points, middle)
	// A single number gets a short road next to it, in any direction.
	if len(points) == 1 {
		sin, cos := math.Sincos(t.rand.Float64() * 2 * math.Pi)
		direction = point{cos, sin}
		middle = middle.plus(direction.left().times(10))
	}
	low, high, aside := math.Inf(1), math.Inf(-1), 0.0
	for _, p := range points {
		along := p.minus(middle).dot(direction)
		low, high = min(low, along), max(high, along)
		aside = max(aside, math.Abs(p.minus(middle).cross(direction)))
	}
	if aside <= layOff {
		return []point{middle.plus(direction.times(low - 15)), middle.plus(direction.times(high + 15))}
	}
	return simplify(points, layOff)
}

// mainDirection is the direction in which points spread most.
func mainDirection(points []point, middle point) point {
	var xx, xy, yy float64
	for _, p := range points {
		d := p.minus(middle)
		xx, xy, yy = xx+d.x*d.x, xy+d.x*d.y, yy+d.y*d.y
	}
	sin, cos := math.Sincos(math.Atan2(2*xy, xx-yy) / 2)
	return point{cos, sin}
}

// simplify returns the ends of a line and the points needed between them so that no omitted point is farther away than limit
// (Douglas and Peucker).
func simplify(line []point, limit float64) []point {
	first, last := line[0], line[len(line)-1]
	worst, at := limit, 0
	for i := 1; i < len(line)-1; i++ {
		if d := distanceToSegment(line[i], first, last); d > worst {
			worst, at = d, i
		}
	}
	if at == 0 {
		return []point{first, last}
	}
	return append(simplify(line[:at+1], limit), simplify(line[at:], limit)[1:]...)
}

// distanceToSegment is the distance from a point to the nearest of the line between two others.
func distanceToSegment(p, a, b point) float64 {
	d := b.minus(a)
	t := p.minus(a).dot(d) / max(d.dot(d), 1e-9)
	return p.distance(a.part(b, max(0, min(t, 1))))
}

// cut is a junction on an edge, at a part of its length.
type cut struct {
	part     float64
	junction int32
}

// crossStreets makes junctions where laid streets cross others, and splits both.
func (t *town) crossStreets() {
	cuts := make([][]cut, len(t.edges))
	for i := range t.edges {
		if !t.edges[i].isLaid {
			continue
		}
		for j := range t.edges {
			if j < i || !t.edges[j].isLaid {
				t.crossEdges(i, j, cuts)
			}
		}
	}
	// Each edge becomes the piece before its first cut; the pieces behind are new edges.
	for i, own := range cuts {
		slices.SortStableFunc(own, func(a, b cut) int { return int(math.Copysign(1, a.part-b.part)) })
		end := t.edges[i].b
		at := i
		for _, c := range own {
			if last := &t.edges[at]; c.junction != last.a && c.junction != end {
				rest := *last
				last.b, rest.a, rest.b = c.junction, c.junction, end
				t.edges = append(t.edges, rest)
				at = len(t.edges) - 1
			}
		}
	}
	t.edges = slices.DeleteFunc(t.edges, func(e edge) bool { return e.a == e.b })
}

// crossEdges finds where two edges cross. A crossing within 4 m of a junction is that junction.
func (t *town) crossEdges(i, j int, cuts [][]cut) {
	e, f := &t.edges[i], &t.edges[j]
	if e.a == f.a || e.a == f.b || e.b == f.a || e.b == f.b {
		return
	}
	p, q := t.junctions[e.a], t.junctions[f.a]
	d, g := t.junctions[e.b].minus(p), t.junctions[f.b].minus(q)
	across := d.cross(g)
	if math.Abs(across) < 1e-6*d.dot(d) {
		return
	}
	u, v := q.minus(p).cross(g)/across, q.minus(p).cross(d)/across
	if u < 0 || u > 1 || v < 0 || v > 1 {
		return
	}
	// The junction is made once for both edges.
	at := p.plus(d.times(u))
	junction := int32(-1)
	for _, end := range [...]int32{e.a, e.b, f.a, f.b} {
		if t.junctions[end].distance(at) < 4 {
			junction = end
		}
	}
	if junction < 0 {
		junction = t.newJunction(at)
	}
	cuts[i], cuts[j] = append(cuts[i], cut{u, junction}), append(cuts[j], cut{v, junction})
}
