// Package graph is the road graph of one mode of travel in memory: junctions, edges and turns, as columns of numbers that may lie
// in a mapped file. A Graph is read-only once it is made, so any number of searches can read it at the same time.
//
//	package network ── builds, stores, maps ──► Graph ──► package overlay: shortcuts over its cells
//	New: small graphs of tests ───────────────►   └─────► package search: paths on it
//
//	segment   a stretch of road between two junctions, with a geometry and a name; has an edge for each direction
//	          that the mode may use
//	edge      a segment in one direction: leads from its tail to its head, both junctions
//	turn      from an edge to an edge that begins where the first ends; has a cost, or is forbidden
//	cell      a set of junctions; the cells of a level hold whole cells of the level below
//
// Weights belong to edges and turns. A path is a list of edges, each of which begins where the previous one ends. It costs its
// edges and the turns between them. A penalty makes an edge a worse choice than its duration suggests, such as a road too narrow
// for two cars: it counts when paths are compared, but adds nothing to a duration. A turn restriction over via ways spans several
// junctions, so the cost of one turn cannot express it. Copies of edges can: a copy has the same segment and direction as its edge
// but can be entered from only some edges, so it remembers where a path came from. A path may end on any copy.
package graph

import "slices"

// None stands in a column of numbers for an edge, a junction or a segment that does not exist.
const None = ^uint32(0)

// ForbiddenTurn is the cost of a turn that must not be taken.
const ForbiddenTurn = 255

// Units of the columns. Durations are counted in DurationUnit parts of a second, distances in DistanceUnit parts of a metre, and
// the costs of turns in TurnUnit parts of a second.
const (
	DurationUnit = 100
	DistanceUnit = 10
	TurnUnit     = 10
)

// Flags are the kinds of roads that an edge belongs to and that a profile may avoid. The bits are those of route.Avoid, and
// Leaving.
type Flags uint8

// Leaving marks the edges of restricted roads for routes that began on such roads and have not reached a public one yet. A path
// that ends on such an edge has therefore never left the area in which it began.
const Leaving Flags = 1 << 7

// Connection describes how an edge is connected with the main part of the graph, which is the largest set of edges that all reach
// each other. An edge of the main part has both bits. An edge of a pocket that can only be left, or only be entered, has one bit;
// an edge of an island has neither.
type Connection uint8

// The bits of a Connection.
const (
	ReachesMain       Connection = 1 << iota // a path leads from the edge to the main part
	IsReachedFromMain                        // a path leads from the main part to the edge
)

// Graph is the road graph of one mode. Junctions are numbered so that those of a cell are consecutive, on every level; edges are
// numbered in the order of their tails, so those that leave a junction are consecutive. All columns are read-only. Methods do
// not check their arguments: a number out of range panics. A Graph is safe for concurrent use.
type Graph struct {
	// By junction, with one more at the end.
	FirstOut []uint32 // the edges that leave junction j are numbered from FirstOut[j] up to FirstOut[j+1]
	FirstIn  []uint32 // the edges that end at junction j are In[FirstIn[j]:FirstIn[j+1]], ascending
	// By junction.
	TurnTable []uint32 // where the costs of its turns begin in Turns

	In    []uint32
	Turns []uint8 // tables of turn costs: a row for each edge that ends there, a column for each that leaves

	// By edge.
	Tail, Head []uint32
	InRank     []uint8  // its index in InEdges of its head: at most 256 edges may end at a junction
	Duration   []uint32 // in DurationUnit parts of a second, without turns
	Distance   []uint32 // in DistanceUnit parts of a metre
	Penalty    []uint32 // added to Duration when paths are compared, but not to the time they take; nil without penalties
	Flags      []Flags
	Segment    []uint32     // number of its segment × 2, + 1 if it goes against the direction of the geometry
	Connection []Connection // how it is connected with the main part

	Copies Copies

	Cells Cells
}

// Cells divide the junctions on each level. Level 1 is the finest. Cells are numbered from 0 on each level, in the order of their
// junctions. The zero value has no levels.
type Cells struct {
	Of     []uint32   // the cell of level 1, by junction
	Parent [][]uint32 // Parent[l-1][c] is the cell of level l+1 that holds cell c of level l; len(Parent) is Levels-1
	Count  []int      // Count[l-1] is the number of cells of level l
}

// Levels is the number of levels.
func (c *Cells) Levels() int { return len(c.Count) }

// At returns the cell of a junction on a level; levels begin at 1.
func (c *Cells) At(junction uint32, level int) uint32 {
	cell := c.Of[junction]
	for l := 1; l < level; l++ {
		cell = c.Parent[l-1][cell]
	}
	return cell
}

// Junctions is the number of junctions.
func (g *Graph) Junctions() int { return len(g.FirstOut) - 1 }

// Edges is the number of edges.
func (g *Graph) Edges() int { return len(g.Head) }

// Turn is the cost of the turn from an edge to one that leaves its head: in TurnUnit parts of a second, or ForbiddenTurn. The
// result is meaningless if the second edge does not leave the head of the first.
func (g *Graph) Turn(from, to uint32) uint8 {
	j := g.Head[from]
	first := g.FirstOut[j]
	return g.Turns[g.TurnTable[j]+uint32(g.InRank[from])*(g.FirstOut[j+1]-first)+to-first]
}

// CopiesOf returns an edge and all its copies, given any of them. The caller must not change the list.
func (g *Graph) CopiesOf(edge uint32) []uint32 {
	if all := g.Copies.Of(edge); all != nil {
		return all
	}
	return []uint32{edge}
}

// LeadsOnto reports whether a turn leads from an edge onto another or onto a copy of it.
func (g *Graph) LeadsOnto(from, to uint32) bool {
	if g.Turn(from, to) != ForbiddenTurn {
		return true
	}
	for _, each := range g.Copies.Of(to) {
		if g.Turn(from, each) != ForbiddenTurn {
			return true
		}
	}
	return false
}

// IsLeaving reports whether an edge has the flag Leaving.
func (g *Graph) IsLeaving(edge uint32) bool { return g.Flags[edge]&Leaving != 0 }

// OutEdges returns the first edge that leaves a junction and the one after the last.
func (g *Graph) OutEdges(junction uint32) (first, end uint32) {
	return g.FirstOut[junction], g.FirstOut[junction+1]
}

// InEdges returns the edges that end at a junction, ascending. The caller must not change the list.
func (g *Graph) InEdges(junction uint32) []uint32 {
	return g.In[g.FirstIn[junction]:g.FirstIn[junction+1]]
}

// Arc describes an edge to New, in the units of the columns of Graph.
type Arc struct {
	Tail, Head         uint32
	Duration, Distance uint32
	Penalty            uint32
	Flags              Flags
	Segment            uint32
}

// IsMain reports whether an edge belongs to the main part.
func (g *Graph) IsMain(edge uint32) bool { return g.Connection[edge] == ReachesMain|IsReachedFromMain }

// New makes a graph of arcs, which must be sorted by their tails: arc i becomes edge i. turn returns the cost of each turn as
// Graph.Turn does. At most 256 arcs may end at a junction. Cells are left empty, and so are Copies and Connection.
func New(junctions int, arcs []Arc, turn func(from, to uint32) uint8) *Graph {
	g := &Graph{FirstOut: make([]uint32, junctions+1), FirstIn: make([]uint32, junctions+1), TurnTable: make([]uint32, junctions)}
	for _, a := range arcs {
		g.FirstOut[a.Tail+1]++
		g.FirstIn[a.Head+1]++
		g.Tail, g.Head = append(g.Tail, a.Tail), append(g.Head, a.Head)
		g.Duration, g.Distance = append(g.Duration, a.Duration), append(g.Distance, a.Distance)
		g.Penalty = append(g.Penalty, a.Penalty)
		g.Flags, g.Segment = append(g.Flags, a.Flags), append(g.Segment, a.Segment)
	}
	if !slices.ContainsFunc(g.Penalty, func(p uint32) bool { return p > 0 }) {
		g.Penalty = nil
	}
	for j := range junctions {
		g.FirstOut[j+1] += g.FirstOut[j]
		g.FirstIn[j+1] += g.FirstIn[j]
	}
	g.rankIncoming()
	g.fillTurns(turn)
	return g
}

// rankIncoming fills In and InRank.
func (g *Graph) rankIncoming() {
	g.In, g.InRank = make([]uint32, len(g.Head)), make([]uint8, len(g.Head))
	next := slices.Clone(g.FirstIn)
	for e, j := range g.Head {
		g.InRank[e] = uint8(next[j] - g.FirstIn[j])
		g.In[next[j]] = uint32(e)
		next[j]++
	}
}

// fillTurns fills TurnTable and Turns. Junctions with the same table share it.
func (g *Graph) fillTurns(turn func(from, to uint32) uint8) {
	known := map[string]uint32{}
	var row []byte
	for j := range g.TurnTable {
		row = row[:0]
		first, end := g.OutEdges(uint32(j))
		for _, from := range g.InEdges(uint32(j)) {
			for to := first; to < end; to++ {
				row = append(row, turn(from, to))
			}
		}
		at, ok := known[string(row)]
		if !ok {
			at = uint32(len(g.Turns))
			known[string(row)] = at
			g.Turns = append(g.Turns, row...)
		}
		g.TurnTable[j] = at
	}
}
