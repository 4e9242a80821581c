package network

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/profile"
)

// An edge is a directed segment that is open, or a copy of one: a copy for each state of the rules that is longer than the segment
// itself. At a junction the plain edges come first, in the order of their segments, then the copies in the order of their states; so
// the same map makes the same numbers.

// edgeBuilder numbers the edges of a mode and makes the columns of its graph.
type edgeBuilder struct {
	*layerBuilder
	g           *graph.Graph
	plain       []uint32          // of each directed segment its edge that is no copy; graph.None where it is closed
	stateOf     map[uint32]int32  // of copies, and of edges that are the start of a rule
	hasRule     map[uint32]bool   // junctions where a copy begins, or a rule says where to go on
	tableAt     map[string]uint32 // where in Turns a table of turn costs lies
	row         []byte            // the table of the junction at hand
	isPermitted []bool            // of the columns of a row of it: no rule forbids the turn
}

// buildGraph makes the graph of the segments and rules. It fails where a junction has more roads than a graph can hold.
func (b *layerBuilder) buildGraph() (*edgeBuilder, error) {
	e := &edgeBuilder{layerBuilder: b, stateOf: map[uint32]int32{}, hasRule: map[uint32]bool{}, tableAt: map[string]uint32{}}
	e.g = &graph.Graph{FirstOut: make([]uint32, len(b.places)+1), FirstIn: make([]uint32, len(b.places)+1),
		TurnTable: make([]uint32, len(b.places)), Copies: map[uint32][]uint32{}}
	e.countEdges()
	e.numberEdges()
	if err := e.rankIncoming(); err != nil {
		return nil, err
	}
	e.fillTurns()
	if !slices.ContainsFunc(e.g.Penalty, func(p uint32) bool { return p > 0 }) {
		e.g.Penalty = nil
	}
	return e, nil
}

// eachEdge visits all edges: of each directed segment that is open one, then the copies in the order of their rules.
func (e *edgeBuilder) eachEdge(visit func(directed uint32, state int32)) {
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
	e.eachEdge(func(directed uint32, _ int32) {
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
	next := make([]uint32, len(e.places))
	copy(next, g.FirstOut)
	e.eachEdge(func(directed uint32, state int32) {
		tail, s := e.tail(directed), &e.segments[directed/2]
		edge := next[tail]
		next[tail]++
		g.Tail[edge], g.Head[edge], g.Segment[edge] = tail, e.head(directed), directed
		g.Duration[edge], g.Distance[edge], g.Flags[edge] = s.duration[directed%2], s.distance, e.flagsOf(directed)
		g.Penalty[edge] = s.penalty[directed%2]
		if state == noState {
			e.plain[directed] = edge
			return
		}
		e.stateOf[edge] = state
		e.hasRule[tail], e.hasRule[e.head(directed)] = true, true
		e.addCopy(e.plain[directed], edge)
	})
	for state := range e.rules.states {
		if s := &e.rules.states[state]; s.length == 1 {
			e.stateOf[e.plain[s.directed]] = int32(state)
			e.hasRule[e.head(s.directed)] = true
		}
	}
}

// addCopy lists a copy under its edge and all others.
func (e *edgeBuilder) addCopy(plain, edge uint32) {
	list := e.g.Copies[plain]
	if list == nil {
		list = []uint32{plain}
	}
	list = append(list, edge)
	for _, each := range list {
		e.g.Copies[each] = list
	}
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

// appendTurns appends the costs of the turns from an edge to each that leaves its head. The rules are asked first: where they leave
// nothing but turning back, the edge ends in a dead end, and turning back is allowed there.
func (e *edgeBuilder) appendTurns(from uint32) {
	g, j := e.g, e.g.Head[from]
	first, end := g.OutEdges(j)
	isDeadEnd := true
	e.isPermitted = e.isPermitted[:0]
	for to := first; to < end; to++ {
		isPermitted := !e.hasRule[j] || e.permits(from, to)
		e.isPermitted = append(e.isPermitted, isPermitted)
		isDeadEnd = isDeadEnd && (!isPermitted || g.Segment[to] == g.Segment[from]^1)
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

// permits tells whether the rules let an edge follow another: also a copy is entered from those edges alone that make its path.
func (e *edgeBuilder) permits(from, to uint32) bool {
	state, next := e.stateAt(from), e.stateAt(to)
	directed := e.g.Segment[to]
	if e.rules.forbids(state, directed) {
		return false
	}
	// The state after the turn names the one edge, plain or copy, that the turn leads to.
	follows := e.rules.follow(state, directed)
	return follows == next || !e.rules.isCopy(follows) && !e.rules.isCopy(next)
}

// stateAt returns the state of the rules in which a path is after an edge: noState where no rule begins with it.
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

// isCopyEdge tells whether an edge is a copy.
func (e *edgeBuilder) isCopyEdge(edge uint32) bool { return e.rules.isCopy(e.stateAt(edge)) }

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
		FromRestricted: fromBits&bitRestricted != 0, ToRestricted: toBits&bitRestricted != 0,
	}
}

// pointAt returns the position of a junction.
func (b *layerBuilder) pointAt(junction uint32) route.Point {
	for node, number := range b.placeOf {
		if number == b.places[junction] {
			return b.pointOf(b.junctionNodes[node])
		}
	}
	return route.Point{}
}
