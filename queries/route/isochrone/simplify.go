package isochrone

import "math/bits"

// simplifyPasses is how often each border is simplified: the room that one border gives up can help another. A third pass would
// remove one vertex in two hundred.
const simplifyPasses = 2

// maxBox is the area, in squares, of the largest box around a triangle that is tested.
const maxBox = 64

// simplify takes vertices out of a ring. A vertex may go when the triangle that it makes with its neighbours holds no node and no
// vertex of any border: then the straight way between the neighbours crosses nothing, and the same nodes are inside as before.
func (b *borders) simplify(k int, r *ring) {
	if len(r.vertices) <= 3 {
		return
	}
	all := r.vertices
	kept := all[:1]
	for i := 1; i < len(all); i++ {
		p, v, n := kept[len(kept)-1], all[i], all[(i+1)%len(all)]
		if left := len(kept) + len(all) - i; left > 3 && b.isFree(p, v, n) {
			b.dropVertex(k, v)
			continue
		}
		kept = append(kept, v)
	}
	half := len(kept) / 2 // another vertex comes first next time
	b.turned = append(append(b.turned[:0], kept[half:]...), kept[:half]...)
	r.vertices = kept
	copy(r.vertices, b.turned)
}

// isFree returns whether the triangle of three vertices, its border included, holds nothing but them.
func (b *borders) isFree(p, v, n vertex) bool {
	if side(p, n, v.x, v.y) == 0 && isBetween(p, v, n) { // borders do not touch, and no node lies on one
		return true
	}
	west, east := min(p.x, v.x, n.x), max(p.x, v.x, n.x)
	south, north := min(p.y, v.y, n.y), max(p.y, v.y, n.y)
	if int64(east-west+unit)*int64(north-south+unit) > maxBox*unit*unit {
		return false
	}
	t := newTriangle(p, v, n)
	first := corner{west / unit * unit, south / unit * unit}
	for at := first; at.y <= north; at.y += unit {
		ab, bc, ca := t.sides(first.x, at.y)
		node := int(at.y/unit)*b.perLine + int(first.x/unit)
		for at.x = first.x; at.x <= east; at.x += unit {
			if ab|bc|ca >= 0 { // the triangle holds the node
				return false
			}
			if b.crossings[node] != 0 && b.holdsVertex(&t, at, node) {
				return false
			}
			ab, bc, ca, node = ab+t.perNode[0], bc+t.perNode[1], ca+t.perNode[2], node+1
		}
	}
	return true
}

// holdsVertex reports whether a triangle holds a vertex of any limit that lies on the edge east or north of a node, given its corner.
func (b *borders) holdsVertex(t *triangle, at corner, node int) bool {
	for rest := b.crossings[node]; rest != 0; rest &= rest - 1 {
		k := bits.TrailingZeros16(uint16(rest))
		share := b.shares[k%MaxLimits]
		if !b.inside[k%MaxLimits].has(node) {
			share = unit - share
		}
		x, y := at.x+share, at.y
		if k >= MaxLimits {
			x, y = at.x, at.y+share
		}
		if !t.a.isAt(x, y) && !t.b.isAt(x, y) && !t.c.isAt(x, y) && t.holds(x, y) {
			return true
		}
	}
	return false
}

// isAt reports whether a vertex is at a position. No two vertices of any borders are.
func (v *vertex) isAt(x, y int32) bool { return v.x == x && v.y == y }

// isBetween returns whether of three vertices on a line the second lies between the others.
func isBetween(p, v, n vertex) bool {
	return min(p.x, n.x) <= v.x && v.x <= max(p.x, n.x) && min(p.y, n.y) <= v.y && v.y <= max(p.y, n.y)
}

// triangle is a triangle, its corners counter-clockwise. perNode is how much its sides change from one node to the next in a row.
type triangle struct {
	a, b, c vertex
	perNode [3]int64
}

func newTriangle(a, b, c vertex) triangle {
	if side(a, b, c.x, c.y) < 0 {
		b, c = c, b
	}
	return triangle{a, b, c, [3]int64{int64(a.y-b.y) * unit, int64(b.y-c.y) * unit, int64(c.y-a.y) * unit}}
}

// sides returns the sides of a point: the triangle holds the point unless one of them is negative.
func (t *triangle) sides(x, y int32) (ab, bc, ca int64) {
	return side(t.a, t.b, x, y), side(t.b, t.c, x, y), side(t.c, t.a, x, y)
}

// side is positive when a point lies on the left of the way from a to b, negative on the right.
func side(a, b vertex, x, y int32) int64 {
	return int64(b.x-a.x)*int64(y-a.y) - int64(b.y-a.y)*int64(x-a.x)
}

// holds returns whether a point lies in the triangle or on its border.
func (t *triangle) holds(x, y int32) bool {
	return side(t.a, t.b, x, y) >= 0 && side(t.b, t.c, x, y) >= 0 && side(t.c, t.a, x, y) >= 0
}
