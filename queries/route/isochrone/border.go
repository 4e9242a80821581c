package isochrone

import (
	"math/bits"

	"lieudit/queries/route"
)

// unit is the length of a side of a square in the coordinates of vertices: whole numbers, so that tests on them are exact.
const unit = 1000

// limitStep is how much farther out, of a unit, the border of each limit runs than that of the limit before.
const limitStep = 20

// vertex is where a border crosses from one node to a neighbour.
type vertex struct {
	x, y int32
	edge int32 // twice the number of the western or southern node, + 1 where the other lies north of it
}

// ring is a closed border with the area on its left: counter-clockwise around an area, clockwise around a hole. The first vertex
// is not repeated.
type ring struct {
	vertices []vertex
	area     int64 // twice the area in square units, negative for a hole
	holder   int   // of a hole the ring that it lies in; of an area itself
}

// borders are the borders of all limits. A crossing is an edge between a node inside and one outside.
type borders struct {
	*grid
	inside    []*plane
	roads     *plane
	crossings []crossings // of each node
	ringAt    []int32     // of each node the ring that crosses the edge east of it; of one limit at a time
}

// crossings are the limits the borders of which cross the edges of a node: bit k for limit k on the edge that leads east, bit
// MaxLimits + k on that which leads north.
type crossings uint16

func newBorders(g *grid, inside []*plane, roads *plane) *borders {
	nodes := g.perLine * g.rows
	return &borders{grid: g, inside: inside, roads: roads, crossings: make([]crossings, nodes), ringAt: make([]int32, nodes)}
}

// findCrossings fills the crossings of a limit. It returns those on edges that lead east.
func (b *borders) findCrossings(k int) *plane {
	p, east := b.inside[k], newPlane(b.perLine, b.rows)
	for i := range len(p.words) - p.perRow {
		w := p.words[i]
		east.words[i] = w ^ (w>>1 | p.words[i+1]<<63)
		for e := east.words[i]; e != 0; e &= e - 1 {
			b.crossings[i<<6+bits.TrailingZeros64(e)] |= 1 << k
		}
		for n := w ^ p.words[i+p.perRow]; n != 0; n &= n - 1 {
			b.crossings[i<<6+bits.TrailingZeros64(n)] |= 1 << MaxLimits << k
		}
	}
	return east
}

// traceRings returns the rings of a limit. Holes that are to be left out have no vertices.
func (b *borders) traceRings(k int) []ring {
	var rings []ring
	left := b.findCrossings(k) // crossings that no ring holds yet
	for i := range left.words {
		for left.words[i] != 0 {
			r := b.traceRing(k, i<<6+bits.TrailingZeros64(left.words[i]), int32(len(rings)), left)
			if r.area < 0 && b.isGap(k, &r, int32(len(rings))) {
				for _, v := range r.vertices {
					b.dropVertex(k, v)
				}
				r.vertices = nil
			}
			rings = append(rings, r)
		}
	}
	b.findHolders(k, rings)
	return rings
}

// traceRing follows the border that crosses the edge east of a node: it keeps nodes inside on the left and those outside on the
// right. Where inside nodes meet at a corner only, it keeps them apart.
func (b *borders) traceRing(k, node int, number int32, left *plane) ring {
	inside := b.inside[k]
	l, r := node, node+1
	if inside.has(r) {
		l, r = r, l
	}
	result := ring{holder: int(number)}
	for {
		v := b.vertexAt(k, l, r)
		if len(result.vertices) > 0 && v.edge == result.vertices[0].edge {
			break
		}
		result.vertices = append(result.vertices, v)
		if v.edge&1 == 0 {
			left.unset(int(v.edge >> 1))
			b.ringAt[v.edge>>1] = number
		}
		ahead := b.ahead(l - r)
		switch {
		case !inside.has(l + ahead):
			r = l + ahead
		case inside.has(r + ahead):
			l = r + ahead
		default:
			l, r = l+ahead, r+ahead
		}
	}
	result.area = doubleArea(result.vertices)
	return result
}

// ahead is the step between nodes that leads on when the one on the left is toLeft from the one on the right.
func (b *borders) ahead(toLeft int) int {
	switch toLeft {
	case b.perLine:
		return 1
	case -1:
		return b.perLine
	case -b.perLine:
		return -1
	}
	return -b.perLine
}

// vertexAt is where the border of a limit crosses from a node inside to its neighbour outside: about the middle.
func (b *borders) vertexAt(k, in, out int) vertex {
	share := int32(unit/2 + limitStep*k - limitStep*(len(b.inside)-1)/2)
	v := vertex{x: int32(in%b.perLine) * unit, y: int32(in/b.perLine) * unit}
	switch out - in {
	case 1:
		v.x, v.edge = v.x+share, int32(in<<1)
	case -1:
		v.x, v.edge = v.x-share, int32(out<<1)
	case b.perLine:
		v.y, v.edge = v.y+share, int32(in<<1|1)
	default:
		v.y, v.edge = v.y-share, int32(out<<1|1)
	}
	return v
}

// doubleArea is twice the area of a ring, positive when it goes counter-clockwise.
func doubleArea(vertices []vertex) int64 {
	sum, last := int64(0), vertices[len(vertices)-1]
	for _, v := range vertices {
		sum += int64(last.x)*int64(v.y) - int64(v.x)*int64(last.y)
		last = v
	}
	return sum
}

// isGap returns whether a hole is to be left out: it is small, or a field without roads. The holes of wider limits that lie in it
// are then left out too, so that areas stay nested.
func (b *borders) isGap(k int, r *ring, number int32) bool {
	squares := float64(-r.area) / (2 * unit * unit)
	switch {
	case squares < minHole:
		return true
	case squares*b.side*b.side > maxField:
		return false
	}
	for _, v := range r.vertices { // each row of the hole begins at a crossing with the inside west of it
		node := int(v.edge >> 1)
		if v.edge&1 == 1 || !b.inside[k].has(node) {
			continue
		}
		for node++; ; node++ {
			if b.inside[k].has(node) || b.roads.has(node) {
				return false
			}
			if b.crossings[node]>>k&1 == 1 && b.ringAt[node] == number {
				break
			}
		}
	}
	return true
}

// dropVertex takes a vertex out of the crossings.
func (b *borders) dropVertex(k int, v vertex) {
	b.crossings[v.edge>>1] &^= 1 << k << (MaxLimits * (v.edge & 1))
}

// findHolders finds for each hole the area that it lies in: west of its first vertex, which is its south-western one, the border
// that comes next is that of the area, or of another hole in it, which began farther south or west.
func (b *borders) findHolders(k int, rings []ring) {
	for i := range rings {
		r := &rings[i]
		if r.area > 0 || r.vertices == nil {
			continue
		}
		node := int(r.vertices[0].edge>>1) - 1
		for b.crossings[node]>>k&1 == 0 {
			node--
		}
		r.holder = rings[b.ringAt[node]].holder
	}
}

// polygons puts rings together, in degrees.
func (g *grid) polygons(rings []ring) route.Area {
	var area route.Area
	place := make([]int, len(rings))
	for i, r := range rings {
		if r.area > 0 {
			place[i] = len(area)
			area = append(area, [][]route.Point{g.points(r.vertices)})
		}
	}
	for _, r := range rings {
		if r.area < 0 && r.vertices != nil {
			at := place[r.holder]
			area[at] = append(area[at], g.points(r.vertices))
		}
	}
	return area
}

// points returns the vertices of a ring in degrees; the first is repeated at the end.
func (g *grid) points(vertices []vertex) []route.Point {
	points := make([]route.Point, len(vertices)+1)
	for i, v := range vertices {
		points[i] = route.Point{Lon: g.originLon + float64(v.x)/unit/g.perLon, Lat: g.originLat + float64(v.y)/unit/g.perLat}
	}
	points[len(vertices)] = points[0]
	return points
}
