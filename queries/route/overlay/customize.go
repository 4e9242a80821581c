package overlay

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
)

// Customize computes the matrices of all cells for a profile, on all cores: those of level 1 from the edges, those of the others
// from the level below. base is the metric of the same mode and optimization that avoids nothing, or nil if p avoids nothing; equal
// matrices are shared with it. The same graph and profile make the same columns. While it runs, it needs the memory of a result
// that shares nothing. It fails only with ctx's error.
func Customize(ctx context.Context, t *Topology, g *graph.Graph, p route.Profile, base *Metric) (*Metric, error) {
	size := t.FirstWeight[t.Cells()]
	c := &customization{
		topology: t, graph: g, weigher: NewWeigher(g, p), children: listChildren(t),
		metric: &Metric{
			First: slices.Clone(t.FirstWeight[:t.Cells()]), IsShared: make([]uint32, t.Cells()), Weights: make([]uint64, size), Base: base,
		},
	}
	if c.weigher.HasPenalties() {
		c.metric.Penalties = make([]uint32, size)
	}
	for level := 1; level <= t.Levels(); level++ {
		if err := c.customizeLevel(ctx, level); err != nil {
			return nil, err
		}
	}
	if base != nil {
		c.metric.dropSharedMatrices(t)
	}
	return c.metric, nil
}

// customization is what the workers of one Customize share. They write different cells of the metric.
type customization struct {
	topology *Topology
	graph    *graph.Graph
	weigher  *Weigher
	children [][]uint32 // for each cell above level 1, the cells that it holds
	metric   *Metric
}

// listChildren returns the cells of the level below of each cell.
func listChildren(t *Topology) [][]uint32 {
	children, isListed := make([][]uint32, t.Cells()), make([]bool, t.Cells())
	for c := range t.LevelFirst[1] {
		over := t.AncestorsOf(c)
		for l := 1; l < len(over) && !isListed[over[l-1]]; l++ {
			isListed[over[l-1]] = true
			children[over[l]] = append(children[over[l]], over[l-1])
		}
	}
	return children
}

// customizeLevel computes the matrices of the cells of a level. Workers take one cell after the other.
func (c *customization) customizeLevel(ctx context.Context, level int) error {
	var next atomic.Uint32
	next.Store(c.topology.LevelFirst[level-1])
	end := c.topology.LevelFirst[level]
	workers, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() error {
			w := worker{customization: c}
			for ctx.Err() == nil {
				cell := next.Add(1) - 1
				if cell >= end {
					break
				}
				w.customizeCell(cell, level)
			}
			return ctx.Err()
		})
	}
	return workers.Wait()
}

// worker computes one cell after the other by Dijkstra's algorithm from each entry. Its memory grows to that of the largest cell.
//
// The states of a cell are the edges whose tail is in it: all edges on level 1, the exits of its children on the others. A state
// leads to a row of states that follow each other: the edges that leave its head, or the exits of the child that it enters.
type worker struct {
	*customization
	states []state
	labels []Weight
	heap   Heap
	exits  []uint32 // of the cell, as states

	// On level 1, of each state the weight of its edge.
	keys      []uint64
	penalties []uint32

	matrices map[uint32]matrix // on other levels, of each child
}

// state holds the range of states that follow it. The range of an exit is empty, because a path that leaves the cell is not
// followed.
type state struct {
	first uint32 // that follow
	count uint32
	turns uint32 // level 1: where the costs of its turns begin in Graph.Turns
	row   matrix // other levels: the costs of reaching them
}

// matrix is that of a child, or one row of it.
type matrix struct {
	first     uint32 // state of the first column
	keys      []uint64
	penalties []uint32
}

// customizeCell computes the matrix of a cell, or shares that of the base where both are equal.
func (w *worker) customizeCell(cell uint32, level int) {
	if w.metric.Base != nil && w.avoidsNothingIn(cell, level) {
		w.share(cell)
		return
	}
	columns := len(w.topology.ExitsOf(cell))
	if level == 1 {
		w.readEdges(cell)
	} else {
		w.readChildren(cell, level)
	}
	first := w.topology.FirstWeight[cell]
	for i, entry := range w.topology.EntriesOf(cell) {
		w.resetLabels()
		w.relax(w.entryState(entry, level), Weight{}, level)
		w.search(level)
		w.writeMatrixRow(first + uint32(i*columns))
	}
	if w.metric.Base != nil && w.equalsBase(cell) {
		w.share(cell)
	}
}

// avoidsNothingIn reports whether a cell has no road that the metric avoids, so that its matrix is that of the base.
func (w *worker) avoidsNothingIn(cell uint32, level int) bool {
	if level > 1 {
		return !slices.ContainsFunc(w.children[cell], func(child uint32) bool { return w.metric.IsShared[child] == 0 })
	}
	first, end := w.edgeRange(cell)
	return !slices.ContainsFunc(w.graph.Flags[first:end], func(f graph.Flags) bool { return f&w.weigher.avoid != 0 })
}

// equalsBase reports whether the matrix that was written is that of the base: no best path across the cell uses its avoided roads.
func (w *worker) equalsBase(cell uint32) bool {
	first, end := w.topology.FirstWeight[cell], w.topology.FirstWeight[cell+1]
	from := w.metric.Base.First[cell]
	keys, penalties := w.metric.Base.Weights[from:from+end-first], w.metric.Base.Penalties
	if !slices.Equal(w.metric.Weights[first:end], keys) {
		return false
	}
	if len(penalties) > 0 {
		return slices.Equal(w.metric.Penalties[first:end], penalties[from:from+end-first])
	}
	return !slices.ContainsFunc(w.metric.Penalties[first:end], func(p uint32) bool { return p > 0 })
}

// share refers a cell to the matrix of the base.
func (w *worker) share(cell uint32) {
	w.metric.First[cell], w.metric.IsShared[cell] = w.metric.Base.First[cell], 1
}

// edgeRange returns the first of the edges whose tail is in a cell of level 1, and the one after the last.
func (w *worker) edgeRange(cell uint32) (first, end uint32) {
	t := w.topology
	return w.graph.FirstOut[t.FirstJunction[cell]], w.graph.FirstOut[t.FirstJunction[cell+1]]
}

// readEdges makes the states of a cell of level 1.
func (w *worker) readEdges(cell uint32) {
	g, t := w.graph, w.topology
	first, end := w.edgeRange(cell)
	w.states, w.keys, w.penalties, w.exits = w.states[:0], w.keys[:0], w.penalties[:0], w.exits[:0]
	for e := first; e < end; e++ {
		weight := w.weigher.Edge(e)
		w.keys, w.penalties = append(w.keys, weight.Key), append(w.penalties, weight.Penalty)
		var s state
		if j := g.Head[e]; j >= t.FirstJunction[cell] && j < t.FirstJunction[cell+1] {
			s = w.edgeState(e, first)
		} else {
			w.exits = append(w.exits, e-first)
		}
		w.states = append(w.states, s)
	}
}

// edgeState is an edge as a state of the cell of its head, whose first edge is given.
func (w *worker) edgeState(e, first uint32) state {
	j := w.graph.Head[e]
	out, end := w.graph.OutEdges(j)
	return state{first: out - first, count: end - out, turns: w.graph.TurnTable[j] + uint32(w.graph.InRank[e])*(end-out)}
}

// readChildren makes the states of a cell of a higher level. The exits of each child are consecutive states, in the order of the columns
// of its matrix.
func (w *worker) readChildren(cell uint32, level int) {
	t := w.topology
	w.states, w.matrices = w.states[:0], map[uint32]matrix{}
	w.exits = slices.Grow(w.exits[:0], len(t.ExitsOf(cell)))[:len(t.ExitsOf(cell))]
	states := uint32(0)
	for _, child := range w.children[cell] {
		keys, penalties := w.metric.Matrix(t, child)
		w.matrices[child] = matrix{states, keys, penalties}
		states += uint32(len(t.ExitsOf(child)))
	}
	for _, child := range w.children[cell] {
		for _, exit := range t.ExitsOf(child) {
			var s state
			if c := t.Cut(exit); c.IsCut(level) {
				w.exits[c.Column(level)] = uint32(len(w.states))
			} else {
				s = w.cutState(exit, level)
			}
			w.states = append(w.states, s)
		}
	}
}

// cutState is a cut edge as a state of the cell of a level that it enters.
func (w *worker) cutState(cut uint32, level int) state {
	c := w.topology.Cut(cut)
	child := w.topology.AncestorsOf(c.HeadCell())[level-2]
	of := w.matrices[child]
	columns := uint32(len(w.topology.ExitsOf(child)))
	from := c.Row(level-1) * columns
	s := state{first: of.first, count: columns, row: matrix{keys: of.keys[from : from+columns]}}
	if of.penalties != nil {
		s.row.penalties = of.penalties[from : from+columns]
	}
	return s
}

// entryState is an entry of the cell as the state from which its row is searched.
func (w *worker) entryState(entry uint32, level int) state {
	if level > 1 {
		return w.cutState(entry, level)
	}
	c := w.topology.Cut(entry)
	first, _ := w.edgeRange(c.HeadCell())
	return w.edgeState(c.Edge(), first)
}

// resetLabels discards the search from the previous entry.
func (w *worker) resetLabels() {
	w.labels = w.labels[:0]
	for range w.states {
		w.labels = append(w.labels, Weight{Key: NoPath})
	}
	w.heap = w.heap[:0]
}

// search settles all states of the cell.
func (w *worker) search(level int) {
	for len(w.heap) > 0 {
		item := w.heap.Pop()
		if at := item.Weight(); at == w.labels[item.State] {
			w.relax(w.states[item.State], at, level)
		}
	}
}

// relax improves the labels of the states that follow a settled one.
func (w *worker) relax(s state, at Weight, level int) {
	if level == 1 {
		w.relaxEdges(s, at)
		return
	}
	for i, key := range s.row.keys {
		next := Weight{at.Key + key, at.Penalty}
		if s.row.penalties != nil {
			next.Penalty += s.row.penalties[i]
		}
		w.improve(s.first+uint32(i), next)
	}
}

// relaxEdges is relax on level 1, where edges and turns follow.
func (w *worker) relaxEdges(s state, at Weight) {
	for i := range s.count {
		turn := w.graph.Turns[s.turns+i]
		if turn == graph.ForbiddenTurn {
			continue
		}
		to := s.first + i
		w.improve(to, Weight{at.Key + w.weigher.Turn(turn) + w.keys[to], at.Penalty + w.penalties[to]})
	}
}

// improve lowers a label and queues its state. An exit need not be queued, as nothing follows it.
func (w *worker) improve(to uint32, next Weight) {
	if next.IsLess(w.labels[to]) {
		w.labels[to] = next
		if w.states[to].count > 0 {
			w.heap.Push(Item{next.Key, next.Penalty, to})
		}
	}
}

// writeMatrixRow writes the costs of reaching each exit from the entry of the search.
func (w *worker) writeMatrixRow(first uint32) {
	for i, exit := range w.exits {
		w.metric.Weights[first+uint32(i)] = w.labels[exit].Key
		if w.metric.Penalties != nil {
			w.metric.Penalties[first+uint32(i)] = w.labels[exit].Penalty
		}
	}
}

// dropSharedMatrices closes the gaps that shared matrices leave in the columns. The others keep the order of their cells.
func (m *Metric) dropSharedMatrices(t *Topology) {
	end := uint32(0)
	for c := range t.Cells() {
		if m.IsShared[c] != 0 {
			continue
		}
		first, size := t.FirstWeight[c], t.FirstWeight[c+1]-t.FirstWeight[c]
		copy(m.Weights[end:], m.Weights[first:first+size])
		copy(m.Penalties[end:], m.Penalties[first:first+size])
		m.First[c] = end
		end += size
	}
	m.Weights, m.Penalties = slices.Clone(m.Weights[:end]), slices.Clone(m.Penalties[:end])
}
