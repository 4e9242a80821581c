package isochrone

// simplifyPasses is how often each border is made simpler: what one border gives up can make room for another.
const simplifyPasses = 3

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
	turned := append(kept[len(kept)/2:len(kept):len(kept)], kept[:len(kept)/2]...) // another vertex comes first next time
	r.vertices = turned
}

// isFree returns whether the triangle of three vertices, its border included, holds nothing but them.
func (b *borders) isFree(p, v, n vertex) bool {
	west, east := min(p.x, v.x, n.x), max(p.x, v.x, n.x)
	south, north := min(p.y, v.y, n.y), max(p.y, v.y, n.y)
	if int64(east-west+unit)*int64(north-south+unit) > maxBox*unit*unit {
		return false
	}
	t := newTriangle(p, v, n)
	for y := south / unit; y <= north/unit; y++ {
		for x := west / unit; x <= east/unit; x++ {
			if node := int(y)*b.perLine + int(x); t.holds(x*unit, y*unit) || b.holdsVertex(&t, node) {
				return false
			}
		}
	}
	return true
}

// holdsVertex returns whether a triangle holds a vertex of any limit that lies on the edge east or north of a node.
func (b *borders) holdsVertex(t *triangle, node int) bool {
	for k, inside := range b.inside {
		if b.east[k].has(node) {
			if v := b.between(k, inside, node, node+1); t.holdsOther(v) {
				return true
			}
		}
		if b.north[k].has(node) {
			if v := b.between(k, inside, node, node+b.perLine); t.holdsOther(v) {
				return true
			}
		}
	}
	return false
}

// between is the vertex between two neighbours, one of which is inside.
func (b *borders) between(k int, inside *plane, u, w int) vertex {
	if inside.has(u) {
		return b.vertexAt(k, u, w)
	}
	return b.vertexAt(k, w, u)
}

// triangle is a triangle, its corners counter-clockwise.
type triangle struct{ a, b, c vertex }

func newTriangle(a, b, c vertex) triangle {
	if side(a, b, c.x, c.y) < 0 {
		b, c = c, b
	}
	return triangle{a, b, c}
}

// side is positive when a point lies on the left of the way from a to b, negative on the right.
func side(a, b vertex, x, y int32) int64 {
	return int64(b.x-a.x)*int64(y-a.y) - int64(b.y-a.y)*int64(x-a.x)
}

// holds returns whether a point lies in the triangle or on its border. Of a triangle without area, that is in its box too.
func (t *triangle) holds(x, y int32) bool {
	return side(t.a, t.b, x, y) >= 0 && side(t.b, t.c, x, y) >= 0 && side(t.c, t.a, x, y) >= 0
}

// holdsOther is holds for a vertex that is not one of the corners.
func (t *triangle) holdsOther(v vertex) bool {
	return v != t.a && v != t.b && v != t.c && t.holds(v.x, v.y)
}
