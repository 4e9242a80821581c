package network

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"lieudit/queries/mappedfile"
	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/profile"
	"lieudit/schemas/geo"
)

// Road describes the road that a segment belongs to.
type Road struct {
	Name, Ref, Destinations string // "" if unknown
	Exit                    string // number of the exit of a motorway that it is
	Class                   profile.Class
	IsRoundabout, IsLink    bool
	IsTunnel, IsBridge      bool
	HasToll, IsFerry        bool
	IsRestricted            bool // a car may use it only to reach what lies on it
	Side                    profile.Side
}

// A record of a road is roadSize numbers: offsets of four texts, and bits.
const (
	roadName = iota
	roadRef
	roadDestinations
	roadExit
	roadBits
	roadSize
)

// The bits of a road: its class, then these.
const (
	bitRoundabout = 1 << (8 + iota)
	bitLink
	bitTunnel
	bitBridge
	bitToll
	bitRestricted
	bitCar // open to the mode in some direction; those of the other modes follow
)

// The bits of the side that traffic keeps to on a road, where it is tagged with one.
const (
	bitKeepsRight = bitCar << (profile.Modes + iota)
	bitKeepsLeft
)

// sideOf is the side in the bits of a road.
func sideOf(bits uint32) profile.Side {
	switch {
	case bits&bitKeepsLeft != 0:
		return profile.Left
	case bits&bitKeepsRight != 0:
		return profile.Right
	}
	return profile.Untagged
}

// shape is what all modes share: texts, roads, geometry and the index of positions.
type shape struct {
	texts         []byte   // each text is its length, as a varint, and its bytes; "" is at 0
	roads         []uint32 // records
	geometryFirst []uint32 // where the points of each piece begin, and one more at the end
	geometry      []byte
	pieceRoads    []uint32
	tree          []int32 // boxes: west, south, east, north; the finest level first
	levels        []treeLevel
}

// bindShape lays the shared columns over their sections.
func (n *Network) bindShape() error {
	b := &binder{network: n}
	n.shape = shape{
		texts: n.Section(secTexts), roads: column[uint32](b, secRoads, -1), geometry: n.Section(secGeometry),
		geometryFirst: column[uint32](b, secGeometryFirst, n.Meta.Roads+1), pieceRoads: column[uint32](b, secPieceRoads, n.Meta.Roads),
		levels: treeLevels(n.Meta.Roads),
	}
	n.shape.tree = column[int32](b, secTree, 4*boxCount(n.shape.levels))
	return b.err
}

// text returns the text at an offset.
func (s *shape) text(at uint32) string {
	length, n := binary.Uvarint(s.texts[at:])
	return string(s.texts[int(at)+n:][:length])
}

// bitsOf returns the bits of the road of a piece.
func (s *shape) bitsOf(piece uint32) uint32 { return s.roads[s.pieceRoads[piece]*roadSize+roadBits] }

// Segments is the number of segments.
func (l *Layer) Segments() int { return len(l.firstPiece) }

// RoadNumber is the number of a segment's road: segments of the same number have the same Road.
func (l *Layer) RoadNumber(segment uint32) uint32 {
	return l.network.shape.pieceRoads[l.firstPiece[segment]]
}

// Road returns the facts of a segment's road. Its texts are copies.
func (l *Layer) Road(segment uint32) Road {
	s := &l.network.shape
	record := s.roads[s.pieceRoads[l.firstPiece[segment]]*roadSize:][:roadSize]
	bits := record[roadBits]
	r := Road{
		Name: s.text(record[roadName]), Ref: s.text(record[roadRef]), Destinations: s.text(record[roadDestinations]),
		Exit: s.text(record[roadExit]), Class: profile.Class(bits), IsRoundabout: bits&bitRoundabout != 0, IsLink: bits&bitLink != 0,
		IsTunnel: bits&bitTunnel != 0, IsBridge: bits&bitBridge != 0, HasToll: bits&bitToll != 0, IsRestricted: bits&bitRestricted != 0,
		Side: sideOf(bits),
	}
	r.IsFerry = r.Class == profile.Ferry || r.Class == profile.ShuttleTrain
	return r
}

// SegmentEdges returns the edges of a segment along its geometry and against it: graph.None where that direction is closed. They
// are never copies.
func (l *Layer) SegmentEdges(segment uint32) (forward, backward uint32) {
	return l.segmentEdges[2*segment], l.segmentEdges[2*segment+1]
}

// AppendGeometry appends the points of a segment, from its first junction to its second or backward. There are at least two, and no
// point is repeated unless the whole segment has no length.
func (l *Layer) AppendGeometry(dst []geo.Point, segment uint32, backward bool) []geo.Point {
	begin := len(dst)
	first := l.firstPiece[segment]
	for p := first; p < first+uint32(l.pieces[segment]); p++ {
		if p > first {
			dst = dst[:len(dst)-1] // it begins where the one before ended
		}
		d := l.network.shape.firstPoint(p)
		dst = append(dst, toPoint(d.lon, d.lat))
		for d.next() {
			dst = append(dst, toPoint(d.lon, d.lat))
		}
	}
	dst = dropRepeated(dst, begin)
	if backward {
		for i, j := begin, len(dst)-1; i < j; i, j = i+1, j-1 {
			dst[i], dst[j] = dst[j], dst[i]
		}
	}
	return dst
}

// AppendFixed appends the points of a segment, from its first junction to its second, as stored in the file: at least two, possibly
// with repetitions. It is faster than AppendGeometry.
func (l *Layer) AppendFixed(dst []route.FixedPoint, segment uint32) []route.FixedPoint {
	first := l.firstPiece[segment]
	for p := first; p < first+uint32(l.pieces[segment]); p++ {
		if p > first {
			dst = dst[:len(dst)-1] // it begins where the one before ended
		}
		dst = l.network.shape.appendPiece(dst, p)
	}
	return dst
}

// appendPiece appends the points of a piece.
func (s *shape) appendPiece(dst []route.FixedPoint, piece uint32) []route.FixedPoint {
	d := s.firstPoint(piece)
	at, data := route.FixedPoint{Lon: d.lon, Lat: d.lat}, d.data
	for {
		dst = append(dst, at)
		if len(data) >= 4 {
			if word := binary.LittleEndian.Uint32(data); areTwoBytesEach(word) {
				at.Lon, at.Lat = at.Lon+signed(firstOf(word)), at.Lat+signed(secondOf(word))
				data = data[4:]
				continue
			}
		} else if len(data) == 0 {
			return dst
		}
		d = pointDecoder{data, at.Lon, at.Lat}
		if !d.nextOfAnySize() {
			return dst
		}
		at, data = route.FixedPoint{Lon: d.lon, Lat: d.lat}, d.data
	}
}

// BoxAround returns the corners of a box that holds a segment and some of its neighbours, without reading their points.
func (l *Layer) BoxAround(segment uint32) (southWest, northEast route.FixedPoint) {
	first := l.firstPiece[segment]
	box := l.network.shape.leafOf(first)
	if n := uint32(l.pieces[segment]); n > 1 {
		for leaf := first/treeFan + 1; leaf <= (first+n-1)/treeFan; leaf++ {
			box = extendBox(box, l.network.shape.leafOf(leaf*treeFan))
		}
	}
	return route.FixedPoint{Lon: box[0], Lat: box[1]}, route.FixedPoint{Lon: box[2], Lat: box[3]}
}

// leafOf is the box of the finest level that holds a piece.
func (s *shape) leafOf(piece uint32) [4]int32 { return [4]int32(s.tree[4*(piece/treeFan):]) }

// dropRepeated removes repeated points, but leaves two.
func dropRepeated(points []geo.Point, begin int) []geo.Point {
	kept := begin + 1
	for i := begin + 1; i < len(points); i++ {
		if points[i] != points[kept-1] {
			points[kept] = points[i]
			kept++
		}
	}
	return points[:min(max(kept, begin+2), len(points))]
}

// coordinateUnit is how many units of coordinates are a degree.
const coordinateUnit = route.FixedUnit

// toPoint converts the coordinates of the file, which are those of OpenStreetMap, to degrees.
func toPoint(lon, lat int32) geo.Point {
	return geo.Point{Lon: float64(lon) / coordinateUnit, Lat: float64(lat) / coordinateUnit}
}

// pointDecoder decodes the points of a piece one after the other, in the coordinates of the file. The first is stored in full, each
// other one as the difference from the previous point.
type pointDecoder struct {
	data     []byte // of the points that follow
	lon, lat int32
}

// firstPoint returns a decoder that stands at the first point of a piece.
func (s *shape) firstPoint(piece uint32) pointDecoder {
	data := s.geometry[s.geometryFirst[piece]:s.geometryFirst[piece+1]]
	return pointDecoder{data[8:], int32(binary.LittleEndian.Uint32(data)), int32(binary.LittleEndian.Uint32(data[4:]))}
}

// next moves to the next point. It returns false at the end, and if the file is damaged.
func (d *pointDecoder) next() bool {
	if len(d.data) < 4 {
		return len(d.data) > 0 && d.nextOfAnySize()
	}
	word := binary.LittleEndian.Uint32(d.data)
	if !areTwoBytesEach(word) {
		return d.nextOfAnySize()
	}
	d.data = d.data[4:]
	d.lon, d.lat = d.lon+signed(firstOf(word)), d.lat+signed(secondOf(word))
	return true
}

// areTwoBytesEach reports whether two varints of two bytes each are in a word, as nearly all differences between points are. firstOf and
// secondOf are their values.
func areTwoBytesEach(word uint32) bool { return word&0x80808080 == 0x00800080 }
func firstOf(word uint32) uint32       { return word&0x7F | word>>1&0x3F80 }
func secondOf(word uint32) uint32      { return word>>16&0x7F | word>>17&0x3F80 }

// signed is the number that the value of a varint stands for.
func signed(value uint32) int32 { return int32(value>>1) ^ -int32(value&1) }

// nextOfAnySize is next for differences of any number of bytes.
func (d *pointDecoder) nextOfAnySize() bool {
	dx, n := binary.Varint(d.data)
	if n <= 0 {
		return false
	}
	dy, k := binary.Varint(d.data[n:])
	if k <= 0 {
		return false
	}
	d.data = d.data[n+k:]
	d.lon, d.lat = d.lon+int32(dx), d.lat+int32(dy)
	return true
}

// segmentOf returns the segment that a piece belongs to, or graph.None if the mode does not use it.
func (l *Layer) segmentOf(piece uint32) uint32 {
	after := sort.Search(len(l.firstPiece), func(i int) bool { return l.firstPiece[i] > piece })
	if after == 0 || piece-l.firstPiece[after-1] >= uint32(l.pieces[after-1]) {
		return graph.None
	}
	return uint32(after - 1)
}

// Pieces are not kept in memory: code that needs them walks over the ways again, which is cheap and always gives the same order.

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

// middle is the middle of two coordinates, shifted so that it is never negative.
func middle(a, b int32) uint32 { return uint32((int64(a)+int64(b))/2 + math.MaxInt32 + 1) }

// boxOf is the box of a way: west, south, east, north. It returns false for a way without a run.
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

// A piece takes 8 bytes for its first point and about 4 for each other one, and can be read without the pieces before it.

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
