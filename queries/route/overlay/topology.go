// Package overlay adds shortcuts to a road graph, so that a search across a country looks at a few thousand edges. It is
// customizable route planning: the cells of the graph do not depend on weights, and the shortcuts of a cell are computed again
// for each profile in seconds. Its one constraint: a shortcut costs exactly what the best path within its cell costs.
//
//	graph.Graph with Cells ── NewTopology ──► Topology: which edges enter and leave each cell
//	Topology, route.Profile ── Customize ──► Metric: a table for each cell, from the edges that enter to those that leave
//	package search reads both
//
// The states of a search are edges: to stand on an edge is to have driven it to its head. An edge whose ends lie in different
// cells of a level is a cut edge of that level. A cell's table holds for each cut edge that enters it and each that leaves it
// what the best path within the cell costs, from the head of the first to the head of the second. A cut edge leaves one cell and
// enters the next, so nothing else joins the cells.
package overlay

import (
	"errors"

	"lieudit/queries/route/graph"
)

// Topology says which edges enter and leave each cell. Its columns are read-only and may lie in a mapped file.
type Topology struct {
	// CutIndex numbers the cut edges of level 1 by their edges; graph.None for all others.
	CutIndex []uint32
	Levels   []Level
}

// Level is one level of a Topology. The edges that leave cell c are Exits[FirstExit[c]:FirstExit[c+1]], ascending.
type Level struct {
	FirstJunction       []uint32 // of each cell, and one more at the end
	FirstEntry, Entries []uint32
	FirstExit, Exits    []uint32
	EntryPlace          []uint32 // of each cut edge of level 1, by its number: its index in Entries; graph.None where it is no cut edge of this level
	ExitPlace           []uint32 // its index in Exits
}

// ErrUnordered says that junctions are not numbered by their cells.
var ErrUnordered = errors.New("the junctions of a cell are not consecutive")

// NewTopology finds the cut edges of a graph.
func NewTopology(g *graph.Graph) (*Topology, error) {
	if err := checkOrder(g); err != nil {
		return nil, err
	}
	t := &Topology{CutIndex: make([]uint32, g.Edges()), Levels: make([]Level, g.Cells.Levels())}
	var cut []uint32
	for e := range t.CutIndex {
		t.CutIndex[e] = graph.None
		if g.Cells.Of[g.Tail[e]] != g.Cells.Of[g.Head[e]] {
			t.CutIndex[e] = uint32(len(cut))
			cut = append(cut, uint32(e))
		}
	}
	for l := range t.Levels {
		t.Levels[l] = newLevel(g, cut, l+1)
	}
	return t, nil
}

// checkOrder checks that cells have rising numbers along the junctions, on every level.
func checkOrder(g *graph.Graph) error {
	for j := 1; j < len(g.Cells.Of); j++ {
		if g.Cells.Of[j] < g.Cells.Of[j-1] {
			return ErrUnordered
		}
	}
	for _, parents := range g.Cells.Parent {
		for c := 1; c < len(parents); c++ {
			if parents[c] < parents[c-1] {
				return ErrUnordered
			}
		}
	}
	return nil
}

// newLevel finds the entries and exits of the cells of a level. Edges are numbered by their tails, so those that leave a cell
// come in the order of the cells; those that enter are counted first.
func newLevel(g *graph.Graph, cut []uint32, level int) Level {
	cells := g.Cells.Count[level-1]
	l := Level{
		FirstJunction: make([]uint32, cells+1), FirstEntry: make([]uint32, cells+1), FirstExit: make([]uint32, cells+1),
		EntryPlace: make([]uint32, len(cut)), ExitPlace: make([]uint32, len(cut)),
	}
	l.FirstJunction[cells] = uint32(g.Junctions())
	for j := g.Junctions() - 1; j >= 0; j-- {
		l.FirstJunction[g.Cells.At(uint32(j), level)] = uint32(j)
	}
	for i, e := range cut {
		l.EntryPlace[i], l.ExitPlace[i] = graph.None, graph.None
		from, to := g.Cells.At(g.Tail[e], level), g.Cells.At(g.Head[e], level)
		if from == to {
			continue
		}
		l.ExitPlace[i] = uint32(len(l.Exits))
		l.Exits = append(l.Exits, e)
		l.FirstExit[from+1]++
		l.FirstEntry[to+1]++
	}
	for c := range cells {
		l.FirstExit[c+1] += l.FirstExit[c]
		l.FirstEntry[c+1] += l.FirstEntry[c]
	}
	l.Entries = make([]uint32, len(l.Exits))
	next := append([]uint32(nil), l.FirstEntry...)
	for i, e := range cut {
		if l.ExitPlace[i] == graph.None {
			continue
		}
		to := g.Cells.At(g.Head[e], level)
		l.EntryPlace[i] = next[to]
		l.Entries[next[to]] = e
		next[to]++
	}
	return l
}

// Table is where a cell's table lies: a row for each entry, a column for each exit.
type Table struct {
	Entries, Exits []uint32 // edges
	firstEntry     uint32
	firstExit      uint32
}

// Table returns the entries and exits of a cell.
func (l *Level) Table(cell uint32) Table {
	firstEntry, firstExit := l.FirstEntry[cell], l.FirstExit[cell]
	return Table{
		Entries: l.Entries[firstEntry:l.FirstEntry[cell+1]], Exits: l.Exits[firstExit:l.FirstExit[cell+1]],
		firstEntry: firstEntry, firstExit: firstExit,
	}
}

// Row is the row of an edge that enters a cell, in its table. The edge must enter a cell of the level.
func (t *Topology) Row(l *Level, table Table, edge uint32) uint32 {
	return l.EntryPlace[t.CutIndex[edge]] - table.firstEntry
}

// Column is the column of an edge that leaves a cell.
func (t *Topology) Column(l *Level, table Table, edge uint32) uint32 {
	return l.ExitPlace[t.CutIndex[edge]] - table.firstExit
}
