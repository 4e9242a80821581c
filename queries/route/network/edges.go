package network

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/profile"
	"lieudit/schemas/geo"
)

// An edge is a directed segment that is open, or a copy of one: a copy for each state of the rules that is longer than the segment
// itself, and another copy of each of these if the segment may lie in two parts of a route. At a junction the plain edges come
// first, in the order of their segments, then the copies in the order of their states, then those of the later part, so that the
// same map gives the same numbers.

// part is one of the three parts that a route has, each of which may be missing. Roads that are closed to through traffic may only
// be used at its ends: first restricted roads, then public ones, then restricted ones again. So a restricted segment has an edge on
// which routes leave it, from which any route may start, and a copy on which they arrive; no turn leads back from a later part to
// an earlier. The part of an edge that is not a copy is the earliest one.
type part uint8

const (
	public part = iota
	leaving
	arriving
)

// edgeBuilder numbers the edges of a mode and makes the columns of its graph.
type edgeBuilder struct {
	*layerBuilder
	g           *graph.Graph
	through     *throughRules       // nil if the mode may use all its roads throughout
	plain       []uint32            // by directed segment: its original edge; graph.None if it is closed
	later       []uint32            // by directed segment: its first copy in the later part, or graph.None
	copies      map[uint32][]uint32 // of edges that have copies: they and their copies
	stateOf     map[uint32]int32    // of copies, and of edges that are the start of a rule
	hasRule     []bool              // by junction: a copy begins there, a rule says where to continue, or not all roads are public
	tableAt     map[string]uint32   // where in Turns a table of turn costs lies
	row         []byte              // the table of the current junction
	isPermitted []bool              // of the columns of a row of it: no rule forbids the turn
}

// buildGraph makes the graph of the segments and rules. It fails if a junction has more roads than a graph can hold.
func (b *layerBuilder) buildGraph() (*edgeBuilder, error) {
	through := b.findRestricted()
	if through == nil {
		return b.buildEdges(nil)
	}
	draft, err := b.buildEdges(through)
	if err != nil {
		return nil, err
	}
	through.openPockets(draft)
	through.hasParts = true
	return b.buildEdges(through)
}

// buildEdges makes the graph with the copies that the rules require.
func (b *layerBuilder) buildEdges(through *throughRules) (*edgeBuilder, error) {
	e := &edgeBuilder{layerBuilder: b, through: through, copies: map[uint32][]uint32{},
		stateOf: map[uint32]int32{}, hasRule: make([]bool, len(b.places)), tableAt: map[string]uint32{}}
	e.g = &graph.Graph{FirstOut: make([]uint32, len(b.places)+1), FirstIn: make([]uint32, len(b.places)+1),
		TurnTable: make([]uint32, len(b.places))}
	e.countEdges()
	e.numberEdges()
	e.listCopies()
	if err := e.rankIncoming(); err != nil {
		return nil, err
	}
	e.fillTurns()
	if !slices.ContainsFunc(e.g.Penalty, func(p uint32) bool { return p > 0 }) {
		e.g.Penalty = nil
	}
	return e, nil
}

// eachEdge visits all edges: one for each directed segment that is open, then the copies in the order of their rules, then all
// those of later parts.
func (e *edgeBuilder) eachEdge(visit func(directed uint32, state int32, isLater bool)) {
	e.eachState(func(directed uint32, state int32) { visit(directed, state, false) })
	if e.through == nil || !e.through.hasParts {
		return
	}
	e.eachState(func(directed uint32, state int32) {
		if e.through.hasLater(directed) {
			visit(directed, state, true)
		}
	})
}

// eachState visits the directed segments that are open, then their states that are copies.
func (e *edgeBuilder) eachState(visit func(directed uint32, state int32)) {
	for directed := range uint32(2 * len(e.segments)) {
		if e.isOpen(directed) {
			visit(directed, noState)
		}
	}
	for state := range e.rules.states {
		if e.rules.isCopy(int32(state)) {
			visit(e.rules.states[state].directed, int32(state))
		}
	}
}

// countEdges fills in FirstOut and FirstIn and makes the columns of edges.
func (e *edgeBuilder) countEdges() {
	g, n := e.g, 0
	e.eachEdge(func(directed uint32, _ int32, _ bool) {
		g.FirstOut[e.tail(directed)+1]++
		g.FirstIn[e.head(directed)+1]++
		n++
	})
	for j := range e.places {
		g.FirstOut[j+1] += g.FirstOut[j]
		g.FirstIn[j+1] += g.FirstIn[j]
	}
	for _, column := range []*[]uint32{&g.Tail, &g.Head, &g.Duration, &g.Distance, &g.Penalty, &g.Segment, &g.In} {
		*column = make([]uint32, n)
	}
	g.InRank, g.Flags = make([]uint8, n), make([]graph.Flags, n)
}

// numberEdges numbers the edges of each junction in the order of eachEdge and fills in their columns.
func (e *edgeBuilder) numberEdges() {
	g := e.g
	e.plain = make([]uint32, 2*len(e.segments))
	for i := range e.plain {
		e.plain[i] = graph.None
	}
	e.later = slices.Clone(e.plain)
	next := make([]uint32, len(e.places))
	copy(next, g.FirstOut)
	e.eachEdge(func(directed uint32, state int32, isLater bool) {
		tail, s := e.tail(directed), &e.segments[directed/2]
		edge := next[tail]
		next[tail]++
		g.Tail[edge], g.Head[edge], g.Segment[edge] = tail, e.head(directed), directed
		g.Duration[edge], g.Distance[edge], g.Flags[edge] = s.duration[directed%2], s.distance, e.flagsOf(directed)
		g.Penalty[edge] = s.penalty[directed%2]
		if e.through != nil && e.through.hasParts && e.through.partOf(directed, isLater) == leaving {
			g.Flags[edge] |= graph.Leaving
		}
		e.noteEdge(edge, directed, state, isLater)
	})
	for state := range e.rules.states {
		s := &e.rules.states[state]
		if s.length > 1 {
			continue
		}
		e.stateOf[e.plain[s.directed]] = int32(state)
		e.hasRule[e.head(s.directed)] = true
		if later := e.later[s.directed]; later != graph.None {
			e.stateOf[later] = int32(state)
		}
	}
	if e.through != nil {
		for junction := range e.through.gates {
			e.hasRule[junction] = true
		}
	}
}

// noteEdge records an edge under its directed segment.
func (e *edgeBuilder) noteEdge(edge, directed uint32, state int32, isLater bool) {
	isPlain := state == noState && !isLater
	if state != noState {
		e.stateOf[edge] = state
	}
	if state == noState && isLater {
		e.later[directed] = edge
	}
	if !isPlain {
		e.hasRule[e.tail(directed)], e.hasRule[e.head(directed)] = true, true
	}
	if isPlain {
		e.plain[directed] = edge
		return
	}
	plain := e.plain[directed]
	if e.copies[plain] == nil {
		e.copies[plain] = []uint32{plain}
	}
	e.copies[plain] = append(e.copies[plain], edge)
}

// listCopies makes the lists of copies, in the order of their edges.
func (e *edgeBuilder) listCopies() {
	var lists []uint32
	for _, plain := range slices.Sorted(maps.Keys(e.copies)) {
		lists = append(append(lists, uint32(len(e.copies[plain]))), e.copies[plain]...)
	}
	e.g.Copies, _ = graph.NewCopies(lists, len(e.g.Head))
	e.copies = nil
}

// flagsOf returns the avoided kinds that a directed segment belongs to. Tolls and motorways are for cars alone.
func (e *edgeBuilder) flagsOf(directed uint32) (flags graph.Flags) {
	bits := e.bitsOf(directed)
	class := profile.Class(bits)
	if class == profile.Ferry || class == profile.ShuttleTrain {
		flags |= graph.Flags(route.Ferries)
	}
	if e.mode != profile.Car {
		return flags
	}
	if bits&bitToll != 0 {
		flags |= graph.Flags(route.Tolls)
	}
	if class == profile.Motorway {
		flags |= graph.Flags(route.Motorways)
	}
	return flags
}

// rankIncoming fills in In and InRank.
func (e *edgeBuilder) rankIncoming() error {
	g := e.g
	next := make([]uint32, len(e.places))
	copy(next, g.FirstIn)
	for edge, j := range g.Head {
		rank := next[j] - g.FirstIn[j]
		if rank > math.MaxUint8 {
			return fmt.Errorf("%w: a junction near %v has more than %d roads", ErrTooLarge, e.pointAt(j), math.MaxUint8+1)
		}
		g.InRank[edge], g.In[next[j]] = uint8(rank), uint32(edge)
		next[j]++
	}
	return nil
}

// fillTurns fills in TurnTable and Turns. Junctions with the same table share it.
func (e *edgeBuilder) fillTurns() {
	for j := range e.g.TurnTable {
		e.row = e.row[:0]
		for _, from := range e.g.InEdges(uint32(j)) {
			e.appendTurns(from)
		}
		at, ok := e.tableAt[string(e.row)]
		if !ok {
			at = uint32(len(e.g.Turns))
			e.tableAt[string(e.row)] = at
			e.g.Turns = append(e.g.Turns, e.row...)
		}
		e.g.TurnTable[j] = at
	}
}

// appendTurns appends the costs of the turns from an edge to each that leaves its head. The rules come first: if they leave only
// turning back, or roads closed to through traffic, the edge ends in a dead end, and turning back is allowed.
func (e *edgeBuilder) appendTurns(from uint32) {
	g, j := e.g, e.g.Head[from]
	first, end := g.OutEdges(j)
	isDeadEnd := true
	e.isPermitted = e.isPermitted[:0]
	for to := first; to < end; to++ {
		isPermitted := !e.hasRule[j] || e.permits(from, to)
		leadsOn := isPermitted && g.Segment[to] != g.Segment[from]^1 && !e.leavesPublic(from, to)
		isDeadEnd = isDeadEnd && !leadsOn
		e.isPermitted = append(e.isPermitted, isPermitted && e.keepsParts(from, to))
	}
	roads := e.roadsAt(j)
	for to := first; to < end; to++ {
		cost := uint8(graph.ForbiddenTurn)
		if e.isPermitted[to-first] {
			cost = profile.TurnCost(e.mode, e.turn(g.Segment[from], g.Segment[to], roads, isDeadEnd))
		}
		e.row = append(e.row, cost)
	}
}

// permits reports whether the rules let an edge follow another: a copy may be entered only from the edges of its path.
func (e *edgeBuilder) permits(from, to uint32) bool {
	state, next := e.stateAt(from), e.stateAt(to)
	directed := e.g.Segment[to]
	if e.rules.forbids(state, directed) {
		return false
	}
	// The state after the turn determines the edge, plain or copy, that the turn leads to.
	follows := e.rules.follow(state, directed)
	return follows == next || !e.rules.isCopy(follows) && !e.rules.isCopy(next)
}

// keepsParts reports whether an edge may follow another by the parts of a route to which they belong.
func (e *edgeBuilder) keepsParts(from, to uint32) bool {
	if e.through == nil || !e.through.hasParts {
		return true
	}
	switch before, after := e.partOf(from), e.partOf(to); before {
	case leaving:
		return after != arriving
	case arriving:
		return after == arriving
	default:
		return after == arriving || after == public && !e.passesGate(from, to)
	}
}

// partOf returns the part of a route to which an edge belongs. Among the edges of a directed segment those of the later part come last.
func (e *edgeBuilder) partOf(edge uint32) part {
	directed := e.g.Segment[edge]
	return e.through.partOf(directed, e.later[directed] != graph.None && edge >= e.later[directed])
}

// passesGate reports whether the turn leads through a gate that is closed to through traffic.
func (e *edgeBuilder) passesGate(from, to uint32) bool {
	return e.through != nil && e.through.gates[e.g.Head[from]] && e.g.Segment[to] != e.g.Segment[from]^1
}

// leavesPublic reports whether the turn leads from a public road to a road that is only for arriving.
func (e *edgeBuilder) leavesPublic(from, to uint32) bool {
	return e.through != nil && !e.through.restricted[e.g.Segment[from]] &&
		(e.through.restricted[e.g.Segment[to]] || e.passesGate(from, to))
}

// stateAt returns the state of the rules after an edge: noState if no rule begins with it.
func (e *edgeBuilder) stateAt(edge uint32) int32 {
	if state, ok := e.stateOf[edge]; ok {
		return state
	}
	return noState
}

// roadsAt is the number of segments that meet at a junction; one that both begins and ends there counts twice.
func (e *edgeBuilder) roadsAt(j uint32) (n int) {
	first, end := e.g.OutEdges(j)
	for out := first; out < end; out++ {
		if !e.isCopyEdge(out) {
			n++
		}
	}
	for _, in := range e.g.InEdges(j) {
		if !e.isCopyEdge(in) && !e.isOpen(e.g.Segment[in]^1) {
			n++ // a one-way road that ends there
		}
	}
	return n
}

// isCopyEdge reports whether an edge is a copy.
func (e *edgeBuilder) isCopyEdge(edge uint32) bool { return e.plain[e.g.Segment[edge]] != edge }

// turn describes the turn from a directed segment to another.
func (e *edgeBuilder) turn(from, to uint32, roads int, isDeadEnd bool) profile.Turn {
	fromBits, toBits := e.bitsOf(from), e.bitsOf(to)
	back := e.segments[from/2].bearing[1-from%2] // the bearing in which it would leave the junction again
	angle := math.Remainder(float64(e.segments[to/2].bearing[to%2])-float64(back)+180*directionUnit, 360*directionUnit) / directionUnit
	return profile.Turn{
		Angle: angle, Roads: roads, IsUTurn: to == from^1, IsDeadEnd: isDeadEnd,
		KeepsLeft: cmp.Or(sideOf(fromBits), e.segments[from/2].area) == profile.Left,
		FromClass: profile.Class(fromBits), ToClass: profile.Class(toBits),
		FromRoundabout: fromBits&bitRoundabout != 0, ToRoundabout: toBits&bitRoundabout != 0,
	}
}

// pointAt returns the position of a junction.
func (b *layerBuilder) pointAt(junction uint32) geo.Point {
	for node, number := range b.placeOf {
		if number == b.places[junction] {
			return b.pointOf(b.junctionNodes[node])
		}
	}
	return geo.Point{}
}
