// Package overlay adds shortcuts to a road graph, so that a search across a country looks at a few thousand edges. It is
// customizable route planning (CRP; Delling, Goldberg, Pajor and Werneck, 2011): the cells of the graph do not depend on weights,
// and the metric of a profile, which holds the costs of crossing them, is computed in seconds. A shortcut costs exactly as much as
// the best path within its cell.
//
//	graph.Graph with Cells          ── NewTopology ──► Topology: which edges enter and leave each cell
//	Topology, Graph, route.Profile  ── Customize   ──► Metric: of each cell a matrix from its entries to its exits
//	Topology, Metric                ──► package search
//
// The states of a search are edges: to be at an edge is to have driven it to its head. An edge whose ends lie in different cells of
// a level is a cut edge of that level (and of all finer ones). It is an exit of the cell that it leaves and an entry of the cell
// that it enters. The matrix of a cell holds the costs of the best paths within the cell from the head of an entry to the head of
// an exit, including turns and the exit but not the entry. That is all a path through the cells needs.
package overlay

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"lieudit/queries/route/graph"
)

// Topology says which edges enter and leave each cell. It depends only on the cells. Its columns are read-only and may lie in a
// mapped file. The cells of all levels are numbered consecutively, the finest level first: cell c of level l is LevelFirst[l-1] +
// c.
type Topology struct {
	LevelFirst []uint32 // the first cell of each level, and one more at the end

	Ancestors     []uint32 // for each cell of level 1, the cells that hold it, itself first: one for each level
	FirstJunction []uint32 // of each cell of level 1, and one more at the end

	// By cell, with one more at the end.
	FirstEntry  []uint32 // its entries are Entries[FirstEntry[c]:FirstEntry[c+1]], ascending
	FirstExit   []uint32
	FirstWeight []uint32 // where its matrix begins in a Metric that shares none

	Entries, Exits []uint32 // cut edges by their numbers

	// Cuts is a record for each cut edge of level 1, in the order of their edges: the edge, the cell of level 1 of its tail, that of its
	// head, and for each level the Row and Column of the edge in one number. A record of five levels is 32 bytes, half a cache line.
	Cuts []uint32
}

// The numbers of a record of Cuts.
const (
	cutEdge = iota
	cutTail
	cutHead
	cutPlaces // of level 1; those of the other levels follow
)

var (
	// ErrUnordered means that cells are not numbered in the order of their junctions, so that they are not ranges of junctions.
	ErrUnordered = errors.New("the junctions of a cell are not consecutive")
	// ErrTooManyCuts means that too many edges enter or leave a cell: the division into cells is useless.
	ErrTooManyCuts = errors.New("too many edges enter or leave a cell")
)

// maxCuts is how many entries and how many exits a cell may have.
const maxCuts = 1<<16 - 1

// NewTopology finds the entries and exits of the cells of a graph, which has at least one level of them. It fails with ErrUnordered or
// ErrTooManyCuts.
func NewTopology(g *graph.Graph) (*Topology, error) {
	if !isOrdered(g) {
		return nil, ErrUnordered
	}
	t := &Topology{LevelFirst: []uint32{0}}
	for _, count := range g.Cells.Count {
		t.LevelFirst = append(t.LevelFirst, t.LevelFirst[len(t.LevelFirst)-1]+uint32(count))
	}
	t.listAncestors(&g.Cells)
	t.findJunctions(&g.Cells)
	t.findCuts(g)
	t.listEntriesAndExits()
	if !t.locateMatrices() {
		return nil, ErrTooManyCuts
	}
	return t, nil
}

// isOrdered reports whether the numbers of cells rise along the junctions, on every level.
func isOrdered(g *graph.Graph) bool {
	for _, parents := range g.Cells.Parent {
		if !slices.IsSorted(parents) {
			return false
		}
	}
	return slices.IsSorted(g.Cells.Of)
}

// Levels is the number of levels.
func (t *Topology) Levels() int { return len(t.LevelFirst) - 1 }

// Cells is the number of cells of all levels together.
func (t *Topology) Cells() int { return int(t.LevelFirst[len(t.LevelFirst)-1]) }

// CutCount is the number of cut edges of level 1.
func (t *Topology) CutCount() int { return len(t.Cuts) / t.stride() }

// stride is the length of a record of Cuts.
func (t *Topology) stride() int { return cutPlaces + t.Levels() }

// Cut is the record of one cut edge, a part of Topology.Cuts.
type Cut []uint32

// Cut returns the record of a cut edge by its number, from 0 to CutCount-1.
func (t *Topology) Cut(number uint32) Cut {
	stride := t.stride()
	return Cut(t.Cuts[int(number)*stride : int(number+1)*stride])
}

// Edge is the cut edge itself.
func (c Cut) Edge() uint32 { return c[cutEdge] }

// TailCell is the cell of level 1 that the edge leaves.
func (c Cut) TailCell() uint32 { return c[cutTail] }

// HeadCell is the cell of level 1 that the edge enters.
func (c Cut) HeadCell() uint32 { return c[cutHead] }

// CutOf returns the number of a cut edge that is an exit of a cell of level 1. The edge must be such an exit.
func (t *Topology) CutOf(edge, cell uint32) uint32 {
	exits := t.ExitsOf(cell)
	i, _ := slices.BinarySearchFunc(exits, edge, func(cut, edge uint32) int { return cmp.Compare(t.Cut(cut).Edge(), edge) })
	return exits[i]
}

// IsCut reports whether the edge is a cut edge of a level.
func (c Cut) IsCut(level int) bool { return c[cutPlaces+level-1] != graph.None }

// Row is the row of the edge in the matrix of the cell that it enters on a level: its index among the entries.
func (c Cut) Row(level int) uint32 { return c[cutPlaces+level-1] & 0xFFFF }

// Column is the column of the edge in the matrix of the cell that it leaves on a level: its index among the exits.
func (c Cut) Column(level int) uint32 { return c[cutPlaces+level-1] >> 16 }

// AncestorsOf returns the cells that hold a cell of level 1, one for each level, itself first.
func (t *Topology) AncestorsOf(cell uint32) []uint32 {
	levels := t.Levels()
	return t.Ancestors[int(cell)*levels : (int(cell)+1)*levels]
}

// EntriesOf returns the entries of a cell of any level, as numbers of cut edges.
func (t *Topology) EntriesOf(cell uint32) []uint32 {
	return t.Entries[t.FirstEntry[cell]:t.FirstEntry[cell+1]]
}

// ExitsOf returns the exits of a cell of any level, as numbers of cut edges.
func (t *Topology) ExitsOf(cell uint32) []uint32 {
	return t.Exits[t.FirstExit[cell]:t.FirstExit[cell+1]]
}

// listAncestors fills in Ancestors from the parents of each cell.
func (t *Topology) listAncestors(cells *graph.Cells) {
	for c := range t.LevelFirst[1] {
		cell := c
		for l := range t.Levels() {
			if l > 0 {
				cell = cells.Parent[l-1][cell]
			}
			t.Ancestors = append(t.Ancestors, t.LevelFirst[l]+cell)
		}
	}
}

// findJunctions fills in FirstJunction.
func (t *Topology) findJunctions(cells *graph.Cells) {
	t.FirstJunction = make([]uint32, t.LevelFirst[1]+1)
	for _, c := range cells.Of {
		t.FirstJunction[c+1]++
	}
	for c := range t.LevelFirst[1] {
		t.FirstJunction[c+1] += t.FirstJunction[c]
	}
}

// findCuts lists the edges between different cells of level 1. The record of an edge holds graph.None for levels on which it is not
// a cut edge.
func (t *Topology) findCuts(g *graph.Graph) {
	unplaced := slices.Repeat([]uint32{graph.None}, t.Levels())
	for e, tail := range g.Tail {
		from, to := g.Cells.Of[tail], g.Cells.Of[g.Head[e]]
		if from != to {
			t.Cuts = append(append(t.Cuts, uint32(e), from, to), unplaced...)
		}
	}
	t.Cuts = slices.Clip(t.Cuts)
}

// visitCuts calls a function for each cut edge of each level with the cells that it leaves and enters.
func (t *Topology) visitCuts(visit func(cut uint32, level int, from, to uint32)) {
	for i := range uint32(t.CutCount()) {
		c := t.Cut(i)
		from, to := t.AncestorsOf(c.TailCell()), t.AncestorsOf(c.HeadCell())
		for l := range from {
			if from[l] != to[l] {
				visit(i, l+1, from[l], to[l])
			}
		}
	}
}

// listEntriesAndExits counts the entries and exits of each cell, then lists them and notes rows and columns in the records.
func (t *Topology) listEntriesAndExits() {
	t.FirstEntry, t.FirstExit = make([]uint32, t.Cells()+1), make([]uint32, t.Cells()+1)
	t.visitCuts(func(_ uint32, _ int, from, to uint32) {
		t.FirstExit[from+1]++
		t.FirstEntry[to+1]++
	})
	for c := range t.Cells() {
		t.FirstEntry[c+1] += t.FirstEntry[c]
		t.FirstExit[c+1] += t.FirstExit[c]
	}
	nextEntry, nextExit := slices.Clone(t.FirstEntry), slices.Clone(t.FirstExit)
	t.Entries, t.Exits = make([]uint32, t.FirstEntry[t.Cells()]), make([]uint32, t.FirstExit[t.Cells()])
	t.visitCuts(func(cut uint32, level int, from, to uint32) {
		t.Entries[nextEntry[to]], t.Exits[nextExit[from]] = cut, cut
		row, column := nextEntry[to]-t.FirstEntry[to], nextExit[from]-t.FirstExit[from]
		t.Cut(cut)[cutPlaces+level-1] = row | column<<16
		nextEntry[to]++
		nextExit[from]++
	})
}

// locateMatrices gives the matrix of each cell its part of the weights. It returns false if a cell has too many cut edges, or all
// cells together have too many weights.
func (t *Topology) locateMatrices() bool {
	t.FirstWeight = make([]uint32, t.Cells()+1)
	for c := range uint32(t.Cells()) {
		entries, exits := len(t.EntriesOf(c)), len(t.ExitsOf(c))
		end := uint64(t.FirstWeight[c]) + uint64(entries)*uint64(exits)
		if entries > maxCuts || exits > maxCuts || end > math.MaxUint32 {
			return false
		}
		t.FirstWeight[c+1] = uint32(end)
	}
	return true
}
