package network

import (
	"math"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/profile"
	"lieudit/schemas/geo"
)

// segment is a stretch of a way between two junctions of a mode.
type segment struct {
	way        uint32
	firstPiece uint32
	pieces     uint16
	ends       uint8 // which of its ends are ends of the way
	from, to   uint32
	distance   uint32
	duration   [2]uint32    // forward and backward; 0: closed
	penalty    [2]uint32    // as in graph.Graph
	area       profile.Side // where it begins
	bearing    [2]int16     // where it leaves each of its junctions, in directionUnit parts of a degree clockwise from north
}

// The bits of segment.ends.
const (
	beginsWay = 1 << iota
	endsWay
)

// directionUnit is how many units of bearings are a degree.
const directionUnit = 100

// Below, a directed segment is a number: that of a segment × 2, + 1 if it goes against the geometry, as in graph.Graph.Segment. So
// directed/2 is the segment, directed%2 the direction and directed^1 the way back.

// layerBuilder builds the graph of a mode: cutSegments, then addRules, then buildGraph. The junctions of all modes have one
// order, that of the cells; a junction's place is its position there. The junctions of the mode are numbered along these places.
type layerBuilder struct {
	*cutter
	*numbering // of the junctions of all modes
	mode       profile.Mode
	placeOf    []uint32 // the place of each junction of any mode in the order of all
	segments   []segment
	firstAt    []uint32 // the first junction of each place in the order of all; a place has more if the mode is stopped there
	places     []uint32 // by junction
	rules      ruleTrie
	applied    int // restrictions
}

// cutSegments finds the segments of a mode and numbers its junctions.
func (b *layerBuilder) cutSegments() {
	for r := range b.eachRun {
		if b.speeds[b.waySpeeds[r.way]].isOpen(b.mode) {
			b.cutRun(r)
		}
	}
	b.numberEnds()
}

// cutRun appends the segments of a run. Their ends are nodes until numberEnds.
func (b *layerBuilder) cutRun(r run) {
	speeds, ends := b.effectiveSpeeds(r.way), b.nodesOf(r.way)
	priority := &b.speeds[b.waySpeeds[r.way]].priority[b.mode]
	first, piece := 0, r.piece
	s := segment{way: r.way, firstPiece: piece}
	for i := 1; i < len(r.nodes); i++ {
		state := b.state[r.nodes[i]]
		if i == len(r.nodes)-1 || state&anyJunction != 0 {
			piece++
		}
		if i < len(r.nodes)-1 && state&(isJunction<<b.mode) == 0 {
			continue
		}
		nodes := r.nodes[first : i+1]
		s.from, s.to, s.pieces, s.ends = nodes[0], nodes[len(nodes)-1], uint16(piece-s.firstPiece), 0
		if &nodes[0] == &ends[0] {
			s.ends |= beginsWay
		}
		if &nodes[len(nodes)-1] == &ends[len(ends)-1] {
			s.ends |= endsWay
		}
		b.measure(&s, nodes, speeds, priority)
		b.segments = append(b.segments, s)
		first, s.firstPiece = i, piece
	}
}

// effectiveSpeeds are the speeds of the mode on a way, in units of profile.Way. A ferry with a tagged duration has its own.
func (b *layerBuilder) effectiveSpeeds(way uint32) (speeds [2]float64) {
	for d, s := range b.speeds[b.waySpeeds[way]].speed[b.mode] {
		speeds[d] = float64(s)
	}
	duration, ok := b.ferries[way]
	if !ok {
		return speeds
	}
	length := 0.0
	for run := range b.runs(way) {
		for i, node := range run[1:] {
			length += b.distance(run[i], node)
		}
	}
	for d := range speeds {
		if speeds[d] > 0 && length > 0 {
			speeds[d] = length / 1000 / duration.Hours() * profile.SpeedUnit
		}
	}
	return speeds
}

// measure fills in distance, durations, penalties and bearings. A node that delays, as traffic lights do, counts for the segments
// that are driven towards it: in each direction the last node counts and the first does not. The priority of the road applies to
// driving, not to such delays.
func (b *layerBuilder) measure(s *segment, nodes []uint32, speeds [2]float64, priority *[2]uint8) {
	metres, delay := 0.0, [2]float64{}
	for i, node := range nodes[1:] {
		metres += b.distance(nodes[i], node)
		delay[profile.Forward] += b.delayAt(node, profile.Forward)
		delay[profile.Backward] += b.delayAt(nodes[i], profile.Backward)
	}
	s.distance = uint32(min(math.Round(metres*graph.DistanceUnit), maxCost))
	for d, speed := range speeds {
		s.duration[d], s.penalty[d] = 0, 0
		if speed > 0 {
			driving := metres * profile.SpeedUnit * 3.6 / speed * graph.DurationUnit
			s.duration[d] = uint32(min(max(math.Round(driving+delay[d]), 1), maxCost))
			penalty := driving * (profile.PriorityUnit/float64(priority[d]) - 1)
			s.penalty[d] = uint32(min(math.Round(penalty), float64(maxCost-s.duration[d])))
		}
	}
	s.bearing = [2]int16{b.bearing(nodes, 0, 1), b.bearing(nodes, len(nodes)-1, -1)}
	begin := b.pointOf(nodes[0])
	s.area = profile.SideAt(begin.Lon, begin.Lat)
}

// maxCost bounds the duration of an edge with its penalty (two days) and its distance (1,700 km), so that several consecutive
// avoided edges, each of which counts route.AvoidFactor times, do not overflow a weight.
const maxCost = math.MaxUint32 / (5 * route.AvoidFactor)

// delayAt is the cost of passing a node in a direction, in graph.DurationUnit parts of a second. A node that stops the mode is
// never passed.
func (b *layerBuilder) delayAt(node uint32, d profile.Direction) float64 {
	if b.state[node]&hasFacts == 0 {
		return 0
	}
	facts := b.facts[node]
	if facts.Closed[b.mode] {
		return 0
	}
	return float64(facts.DelayOf(b.mode, d)) * graph.DurationUnit / profile.DelayUnit
}

// bearingDistance is how far along a segment its bearing is taken, in metres: so that the first steps around the corner of a
// junction do not count.
const bearingDistance = 20

// bearing is the bearing in which nodes leave nodes[from], a step forward or backward at a time.
func (b *layerBuilder) bearing(nodes []uint32, from, step int) int16 {
	begin := b.pointOf(nodes[from])
	to, walked := begin, 0.0
	for i := from + step; i >= 0 && i < len(nodes) && walked < bearingDistance; i += step {
		next := b.pointOf(nodes[i])
		length := geo.Distance(to, next)
		if rest := bearingDistance - walked; length > rest {
			part := rest / length
			next = geo.Point{Lon: to.Lon + part*(next.Lon-to.Lon), Lat: to.Lat + part*(next.Lat-to.Lat)}
		}
		walked, to = walked+length, next
	}
	x := (to.Lon - begin.Lon) * math.Cos(begin.Lat*math.Pi/180)
	return int16(math.Round(math.Atan2(x, to.Lat-begin.Lat) * 180 / math.Pi * directionUnit))
}

// pointOf is the position of a node.
func (t *nodeTable) pointOf(node uint32) geo.Point { return toPoint(t.lon[node], t.lat[node]) }

// numberEnds numbers the junctions along their places and replaces the ends of segments, which were nodes, by them. A node that
// stops the mode becomes a junction of its own for each segment that ends there.
func (b *layerBuilder) numberEnds() {
	b.firstAt = make([]uint32, len(b.placeOf)+1)
	b.eachEnd(func(node *uint32) {
		place := b.placeOf[b.numberOf(*node)]
		if b.firstAt[place+1] == 0 || b.isClosed(*node) {
			b.firstAt[place+1]++
		}
	})
	for place := range b.placeOf {
		for range b.firstAt[place+1] {
			b.places = append(b.places, uint32(place))
		}
		b.firstAt[place+1] += b.firstAt[place]
	}
	taken := map[uint32]uint32{} // of nodes that stop the mode
	b.eachEnd(func(node *uint32) {
		junction := b.junctionAt(*node)
		if b.isClosed(*node) {
			junction += taken[*node]
			taken[*node]++
		}
		*node = junction
	})
}

// junctionAt returns the first junction of a node.
func (b *layerBuilder) junctionAt(node uint32) uint32 { return b.firstAt[b.placeOf[b.numberOf(node)]] }

// junctionOf returns the junction of a node. It returns false if the node is not a junction, or stops the mode.
func (b *layerBuilder) junctionOf(node uint32) (uint32, bool) {
	if node == graph.None || b.state[node]&(isJunction<<b.mode) == 0 || b.isClosed(node) {
		return 0, false
	}
	return b.junctionAt(node), true
}

// eachEnd visits both ends of each segment in order.
func (b *layerBuilder) eachEnd(visit func(node *uint32)) {
	for i := range b.segments {
		visit(&b.segments[i].from)
		visit(&b.segments[i].to)
	}
}

// isClosed reports whether a node stops the mode, as a barrier does: no route of the mode passes it.
func (b *layerBuilder) isClosed(node uint32) bool {
	return b.state[node]&hasFacts != 0 && b.facts[node].Closed[b.mode]
}

// isOpen reports whether a directed segment may be used.
func (b *layerBuilder) isOpen(directed uint32) bool {
	return b.segments[directed/2].duration[directed%2] > 0
}

// tail and head are the junctions where a directed segment begins and ends.
func (b *layerBuilder) tail(directed uint32) uint32 {
	s := &b.segments[directed/2]
	if directed%2 == 1 {
		return s.to
	}
	return s.from
}

func (b *layerBuilder) head(directed uint32) uint32 { return b.tail(directed ^ 1) }

// bitsOf returns the bits of the road of a directed segment.
func (b *layerBuilder) bitsOf(directed uint32) uint32 {
	return b.roads.bits(b.wayRoads[b.segments[directed/2].way])
}

// numbering numbers the junctions of all modes together, in the order of their nodes. It is a set of bits with counts: for a country
// of 60 million nodes a table of numbers would take four times the memory of their states.
type numbering struct {
	junctionNodes []uint32 // ascending
	blockFirst    []uint32 // the number of the first junction in each 64 nodes of the source
	nodeStates    []nodeState
}

// numberJunctions numbers the nodes that are junctions of any mode.
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

// cellsOf returns the cells of the junctions of a mode, given the place of each in the order of all. Cells without such a junction
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
