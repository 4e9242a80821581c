package network

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"lieudit/queries/mappedfile"
)

// Pieces are not kept in memory: whoever needs them walks over the ways again, which costs little and always gives the same order.

// cutter walks over the pieces of all ways, in the order in which they are stored.
type cutter struct {
	*source
	order []uint32 // ways, along a Hilbert curve
	count uint32   // of pieces
}

// newCutter puts the ways in the order of the middles of their boxes on the curve, and counts the pieces.
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

// middle is the middle of two coordinates, shifted so that none is negative.
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

// appendPiece encodes the points of a piece, as pointDecoder decodes them.
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

// edges lists the pairs of junctions that pieces connect: the graph that package partition divides into cells.
func (n *numbering) edges(c *cutter) [][2]uint32 {
	edges := make([][2]uint32, 0, c.count)
	for _, nodes := range c.eachPiece {
		edges = append(edges, [2]uint32{n.numberOf(nodes[0]), n.numberOf(nodes[len(nodes)-1])})
	}
	return edges
}
