package isochrone

import (
	"math/bits"
	"slices"

	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// unit is the length of a side of a square in the coordinates of vertices: whole numbers, so that tests on them are exact.
const unit = 1000

// limitStep is how much farther out the border of each limit runs than that of the previous limit, in the same coordinates.
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
	left      *plane      // crossings on edges that lead east, of one limit, that no ring holds yet
	crossings []crossings // of each node
	ringAt    []int32     // of each node the ring that crosses the edge east of it; of one limit at a time
	shares    [MaxLimits]int32
	vertices  []vertex // of all rings
	turned    []vertex
}

// crossings are the limits whose borders cross the edges of a node: bit k for limit k on the edge that leads east, bit MaxLimits +
// k on that which leads north.
type crossings uint16

// begin discards the previous borders. left is an empty plane.
func (b *borders) begin(g *grid, inside []*plane, roads, left *plane) {
	nodes := g.perLine * g.rows
	b.grid, b.inside, b.roads, b.left, b.vertices = g, inside, roads, left, b.vertices[:0]
	b.crossings, b.ringAt = slices.Grow(b.crossings[:0], nodes)[:nodes], slices.Grow(b.ringAt[:0], nodes)[:nodes]
	clear(b.crossings)
	clear(b.ringAt)
	for k := range b.shares {
		b.shares[k] = int32(unit/2 + limitStep*k - limitStep*(len(inside)-1)/2)
	}
}

// findCrossings fills the crossings of a limit.
func (b *borders) findCrossings(k int) {
	p := b.inside[k]
	for i := range len(p.words) - p.perRow {
		w := p.words[i]
		east := w ^ (w>>1 | p.words[i+1]<<63)
		b.left.words[i] = east
		for ; east != 0; east &= east - 1 {
			b.crossings[i<<6+bits.TrailingZeros64(east)] |= 1 << k
		}
		for n := w ^ p.words[i+p.perRow]; n != 0; n &= n - 1 {
			b.crossings[i<<6+bits.TrailingZeros64(n)] |= 1 << MaxLimits << k
		}
	}
}

// traceRings returns the rings of a limit. Holes to be left out have no vertices.
func (b *borders) traceRings(k int) []ring {
	var rings []ring
	b.findCrossings(k)
	for i := range b.left.words {
		for b.left.words[i] != 0 {
			r := b.traceRing(k, i<<6+bits.TrailingZeros64(b.left.words[i]), int32(len(rings)))
			if r.area < 0 && b.isGap(k, &r, int32(len(rings))) {
				for _, v := range r.vertices {
					b.dropVertex(k, v)
				}
				b.vertices, r.vertices = b.vertices[:len(b.vertices)-len(r.vertices)], nil
			}
			rings = append(rings, r)
		}
	}
	b.findHolders(k, rings)
	return rings
}

// The directions from a node to its neighbours, counter-clockwise.
const (
	east = iota
	north
	west
	south
)

// traceRing follows the border that crosses the edge east of a node: it keeps nodes inside on the left and those outside on the
// right. Where inside nodes meet at a corner only, it keeps them apart.
func (b *borders) traceRing(k, node int, number int32) ring {
	inside, first, result := b.inside[k], len(b.vertices), ring{holder: int(number)}
	steps := [4]int{1, b.perLine, -1, -b.perLine}
	in, outward := node, east // the node inside, and where its neighbour outside is
	if !inside.has(node) {
		in, outward = node+1, west
	}
	for at := newCorner(in, b.perLine); ; {
		v := at.vertex(in, outward, b.perLine, b.shares[k])
		if len(b.vertices) > first && v.edge == b.vertices[first].edge {
			break
		}
		b.vertices = append(b.vertices, v)
		if v.edge&1 == 0 {
			b.left.unset(int(v.edge >> 1))
			b.ringAt[v.edge>>1] = number
		}
		ahead := (outward + 1) % 4
		switch {
		case !inside.has(in + steps[ahead]):
			outward = ahead
		case inside.has(in + steps[outward] + steps[ahead]):
			in += steps[outward] + steps[ahead]
			at.step(outward)
			at.step(ahead)
			outward = (outward + 3) % 4
		default:
			in += steps[ahead]
			at.step(ahead)
		}
	}
	result.vertices = b.vertices[first:len(b.vertices):len(b.vertices)]
	result.area = doubleArea(result.vertices)
	return result
}

// corner is a node in the coordinates of vertices.
type corner struct{ x, y int32 }

func newCorner(node, perLine int) corner {
	return corner{int32(node%perLine) * unit, int32(node/perLine) * unit}
}

// step moves the corner to a neighbour.
func (c *corner) step(direction int) {
	switch direction {
	case east:
		c.x += unit
	case north:
		c.y += unit
	case west:
		c.x -= unit
	default:
		c.y -= unit
	}
}

// vertex is where a border crosses from a node inside, at the corner, to its neighbour outside: at a share of the way.
func (c corner) vertex(node, outward, perLine int, share int32) vertex {
	switch outward {
	case east:
		return vertex{c.x + share, c.y, int32(node << 1)}
	case north:
		return vertex{c.x, c.y + share, int32(node<<1 | 1)}
	case west:
		return vertex{c.x - share, c.y, int32((node - 1) << 1)}
	default:
		return vertex{c.x, c.y - share, int32((node-perLine)<<1 | 1)}
	}
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

// isGap returns whether a hole is to be left out: it is small, or a field without roads. The holes of wider limits inside it are
// then left out too, so that areas stay nested.
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
			area = append(area, [][]geo.Point{g.points(r.vertices)})
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
func (g *grid) points(vertices []vertex) []geo.Point {
	points := make([]geo.Point, len(vertices)+1)
	for i, v := range vertices {
		points[i] = geo.Point{Lon: g.originLon + float64(v.x)/unit/g.perLon, Lat: g.originLat + float64(v.y)/unit/g.perLat}
	}
	points[len(vertices)] = points[0]
	return points
}
