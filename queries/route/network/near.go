package network

import (
	"container/heap"
	"math"

	"lieudit/queries/route/graph"
	"lieudit/schemas/geo"
)

// Hit is the point of a segment that is nearest to a position.
type Hit struct {
	Segment  uint32
	Distance float64   // metres
	Point    geo.Point // on the segment
	Fraction float64   // position of the point along the geometry, as a share of the segment's length
}

// The index of positions is a tree of boxes. Pieces lie in the order of a Hilbert curve, so a box of the finest level holds
// treeFan pieces that follow each other, and a box of each other level treeFan boxes of the level below.
const treeFan = 16

// treeLevel is where the boxes of a level lie in the tree.
type treeLevel struct{ first, count int }

// treeLevels lays out the levels for a number of pieces, the finest first. The last level has one box; without pieces there are no
// levels.
func treeLevels(pieces int) (levels []treeLevel) {
	first := 0
	for n := pieces; n > 1 || len(levels) == 0 && n > 0; {
		n = (n + treeFan - 1) / treeFan
		levels = append(levels, treeLevel{first, n})
		first += n
	}
	return levels
}

// boxCount is the number of boxes on all levels.
func boxCount(levels []treeLevel) (n int) {
	for _, l := range levels {
		n += l.count
	}
	return n
}

// treeBuilder makes the tree of boxes while the pieces are written in their order.
type treeBuilder struct {
	levels []treeLevel
	boxes  [][4]int32
	pieces int
}

// newTreeBuilder makes the tree for a number of pieces, with empty boxes.
func newTreeBuilder(pieces int) *treeBuilder {
	t := &treeBuilder{levels: treeLevels(pieces)}
	t.boxes = make([][4]int32, boxCount(t.levels))
	for i := range t.boxes {
		t.boxes[i] = emptyBox()
	}
	return t
}

// add adds the next piece to its box.
func (t *treeBuilder) add(s *source, nodes []uint32) {
	box := &t.boxes[t.pieces/treeFan]
	for _, n := range nodes {
		*box = extendBox(*box, [4]int32{s.lon[n], s.lat[n], s.lon[n], s.lat[n]})
	}
	t.pieces++
}

// finish fills in the boxes of the upper levels and returns them all as one column.
func (t *treeBuilder) finish() []int32 {
	for l := 1; l < len(t.levels); l++ {
		below, own := t.levels[l-1], t.levels[l]
		for i := range below.count {
			box := &t.boxes[own.first+i/treeFan]
			*box = extendBox(*box, t.boxes[below.first+i])
		}
	}
	column := make([]int32, 0, 4*len(t.boxes))
	for _, box := range t.boxes {
		column = append(column, box[:]...)
	}
	return column
}

// all is the box of all pieces, after finish.
func (t *treeBuilder) all() (box [4]int32) {
	if len(t.boxes) == 0 {
		return box
	}
	return t.boxes[len(t.boxes)-1]
}

// emptyBox is the box that holds nothing.
func emptyBox() [4]int32 {
	return [4]int32{math.MaxInt32, math.MaxInt32, math.MinInt32, math.MinInt32}
}

// extendBox is the smallest box that holds two others.
func extendBox(a, b [4]int32) [4]int32 {
	return [4]int32{min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])}
}

// Near visits the segments of the mode within a radius in metres of p, each once, in ascending distance, ties in the order of their
// numbers. It stops when visit returns false. It is safe for concurrent use.
func (l *Layer) Near(p geo.Point, radius float64, visit func(Hit) bool) {
	s := l.searches.Get().(*nearSearch)
	defer l.searches.Put(s)
	s.start(p)
	for len(s.waiting) > 0 {
		next := heap.Pop(s).(candidate)
		if next.distance > radius {
			return
		}
		if next.level > 0 {
			s.openBox(next, radius)
			continue
		}
		if hit, ok := s.hitOf(next); ok && !visit(hit) {
			return
		}
	}
}

// candidate is a box, on a level from 1 on, or a piece, on level 0.
type candidate struct {
	distance float64
	level    int32
	index    uint32
}

// nearSearch is the state of Near: a best-first search of the tree. It is a heap of candidates: the nearest first, and among ties
// boxes first, so that their contents are ordered too. A box is never farther than its contents, so the first piece that comes out
// of the heap is the nearest.
type nearSearch struct {
	layer   *Layer
	plane   geo.Plane // at the position
	waiting []candidate
	seen    map[uint32]struct{} // segments that were visited
	points  []geo.Point
}

// Len, Swap, Push, Less and Pop implement heap.Interface.

func (s *nearSearch) Len() int      { return len(s.waiting) }
func (s *nearSearch) Swap(i, j int) { s.waiting[i], s.waiting[j] = s.waiting[j], s.waiting[i] }
func (s *nearSearch) Push(x any)    { s.waiting = append(s.waiting, x.(candidate)) }
func (s *nearSearch) Less(i, j int) bool {
	a, b := s.waiting[i], s.waiting[j]
	if a.distance != b.distance {
		return a.distance < b.distance
	}
	if a.level != b.level {
		return a.level > b.level
	}
	return a.index < b.index
}

func (s *nearSearch) Pop() any {
	last := s.waiting[len(s.waiting)-1]
	s.waiting = s.waiting[:len(s.waiting)-1]
	return last
}

// start begins a search at a position with the one box that holds all.
func (s *nearSearch) start(p geo.Point) {
	s.plane = geo.PlaneAt(p)
	clear(s.seen)
	s.waiting = s.waiting[:0]
	if top := len(s.layer.network.shape.levels); top > 0 {
		s.waiting = append(s.waiting, candidate{level: int32(top)})
	}
}

// openBox adds the contents of a box that are within the radius and open to the mode.
func (s *nearSearch) openBox(box candidate, radius float64) {
	shape := &s.layer.network.shape
	below, count := box.level-1, len(shape.pieceRoads)
	if below > 0 {
		count = shape.levels[below-1].count
	}
	first := int(box.index) * treeFan
	for i := first; i < min(first+treeFan, count); i++ {
		c := candidate{level: below, index: uint32(i)}
		if below > 0 {
			c.distance = s.boxDistance(shape.tree[4*(shape.levels[below-1].first+i):][:4])
		} else if shape.bitsOf(c.index)&(bitCar<<s.layer.mode) == 0 {
			continue
		} else {
			c.distance = s.pieceDistance(c.index)
		}
		if c.distance <= radius {
			heap.Push(s, c)
		}
	}
}

// boxDistance is the distance from the centre to a box, 0 inside of it: nothing in the box is nearer.
func (s *nearSearch) boxDistance(box []int32) float64 {
	west, south := s.project(toPoint(box[0], box[1]))
	east, north := s.project(toPoint(box[2], box[3]))
	return math.Hypot(max(west, 0, -east), max(south, 0, -north))
}

// project returns a position in metres from the centre. Distances are measured in this plane, so that those of boxes and of
// segments can be compared exactly; within the radii of interest they equal those on the earth.
func (s *nearSearch) project(p geo.Point) (x, y float64) { return s.plane.Project(p) }

// pieceDistance is the distance from the centre to a piece.
func (s *nearSearch) pieceDistance(piece uint32) float64 {
	least, d := math.Inf(1), s.layer.network.shape.firstPoint(piece)
	px, py := s.project(toPoint(d.lon, d.lat))
	for d.next() {
		x, y := s.project(toPoint(d.lon, d.lat))
		_, nx, ny := nearestOnLine(px, py, x, y)
		least = min(least, math.Hypot(nx, ny))
		px, py = x, y
	}
	return least
}

// nearestOnLine returns the point of a line that is nearest to 0, 0, and how far along the line it lies, from 0 to 1.
func nearestOnLine(ax, ay, bx, by float64) (t, x, y float64) {
	dx, dy := bx-ax, by-ay
	if square := dx*dx + dy*dy; square > 0 {
		t = min(max(-(ax*dx+ay*dy)/square, 0), 1)
	}
	return t, ax + t*dx, ay + t*dy
}

// hitOf returns the nearest point of the segment that a piece belongs to. It returns false if the mode does not use the piece, or
// another piece of the segment came before.
func (s *nearSearch) hitOf(c candidate) (Hit, bool) {
	segment := s.layer.segmentOf(c.index)
	if _, ok := s.seen[segment]; ok || segment == graph.None {
		return Hit{}, false
	}
	s.seen[segment] = struct{}{}
	s.points = s.layer.AppendGeometry(s.points[:0], segment, false)
	hit := Hit{Segment: segment, Distance: c.distance}
	var length, before float64
	least := math.Inf(1)
	for i, b := range s.points[1:] {
		a := s.points[i]
		ax, ay := s.project(a)
		bx, by := s.project(b)
		t, nx, ny := nearestOnLine(ax, ay, bx, by)
		step := geo.Distance(a, b)
		if d := math.Hypot(nx, ny); d < least {
			least, before = d, length+t*step
			hit.Point = geo.Point{Lon: a.Lon + t*(b.Lon-a.Lon), Lat: a.Lat + t*(b.Lat-a.Lat)}
		}
		length += step
	}
	if length > 0 {
		hit.Fraction = before / length
	}
	return hit, true
}
