package network

import (
	"context"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"lieudit/queries/route/graph"
	"lieudit/queries/route/osmpbf"
	"lieudit/queries/route/profile"
	"lieudit/schemas/geo"
)

// source is the part of a map that a build needs: roads, the nodes that they use, restrictions. Nodes are columns in the order of
// their ids, and ways refer to them by their index: a country of 60 million nodes takes 1 GB, and briefly twice as much.
type source struct {
	wayTable
	nodeTable
	restrictions []restriction
	exits        []exit   // at nodes, in their order
	mini         []uint32 // nodes that are mini roundabouts, in their order
	unsupported  []int64  // ids of relations that are restrictions, but concern no mode or have no known form
	date         time.Time
}

// restriction is a turn restriction and the relation that it was.
type restriction struct {
	profile.Restriction
	id  int64
	via uint32 // the number of the node that it leads over, graph.None if the map lacks it
}

// wayTable holds the ways that are roads, numbered in the order of the map. Facts that many ways share are stored once: a road is a
// number in roads, a set of speeds a number in speeds.
type wayTable struct {
	roads     *roadTable
	wayIDs    []int64
	wayRoads  []uint32
	waySpeeds []uint32 // in speeds
	speeds    []speedSet
	speedOf   map[speedSet]uint32
	onLeft    map[uint32]uint32        // in speeds, for ways whose speeds differ if traffic keeps left
	ferries   map[uint32]time.Duration // crossing times of ferry ways that are tagged with one

	wayFirst []uint32 // the first node of each way in refs or nodes, and one more at the end
	refs     []int64  // ids of nodes, until they are numbered
	nodes    []uint32 // numbers of nodes; graph.None for those that the map lacks
}

// speedSet is the speeds and the priorities of a way for each mode, forward and backward, in units of profile.Way; speed 0: closed.
type speedSet struct {
	speed    [profile.Modes][2]uint16
	priority [profile.Modes][2]uint8
}

// isOpen reports whether a mode may use the way in some direction.
func (s *speedSet) isOpen(m profile.Mode) bool { return s.speed[m] != [2]uint16{} }

// nodeTable holds the nodes of roads.
type nodeTable struct {
	ids      []int64 // ascending
	lon, lat []int32
	state    []nodeState
	facts    map[uint32]profile.Node // of those with hasFacts
}

// nodeState is a set of bits: what the cutting of ways needs to know about a node.
type nodeState uint8

const (
	isUsed     nodeState = 1 // on a way of cars; the bits of the other modes follow
	isJunction           = isUsed << profile.Modes
	isPresent            = isJunction << profile.Modes
	hasFacts             = isPresent << 1

	anyJunction = isPresent - isJunction
)

// maxWayNodes bounds a way, so that the number of its pieces fits in 16 bits. A longer one is read as several.
const maxWayNodes = 60_000

// roadTable numbers roads and texts in the order in which they come.
type roadTable struct {
	texts    []byte
	textOf   map[string]uint32 // offsets
	records  []uint32
	recordOf map[[roadSize]uint32]uint32
}

// newRoadTable returns a table with the empty text at offset 0.
func newRoadTable() *roadTable {
	return &roadTable{texts: []byte{0}, textOf: map[string]uint32{"": 0}, recordOf: map[[roadSize]uint32]uint32{}}
}

// addText returns the offset of a text. It keeps a copy.
func (r *roadTable) addText(text string) uint32 {
	if at, ok := r.textOf[text]; ok {
		return at
	}
	at := uint32(len(r.texts))
	r.texts = append(binary.AppendUvarint(r.texts, uint64(len(text))), text...)
	r.textOf[strings.Clone(text)] = at
	return at
}

// add returns the number of a road. Ways of the same road share it.
func (r *roadTable) add(w *profile.Way) uint32 {
	record := [roadSize]uint32{r.addText(w.Name), r.addText(w.Ref), r.addText(w.Destinations), r.addText(w.Exit), bitsOf(w)}
	if at, ok := r.recordOf[record]; ok {
		return at
	}
	at := uint32(len(r.recordOf))
	r.records = append(r.records, record[:]...)
	r.recordOf[record] = at
	return at
}

// bits returns the bits of a road's record.
func (r *roadTable) bits(road uint32) uint32 { return r.records[road*roadSize+roadBits] }

// bitsOf packs the facts of a way that are not texts.
func bitsOf(w *profile.Way) uint32 {
	bits := uint32(w.Class)
	for _, fact := range []struct {
		holds bool
		bit   uint32
	}{{w.IsRoundabout, bitRoundabout}, {w.IsLink, bitLink}, {w.IsTunnel, bitTunnel}, {w.IsBridge, bitBridge}, {w.HasToll, bitToll},
		{w.IsRestricted, bitRestricted}, {w.Speed[profile.Car] != [2]uint16{}, bitCar},
		{w.Speed[profile.Foot] != [2]uint16{}, bitCar << profile.Foot}, {w.Speed[profile.Bike] != [2]uint16{}, bitCar << profile.Bike},
		{w.Side == profile.Right, bitKeepsRight}, {w.Side == profile.Left, bitKeepsLeft}} {
		if fact.holds {
			bits |= fact.bit
		}
	}
	return bits
}

// readSource reads a map in two scans: ways and relations, then the nodes that they refer to.
func readSource(ctx context.Context, file *osmpbf.File, progress func(stage string, done, total int64)) (*source, error) {
	s := &source{wayTable: wayTable{roads: newRoadTable(), speedOf: map[speedSet]uint32{}, onLeft: map[uint32]uint32{}, ferries: map[uint32]time.Duration{},
		wayFirst: []uint32{0}}, date: file.Header().Date}
	report := func(stage string) func(int64) { return func(done int64) { progress(stage, done, file.Size()) } }
	err := file.Scan(ctx, osmpbf.Ways|osmpbf.Relations, report(StageRoads), func(b *osmpbf.Block) error {
		for i := range b.Ways {
			s.addWay(&b.Ways[i])
		}
		for i := range b.Relations {
			s.addRelation(&b.Relations[i])
		}
		return s.checkSize()
	})
	if err != nil {
		return nil, err
	}
	s.listNodes()
	at := 0
	err = file.Scan(ctx, osmpbf.Nodes, report(StageNodes), func(b *osmpbf.Block) error {
		for i := range b.Nodes {
			at = s.addNode(&b.Nodes[i], at)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.numberRefs()
	s.keepLeft()
	s.listExits()
	s.listMiniRoundabouts()
	return s, s.checkSize()
}

// addWay keeps a way that is a road.
func (t *wayTable) addWay(w *osmpbf.Way) {
	facts, ok := profile.ReadWay(w.Tags)
	if !ok {
		return
	}
	road, speeds := t.roads.add(&facts), t.addSpeeds(speedSet{facts.Speed, facts.Priority})
	for nodes := w.Nodes; len(nodes) > 1; nodes = nodes[min(maxWayNodes, len(nodes))-1:] {
		if facts.FerryDuration > 0 {
			t.ferries[uint32(len(t.wayIDs))] = facts.FerryDuration
		}
		if facts.BikeOnLeft != facts.Speed[profile.Bike] {
			onLeft := facts.Speed
			onLeft[profile.Bike] = facts.BikeOnLeft
			t.onLeft[uint32(len(t.wayIDs))] = t.addSpeeds(speedSet{onLeft, facts.Priority})
		}
		t.wayIDs, t.wayRoads, t.waySpeeds = append(t.wayIDs, w.ID), append(t.wayRoads, road), append(t.waySpeeds, speeds)
		t.refs = append(t.refs, nodes[:min(maxWayNodes, len(nodes))]...)
		t.wayFirst = append(t.wayFirst, uint32(len(t.refs)))
	}
}

// addSpeeds returns the number of a set of speeds.
func (t *wayTable) addSpeeds(set speedSet) uint32 {
	at, ok := t.speedOf[set]
	if !ok {
		at = uint32(len(t.speeds))
		t.speedOf[set], t.speeds = at, append(t.speeds, set)
	}
	return at
}

// addRelation keeps a relation that is a turn restriction.
func (s *source) addRelation(r *osmpbf.Relation) {
	if !strings.HasPrefix(r.Tags.Get("type"), "restriction") {
		return
	}
	members := make([]profile.Member, len(r.Members))
	for i, m := range r.Members {
		members[i] = profile.Member{IsNode: m.Type == osmpbf.NodeMember, IsWay: m.Type == osmpbf.WayMember, ID: m.ID, Role: m.Role}
	}
	if facts, ok := profile.ReadRestriction(r.Tags, members); ok {
		s.restrictions = append(s.restrictions, restriction{facts, r.ID, graph.None})
	} else {
		s.unsupported = append(s.unsupported, r.ID)
	}
}

// checkSize rejects maps that are too large for 32-bit numbers.
func (s *source) checkSize() error {
	if len(s.refs) >= math.MaxUint32/2 || len(s.roads.texts) >= math.MaxUint32 {
		return ErrTooLarge
	}
	return nil
}

// listNodes makes a column of the nodes that ways name.
func (s *source) listNodes() {
	s.ids = slices.Clone(s.refs) // memory peaks here: 16 bytes for each node of each way
	slices.Sort(s.ids)
	s.ids = slices.Compact(s.ids)
	s.lon, s.lat = make([]int32, len(s.ids)), make([]int32, len(s.ids))
	s.state = make([]nodeState, len(s.ids))
	s.facts = map[uint32]profile.Node{}
}

// addNode keeps a node that a way names. at is where to look first; addNode returns it for the next node.
func (t *nodeTable) addNode(n *osmpbf.Node, at int) int {
	at, ok := seek(t.ids, at, n.ID)
	if !ok {
		return at
	}
	t.lon[at], t.lat[at] = n.Lon, n.Lat
	t.state[at] = isPresent
	if facts, ok := profile.ReadNode(n.Tags); ok {
		t.state[at] |= hasFacts
		t.facts[uint32(at)] = facts
	}
	return at
}

// seek finds an id in an ascending column by a galloping search: it starts at from and doubles its steps, because consecutive
// look-ups are for neighbouring ids. If the id is missing it returns the position where it would be and false.
func seek(ids []int64, from int, id int64) (int, bool) {
	low, high := from, from
	for step := 1; low > 0 && ids[min(low, len(ids)-1)] > id; step *= 2 {
		high, low = low, max(low-step, 0)
	}
	for step := 1; high < len(ids) && ids[high] < id; step *= 2 {
		low, high = high, min(high+step, len(ids))
	}
	at, ok := slices.BinarySearch(ids[low:min(high+1, len(ids))], id)
	return low + at, ok
}

// numberRefs replaces the ids of nodes in ways and restrictions by numbers, and drops the ids. A repeated node in a way is dropped.
func (s *source) numberRefs() {
	s.nodes = make([]uint32, 0, len(s.refs))
	at, first := 0, uint32(0)
	for w := range s.wayIDs {
		end := s.wayFirst[w+1]
		for i, ref := range s.refs[first:end] {
			at, _ = seek(s.ids, at, ref)
			node := uint32(at)
			if s.state[at]&isPresent == 0 {
				node = graph.None
			}
			if i == 0 || node != s.nodes[len(s.nodes)-1] {
				s.nodes = append(s.nodes, node)
			}
		}
		first, s.wayFirst[w+1] = end, uint32(len(s.nodes))
	}
	for i := range s.restrictions {
		if node, ok := slices.BinarySearch(s.ids, s.restrictions[i].ViaNode); ok && s.state[node]&isPresent != 0 {
			s.restrictions[i].via = uint32(node)
		}
	}
	s.refs, s.ids = nil, nil
}

// keepLeft sets the speeds of ways where traffic keeps left. The position of a way is known only after its nodes are.
func (s *source) keepLeft() {
	for way, speeds := range s.onLeft {
		for _, node := range s.nodes[s.wayFirst[way]:s.wayFirst[way+1]] {
			if node != graph.None {
				if p := s.pointOf(node); profile.SideAt(p.Lon, p.Lat) == profile.Left {
					s.waySpeeds[way] = speeds
				}
				break
			}
		}
	}
	s.onLeft = nil
}

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
			isGate := facts.IsRestricted && profile.Mode(m) == profile.Car
			if (isClosed || isGate) && s.state[node]&(isUsed<<m) != 0 {
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

// countMissing counts the nodes that ways name and the map lacks.
func (t *nodeTable) countMissing() (n int) {
	for _, state := range t.state {
		if state&isPresent == 0 {
			n++
		}
	}
	return n
}

// nodesOf returns the nodes of a way; graph.None stands for those that the map lacks.
func (t *wayTable) nodesOf(way uint32) []uint32 { return t.nodes[t.wayFirst[way]:t.wayFirst[way+1]] }

// runs yields the parts of a way between the nodes that the map lacks: at least two nodes. An extract of a map lacks the nodes
// beyond its border.
func (t *wayTable) runs(way uint32) iter.Seq[[]uint32] {
	return func(yield func([]uint32) bool) {
		for rest := t.nodesOf(way); len(rest) > 0; {
			end := slices.Index(rest, graph.None)
			if end < 0 {
				end = len(rest)
			}
			if end > 1 && !yield(rest[:end]) {
				return
			}
			rest = rest[min(end+1, len(rest)):]
		}
	}
}

// distance is the distance of two nodes in metres.
func (t *nodeTable) distance(a, b uint32) float64 {
	return geo.Distance(toPoint(t.lon[a], t.lat[a]), toPoint(t.lon[b], t.lat[b]))
}
