package overlay

import (
	"lieudit/queries/route"
	"lieudit/queries/route/graph"
)

// Label is what a search knows of a state: the weight of the best path to it, and the primary cost of that path without the
// factor of avoided roads. Where nothing is avoided Real stays 0.
type Label struct {
	Weight Weight
	Real   uint32
}

// IsLess orders labels by weight, then by the real cost: so that is the same for every exact algorithm too.
func (l Label) IsLess(m Label) bool {
	return l.Weight < m.Weight || l.Weight == m.Weight && l.Real < m.Real
}

// Add is the label of one path after another.
func (l Label) Add(m Label) Label { return Label{l.Weight + m.Weight, l.Real + m.Real} }

// Label is what the whole edge adds to a path.
func (w *Weigher) Label(e uint32) Label { return w.PartLabel(e, w.g.Duration[e], w.g.Distance[e]) }

// PartLabel is what a part of an edge adds to a path.
func (w *Weigher) PartLabel(e, duration, distance uint32) Label {
	l := Label{Weight: w.Part(e, duration, distance)}
	if w.avoid != 0 {
		l.Real = duration
		if w.isShortest {
			l.Real = distance
		}
	}
	return l
}

// TurnLabel is what a turn that is not forbidden adds to a path.
func (w *Weigher) TurnLabel(cost uint8) Label {
	l := Label{Weight: w.Turn(cost)}
	if w.avoid != 0 {
		l.Real = l.Weight.Primary()
	}
	return l
}

// At is the label of one path of a table. avoids says whether the profile avoids something: a table that is shared with the
// metric that avoids nothing has no column Real.
func (c *Costs) At(i uint32, avoids bool) Label {
	l := Label{Weight: c.Weights[i]}
	switch {
	case c.Real != nil:
		l.Real = c.Real[i]
	case avoids:
		l.Real = l.Weight.Primary()
	}
	return l
}

// customizer computes tables of one level. Its memory is used again for each cell.
type customizer struct {
	g      *graph.Graph
	t      *Topology
	weigh  Weigher
	avoids bool
	metric *Metric // of the levels below
	level  int
	first  uint32 // state of the cell
	labels []Label
	queue  Queue
}

func newCustomizer(g *graph.Graph, t *Topology, p route.Profile, m *Metric, level int) *customizer {
	return &customizer{g: g, t: t, weigh: NewWeigher(g, p), avoids: p.Avoid != 0, metric: m, level: level}
}

// table computes the table of a cell, a row at a time.
func (c *customizer) table(cell uint32) Costs {
	table := c.t.Levels[c.level-1].Table(cell)
	out := Costs{Weights: make([]Weight, 0, len(table.Entries)*len(table.Exits))}
	for _, entry := range table.Entries {
		for _, l := range c.row(cell, table, entry) {
			out.Weights = append(out.Weights, l.Weight)
			if c.avoids {
				out.Real = append(out.Real, l.Real)
			}
		}
	}
	return out
}

// row is the best path from an entry of a cell to each exit, by Dijkstra's algorithm within the cell.
func (c *customizer) row(cell uint32, table Table, entry uint32) []Label {
	first, end := c.states(cell)
	c.reset(first, end)
	c.relax(entry, Label{})
	for {
		edge, label, ok := c.queue.Pop()
		if !ok {
			break
		}
		if c.labels[c.state(edge)-first] == label && c.g.Cells.At(c.g.Head[edge], c.level) == cell {
			c.relax(edge, label)
		}
	}
	row := make([]Label, len(table.Exits))
	for i, exit := range table.Exits {
		row[i] = c.labels[c.state(exit)-first]
	}
	return row
}

// state is the number of an edge as a state of the search: its own on level 1, its place among the exits of the level below on
// the others. Those that begin in one cell are consecutive.
func (c *customizer) state(edge uint32) uint32 {
	if c.level == 1 {
		return edge
	}
	return c.t.Levels[c.level-2].ExitPlace[c.t.CutIndex[edge]]
}

// states are the first state that begins in a cell and the one after the last.
func (c *customizer) states(cell uint32) (first, end uint32) {
	junctions := c.t.Levels[c.level-1].FirstJunction
	from, to := junctions[cell], junctions[cell+1]
	if c.level == 1 {
		return c.g.FirstOut[from], c.g.FirstOut[to]
	}
	below := &c.t.Levels[c.level-2]
	return below.FirstExit[c.g.Cells.At(from, c.level-1)], below.FirstExit[c.g.Cells.At(to-1, c.level-1)+1]
}

// reset forgets the cell before.
func (c *customizer) reset(first, end uint32) {
	c.first = first
	c.labels = c.labels[:0]
	for range end - first {
		c.labels = append(c.labels, Label{Weight: Unreachable})
	}
	c.queue.Reset()
}

// relax looks at what follows an edge: edges on level 1, on the others the table of the cell below that it enters.
func (c *customizer) relax(edge uint32, label Label) {
	if c.level == 1 {
		first, end := c.g.OutEdges(c.g.Head[edge])
		for next := first; next < end; next++ {
			if turn := c.g.Turn(edge, next); turn != graph.ForbiddenTurn {
				c.improve(next, label.Add(c.weigh.TurnLabel(turn)).Add(c.weigh.Label(next)))
			}
		}
		return
	}
	below := &c.t.Levels[c.level-2]
	cell := c.g.Cells.At(c.g.Head[edge], c.level-1)
	table := below.Table(cell)
	costs := c.metric.Costs(c.level-1, cell, len(table.Entries)*len(table.Exits))
	row := c.t.Row(below, table, edge) * uint32(len(table.Exits))
	for i, exit := range table.Exits {
		if costs.Weights[row+uint32(i)] != Unreachable {
			c.improve(exit, label.Add(costs.At(row+uint32(i), c.avoids)))
		}
	}
}

// improve keeps the better label of an edge.
func (c *customizer) improve(edge uint32, label Label) {
	known := &c.labels[c.state(edge)-c.first]
	if label.IsLess(*known) {
		*known = label
		c.queue.Push(edge, label)
	}
}
