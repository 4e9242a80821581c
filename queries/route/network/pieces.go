package network

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"lieudit/queries/mappedfile"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/profile"
)

// markJunctions marks for each mode the nodes where its segments end: where ways of the mode meet or end, where the mode is
// stopped, and at the via of a restriction.
func (s *source) markJunctions() {
	for w := range uint32(len(s.wayIDs)) {
		for run := range s.runs(w) {
			s.markRun(run, &s.speeds[s.waySpeeds[w]])
		}
	}
	for node, facts := range s.facts {
		for m, isClosed := range facts.Closed {
			if isClosed && s.state[node]&(isUsed<<m) != 0 {
				s.state[node] |= isJunction << m
			}
		}
	}
	for i := range s.restrictions {
		node := s.restrictions[i].via
		for m, heeds := range s.restrictions[i].Modes {
			if heeds && s.restrictions[i].ViaWays == nil && node != graph.None && s.state[node]&(isUsed<<m) != 0 {
				s.state[node] |= isJunction << m
			}
		}
	}
}

// markRun marks the nodes of a run for the modes that may use it.
func (s *source) markRun(run []uint32, open *speedSet) {
	var modes nodeState
	for m := range profile.Mode(profile.Modes) {
		if open.isOpen(m) {
			modes |= isUsed << m
		}
	}
	for i, node := range run {
		state := s.state[node]
		meets := state & modes
		if i == 0 || i == len(run)-1 {
			meets = modes
		}
		s.state[node] = state | modes | meets<<profile.Modes
	}
}

// Pieces are not kept in memory: whoever needs them walks over the ways again, which costs little and always gives the same order.

// cutter walks over the pieces of all ways, in the order in which they are stored.
type cutter struct {
	*source
	order []uint32 // ways, along a Hilbert curve
	count uint32   // of pieces
}

// newCutter puts the ways in order.
func newCutter(s *source) *cutter {
	type keyed struct {
		key uint64
		way uint32
	}
	ways := make([]keyed, 0, len(s.wayIDs))
	for w := range uint32(len(s.wayIDs)) {
		if box, ok := s.boxOf(w); ok {
			ways = append(ways, keyed{hilbert(middle(box[0], box[2]), middle(box[1], box[3])), w})
		}
	}
	slices.SortFunc(ways, func(a, b keyed) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.way, b.way)) })
	c := &cutter{source: s, order: make([]uint32, len(ways))}
	for i, w := range ways {
		c.order[i] = w.way
	}
	for range c.eachRun { // counts the pieces
	}
	return c
}

func middle(a, b int32) uint32 { return uint32((int64(a)+int64(b))/2 + math.MaxInt32 + 1) }

// boxOf is the box of a way: west, south, east, north. It returns false for a way that has no run.
func (s *source) boxOf(way uint32) (box [4]int32, ok bool) {
	box = emptyBox()
	for run := range s.runs(way) {
		ok = true
		for _, node := range run {
			box = extendBox(box, [4]int32{s.lon[node], s.lat[node], s.lon[node], s.lat[node]})
		}
	}
	return box, ok
}

func emptyBox() [4]int32 {
	return [4]int32{math.MaxInt32, math.MaxInt32, math.MinInt32, math.MinInt32}
}

func extendBox(a, b [4]int32) [4]int32 {
	return [4]int32{min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])}
}

// hilbert is the position of a point on a Hilbert curve over all coordinates. The curve turns at every bit: the quadrant of the
// bit is numbered as the curve passes it, and the rest is turned and mirrored into that quadrant's own frame.
func hilbert(x, y uint32) (position uint64) {
	for bit := 31; bit >= 0; bit-- {
		right, upper := x>>bit&1, y>>bit&1
		position = position<<2 | uint64(3*right^upper)
		if upper == 0 {
			if right == 1 {
				x, y = ^x, ^y
			}
			x, y = y, x
		}
	}
	return position
}

// run is a part of a way without gaps, and the number of its first piece.
type run struct {
	way   uint32
	nodes []uint32
	piece uint32
}

// eachRun yields the runs of all ways in order, and counts the pieces.
func (c *cutter) eachRun(yield func(run) bool) {
	c.count = 0
	for _, w := range c.order {
		for nodes := range c.runs(w) {
			r := run{w, nodes, c.count}
			for _, node := range nodes[1 : len(nodes)-1] {
				if c.state[node]&anyJunction != 0 {
					c.count++
				}
			}
			c.count++
			if !yield(r) {
				return
			}
		}
	}
}

// eachPiece yields the nodes of each piece in order, with its way.
func (c *cutter) eachPiece(yield func(way uint32, nodes []uint32) bool) {
	for r := range c.eachRun {
		first := 0
		for i := 1; i < len(r.nodes); i++ {
			if i < len(r.nodes)-1 && c.state[r.nodes[i]]&anyJunction == 0 {
				continue
			}
			if !yield(r.way, r.nodes[first:i+1]) {
				return
			}
			first = i
		}
	}
}

// A piece takes 8 bytes for its first point and some 4 for each other, so that any one can be read without those before it.

// writePieces writes the geometry, the roads and the boxes of the pieces, and returns the box of all.
func (c *cutter) writePieces(w *mappedfile.Writer) (all [4]int32, err error) {
	tree := newTreeBuilder(int(c.count))
	var data []byte
	w.AppendU32(secGeometryFirst, 0)
	for way, nodes := range c.eachPiece {
		data = c.appendPiece(data[:0], nodes)
		w.Append(secGeometry, data)
		if w.Length(secGeometry) > math.MaxUint32 {
			return all, ErrTooLarge
		}
		w.AppendU32(secGeometryFirst, uint32(w.Length(secGeometry)))
		w.AppendU32(secPieceRoads, c.wayRoads[way])
		tree.add(c.source, nodes)
	}
	mappedfile.AppendColumn(w, secTree, tree.finish())
	w.Append(secTexts, c.roads.texts)
	mappedfile.AppendColumn(w, secRoads, c.roads.records)
	return tree.all(), w.Err()
}

// appendPiece encodes the points of a piece, as shape.eachPoint decodes them.
func (c *cutter) appendPiece(data []byte, nodes []uint32) []byte {
	lon, lat := c.lon[nodes[0]], c.lat[nodes[0]]
	data = binary.LittleEndian.AppendUint32(data, uint32(lon))
	data = binary.LittleEndian.AppendUint32(data, uint32(lat))
	for _, node := range nodes[1:] {
		data = binary.AppendVarint(data, int64(c.lon[node])-int64(lon))
		data = binary.AppendVarint(data, int64(c.lat[node])-int64(lat))
		lon, lat = c.lon[node], c.lat[node]
	}
	return data
}

// treeBuilder makes the tree of boxes.
type treeBuilder struct {
	levels []treeLevel
	boxes  [][4]int32
	pieces int
}

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

// numbering numbers the junctions of all modes together, in the order of their nodes. It is a set of bits with counts: for a country
// of 60 million nodes a table of numbers would take four times the memory of their states.
type numbering struct {
	junctionNodes []uint32 // ascending
	blockFirst    []uint32 // of each 64 nodes of the source the number of the first junction
	nodeStates    []nodeState
}

func (s *source) numberJunctions() *numbering {
	n := &numbering{nodeStates: s.state}
	for node, state := range s.state {
		if node%64 == 0 {
			n.blockFirst = append(n.blockFirst, uint32(len(n.junctionNodes)))
		}
		if state&anyJunction != 0 {
			n.junctionNodes = append(n.junctionNodes, uint32(node))
		}
	}
	return n
}

// numberOf returns the number of a node that is a junction.
func (n *numbering) numberOf(node uint32) uint32 {
	number := n.blockFirst[node/64]
	for _, state := range n.nodeStates[node&^63 : node] {
		if state&anyJunction != 0 {
			number++
		}
	}
	return number
}

// edges lists the pairs of junctions that pieces connect.
func (n *numbering) edges(c *cutter) [][2]uint32 {
	edges := make([][2]uint32, 0, c.count)
	for _, nodes := range c.eachPiece {
		edges = append(edges, [2]uint32{n.numberOf(nodes[0]), n.numberOf(nodes[len(nodes)-1])})
	}
	return edges
}

// cellsOf returns the cells of the junctions of a mode, given the place of each in the order of all. Cells that hold none of them
// are left out, so that cells are numbered along the junctions.
func cellsOf(all *graph.Cells, places []uint32) graph.Cells {
	cells := graph.Cells{Of: make([]uint32, len(places)), Count: make([]int, all.Levels()), Parent: make([][]uint32, max(all.Levels()-1, 0))}
	before := make([]uint32, all.Levels())
	for j, place := range places {
		for level := all.Levels(); level >= 1; level-- {
			cell := all.At(place, level)
			if j == 0 || cell != before[level-1] {
				cells.Count[level-1]++
				if level < all.Levels() {
					cells.Parent[level-1] = append(cells.Parent[level-1], uint32(cells.Count[level]-1))
				}
			}
			before[level-1] = cell
		}
		cells.Of[j] = uint32(cells.Count[0] - 1)
	}
	return cells
}
