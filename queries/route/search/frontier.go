package search

import (
	"slices"

	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// frontier is one search by Dijkstra's algorithm, forward or backward: the labels of the states that it has seen, and the queue of
// those to settle. A forward label is the weight from the origin to the head of the edge; a backward label is that from the head of
// the edge to the destination. So if both know a state, their sum is the weight of a path.
//
// Its labels lie in blocks. A forward search has a block for the exits of each closed cell that it crosses, and one for the edges
// whose tail is in an open cell of level 1; a backward search for entries, and for edges whose head is in one. So the states that
// follow a state have consecutive labels, as they have consecutive weights in a matrix.
type frontier struct {
	*query
	isBackward bool
	keys       []uint64 // by label; overlay.NoPath if nothing is known
	nodes      []node
	heap       overlay.Heap
	blocks     []block // by cell, then again by cell of level 1, for its edges
	search     uint32  // number of the search; blocks of others are stale
	limit      uint64  // keys above it are ignored
}

// node is the rest of a label. Keys are stored separately because relaxing reads many of them and improves few.
type node struct {
	penalty uint32
	parent  uint32 // label of the state before, or isSeed and the index of a place
	id      uint32 // the edge, or isCut and the number of the cut edge
}

// block is where the labels of a cell begin, if its search is the current one.
type block struct{ search, first uint32 }

// The highest bit distinguishes two kinds of numbers.
const (
	isSeed = 1 << 31 // of a parent: the rest is the index of a place
	isCut  = 1 << 31 // of the id of a state: the rest is the number of a cut edge
)

// reset discards all labels. The next number makes the blocks stale without writing them.
func (f *frontier) reset() {
	f.keys, f.nodes, f.heap = f.keys[:0], f.nodes[:0], f.heap[:0]
	f.limit = overlay.NoPath
	f.search++
	if f.search == 0 {
		clear(f.blocks)
		f.search = 1
	}
}

// side is a state seen from one of its ends: the cell in which a search that stands there continues, or from which it came.
type side struct {
	id    uint32 // the edge, or isCut and the number of the cut edge: always the latter if level is not 0
	cell1 uint32 // of level 1, at that end
	cell  uint32 // the largest closed one there; unset if level is 0
	level int
}

// sideOf sees a state from its tail or its head.
func (q *query) sideOf(id uint32, isTail bool) (s side) {
	s.id = id
	s.cell1 = q.cellOf(id, isTail)
	s.cell, s.level = q.closed(s.cell1)
	if s.level > 0 && id&isCut == 0 {
		s.id = q.topology.CutOf(id, q.graph.Cells.Of[q.graph.Tail[id]]) | isCut
	}
	return s
}

// cellOf is the cell of level 1 at the tail or the head of a state.
func (q *query) cellOf(id uint32, isTail bool) uint32 {
	switch {
	case id&isCut != 0 && isTail:
		return q.topology.Cut(id &^ isCut).TailCell()
	case id&isCut != 0:
		return q.topology.Cut(id &^ isCut).HeadCell()
	case isTail:
		return q.graph.Cells.Of[q.graph.Tail[id]]
	default:
		return q.graph.Cells.Of[q.graph.Head[id]]
	}
}

// edgeOf is the edge of a state.
func (q *query) edgeOf(id uint32) uint32 {
	if id&isCut != 0 {
		return q.topology.Cut(id &^ isCut).Edge()
	}
	return id
}

// nextSide is a state seen from the end where the search continues: the head, or backward the tail. labelSide is the state seen
// from the other end, which decides in which block its label lies.
func (f *frontier) nextSide(id uint32) side  { return f.sideOf(id, f.isBackward) }
func (f *frontier) labelSide(id uint32) side { return f.sideOf(id, !f.isBackward) }

// locate returns the block of a state seen from its label side, and its place there.
func (f *frontier) locate(s side) (block, place uint32) {
	switch {
	case s.level > 0 && f.isBackward:
		return s.cell, f.topology.Cut(s.id &^ isCut).Row(s.level)
	case s.level > 0:
		return s.cell, f.topology.Cut(s.id &^ isCut).Column(s.level)
	}
	edge := f.edgeOf(s.id)
	block = uint32(f.topology.Cells()) + s.cell1
	if f.isBackward {
		return block, f.graph.FirstIn[f.graph.Head[edge]] + uint32(f.graph.InRank[edge]) - f.firstEdge(s.cell1)
	}
	return block, edge - f.firstEdge(s.cell1)
}

// find returns the label of a state seen from its label side; false if the search has not reached it.
func (f *frontier) find(s side) (label uint32, ok bool) {
	block, place := f.locate(s)
	b := f.blocks[block]
	if b.search != f.search || f.keys[b.first+place] >= overlay.NoPath {
		return 0, false
	}
	return b.first + place, true
}

// weight is the weight of a label.
func (f *frontier) weight(label uint32) overlay.Weight {
	return overlay.Weight{Key: f.keys[label], Penalty: f.nodes[label].penalty}
}

// firstEdge is where in the graph the edges of a block begin: a number of an edge, or backward a place in Graph.In.
func (f *frontier) firstEdge(cell1 uint32) uint32 {
	if f.isBackward {
		return f.graph.FirstIn[f.topology.FirstJunction[cell1]]
	}
	return f.graph.FirstOut[f.topology.FirstJunction[cell1]]
}

// blockOf returns where the labels of a block begin. It creates them if necessary.
func (f *frontier) blockOf(number uint32) uint32 {
	b := &f.blocks[number]
	if b.search == f.search {
		return b.first
	}
	b.search, b.first = f.search, uint32(len(f.keys))
	if cells := uint32(f.topology.Cells()); number >= cells {
		f.addEdges(number - cells)
		return b.first
	}
	cuts := f.cutsOf(number)
	for i, nodes := 0, f.grow(len(cuts)); i < len(nodes); i++ {
		nodes[i] = node{id: cuts[i] | isCut}
	}
	return b.first
}

// cutsOf returns the edges by which the search leaves a closed cell.
func (f *frontier) cutsOf(cell uint32) []uint32 {
	if f.isBackward {
		return f.topology.EntriesOf(cell)
	}
	return f.topology.ExitsOf(cell)
}

// addEdges makes labels for the edges of an open cell of level 1.
func (f *frontier) addEdges(cell1 uint32) {
	first, end := f.firstEdge(cell1), f.topology.FirstJunction[cell1+1]
	if f.isBackward {
		edges := f.graph.In[first:f.graph.FirstIn[end]]
		for i, nodes := 0, f.grow(len(edges)); i < len(nodes); i++ {
			nodes[i] = node{id: edges[i]}
		}
		return
	}
	edges := f.graph.Head[first:f.graph.FirstOut[end]] // in a damaged file this panics, before memory for the edges is asked for
	nodes := f.grow(len(edges))
	for i := range nodes {
		nodes[i] = node{id: first + uint32(i)}
	}
}

// grow adds unset labels and returns their nodes.
func (f *frontier) grow(n int) []node {
	at := len(f.keys)
	f.keys = slices.Grow(f.keys, n)[:at+n]
	f.nodes = slices.Grow(f.nodes, n)[:at+n]
	for i := at; i < at+n; i++ {
		f.keys[i] = overlay.NoPath
	}
	return f.nodes[at:]
}

// begin discards everything and begins a search. The cells of its seeds are open.
func (f *frontier) begin(seeds []seed) {
	f.reset()
	for _, s := range seeds {
		block, place := f.locate(f.labelSide(s.edge))
		f.improve(f.blockOf(block)+place, s.weight, isSeed|s.place)
	}
}

// improve lowers a label and queues its state, if the weight is better and within the limit.
func (f *frontier) improve(label uint32, to overlay.Weight, parent uint32) {
	if to.Key > f.limit || !to.IsLess(f.weight(label)) {
		return
	}
	f.keys[label] = to.Key
	n := &f.nodes[label]
	n.penalty, n.parent = to.Penalty, parent
	f.heap.Push(overlay.Item{Key: to.Key, Penalty: to.Penalty, State: label})
}

// settle takes out the next state whose weight is final; false if no state is left.
func (f *frontier) settle() (label uint32, ok bool) {
	for len(f.heap) > 0 {
		item := f.heap.Pop()
		if f.keys[item.State] == item.Key && f.nodes[item.State].penalty == item.Penalty {
			return item.State, true
		}
	}
	return 0, false
}

// relax improves the labels of the states that follow a settled one, seen from its next side.
func (f *frontier) relax(label uint32, s side) {
	switch {
	case s.level > 0 && f.isBackward:
		f.relaxColumn(label, s)
	case s.level > 0:
		f.relaxRow(label, s)
	case f.isBackward:
		f.relaxInEdges(label, s)
	default:
		f.relaxOutEdges(label, s)
	}
}

// relaxRow goes from an entry of a closed cell to its exits: forward along a row of the matrix.
func (f *frontier) relaxRow(label uint32, s side) {
	first := f.blockOf(s.cell)
	keys, penalty := f.metric.Matrix(f.topology, s.cell)
	columns := f.topology.FirstExit[s.cell+1] - f.topology.FirstExit[s.cell]
	from := f.topology.Cut(s.id&^isCut).Row(s.level) * columns
	at := f.weight(label)
	known := f.keys[first : first+columns] // most labels are not improved, so their keys are compared before the rest is read
	for i, key := range keys[from : from+columns] {
		if at.Key+key > known[i] {
			continue
		}
		to := overlay.Weight{Key: at.Key + key, Penalty: at.Penalty}
		if penalty != nil {
			to.Penalty += penalty[int(from)+i]
		}
		f.improve(first+uint32(i), to, label)
	}
}

// relaxColumn goes from an exit of a closed cell to its entries: backward along a column of the matrix.
func (f *frontier) relaxColumn(label uint32, s side) {
	first := f.blockOf(s.cell)
	keys, penalty := f.metric.Matrix(f.topology, s.cell)
	columns := f.topology.FirstExit[s.cell+1] - f.topology.FirstExit[s.cell]
	from := f.topology.Cut(s.id &^ isCut).Column(s.level)
	at := f.weight(label)
	for i, known := range f.keys[first : first+f.topology.FirstEntry[s.cell+1]-f.topology.FirstEntry[s.cell]] {
		if key := at.Key + keys[from]; key <= known {
			to := overlay.Weight{Key: key, Penalty: at.Penalty}
			if penalty != nil {
				to.Penalty += penalty[from]
			}
			f.improve(first+uint32(i), to, label)
		}
		from += columns
	}
}

// relaxOutEdges goes to the edges that leave the head of an edge.
func (f *frontier) relaxOutEdges(label uint32, s side) {
	first := f.blockOf(uint32(f.topology.Cells())+s.cell1) - f.firstEdge(s.cell1)
	g, edge, at := f.graph, f.edgeOf(s.id), f.weight(label)
	j := g.Head[edge]
	out, end := g.OutEdges(j)
	turns := g.Turns[g.TurnTable[j]+uint32(g.InRank[edge])*(end-out):]
	for next := out; next < end; next++ {
		turn := turns[next-out]
		if turn == graph.ForbiddenTurn {
			continue
		}
		to := f.weigher.Edge(next).Plus(at)
		to.Key += f.weigher.Turn(turn)
		f.improve(first+next, to, label)
	}
}

// relaxInEdges goes to the edges that end at the tail of an edge. The weight of a backward label does not include its own edge.
func (f *frontier) relaxInEdges(label uint32, s side) {
	first := f.blockOf(uint32(f.topology.Cells())+s.cell1) - f.firstEdge(s.cell1)
	g, edge := f.graph, f.edgeOf(s.id)
	at := f.weight(label).Plus(f.weigher.Edge(edge))
	j := g.Tail[edge]
	out, end := g.OutEdges(j)
	turn := g.TurnTable[j] + edge - out
	for i := g.FirstIn[j]; i < g.FirstIn[j+1]; i++ {
		if cost := g.Turns[turn]; cost != graph.ForbiddenTurn {
			f.improve(first+i, overlay.Weight{Key: at.Key + f.weigher.Turn(cost), Penalty: at.Penalty}, label)
		}
		turn += end - out
	}
}
