package search

import (
	"context"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// stepsBetweenChecks is how many edges are settled between two looks at the context.
const stepsBetweenChecks = 1024

// question is one search on the overlay.
type question struct {
	*Searcher
	profile route.Profile
	weigh   overlay.Weigher
	metric  *overlay.Metric
	avoids  bool
	ends    []uint32 // cells that must not be crossed: of each level those of the ends, levels × ends
	width   int      // number of ends
}

// newQuestion prepares a search whose level query keeps out of the cells of some junctions.
func (s *Searcher) newQuestion(p route.Profile, ends []uint32) (*question, error) {
	metric, ok := s.metrics.Metric(p)
	if !ok {
		return nil, route.ErrUnsupported
	}
	q := &question{Searcher: s, profile: p, weigh: overlay.NewWeigher(s.g, p), metric: metric, avoids: p.Avoid != 0, width: len(ends)}
	for level := 1; level <= len(s.t.Levels); level++ {
		for _, junction := range ends {
			q.ends = append(q.ends, s.g.Cells.At(junction, level))
		}
	}
	return q, nil
}

// level is the highest level whose cell at a junction holds no end, and that cell; 0 where even the smallest does.
func (q *question) level(junction uint32) (level int, cell uint32) {
	c := q.g.Cells.Of[junction]
	for l := 1; l <= len(q.t.Levels); l++ {
		if l > 1 {
			c = q.g.Cells.Parent[l-2][c]
		}
		for _, end := range q.ends[(l-1)*q.width : l*q.width] {
			if end == c {
				return level, cell
			}
		}
		level, cell = l, c
	}
	return level, cell
}

// heads and tails are the junctions at which places are left and reached.
func (s *Searcher) heads(places []Place) (all []uint32) {
	for _, p := range places {
		all = append(all, s.g.Head[p.Edge])
	}
	return all
}

func (s *Searcher) tails(places []Place) (all []uint32) {
	for _, p := range places {
		all = append(all, s.g.Tail[p.Edge])
	}
	return all
}

// Route finds the best path from one of some places to one of others. It fails with route.ErrNoRoute.
func (s *Searcher) Route(ctx context.Context, p route.Profile, from, to []Place) (Path, error) {
	q, err := s.newQuestion(p, append(s.heads(from), s.tails(to)...))
	if err != nil {
		return Path{}, err
	}
	w := s.work.Get().(*workspace)
	defer s.work.Put(w)
	along := direct(&q.weigh, from, to)
	meeting, best, err := q.meet(ctx, w, from, to, along.label)
	switch {
	case err != nil:
		return Path{}, err
	case best.Weight == overlay.Unreachable:
		return Path{}, route.ErrNoRoute
	case meeting == graph.None:
		return Path{Edges: []uint32{along.start.Edge}, Start: along.start, End: along.end, Cost: costOf(best, p)}, nil
	}
	return q.path(w, meeting, from, to, costOf(best, p)), nil
}

// meet searches from both ends until no better meeting is possible. bound is the label of a path that is known already. meeting is
// graph.None where that one stays the best.
func (q *question) meet(ctx context.Context, w *workspace, from, to []Place, bound overlay.Label) (meeting uint32, best overlay.Label, err error) {
	meeting, best = graph.None, bound
	q.seedForward(&w.forward, from)
	q.seedBackward(&w.backward, to)
	for step := 0; ; step++ {
		ahead, ok1 := w.forward.queue.First()
		behind, ok2 := w.backward.queue.First()
		if !ok1 || !ok2 || !ahead.Add(behind).IsLess(best) {
			return meeting, best, nil
		}
		if step%stepsBetweenChecks == 0 && ctx.Err() != nil {
			return meeting, best, ctx.Err()
		}
		this, other, relax := &w.forward, &w.backward, q.relaxForward
		if behind.IsLess(ahead) {
			this, other, relax = &w.backward, &w.forward, q.relaxBackward
		}
		edge, label, ok := this.settle()
		if !ok {
			continue
		}
		if n, ok := other.get(edge); ok {
			if total := label.Add(n.label); total.IsLess(best) {
				meeting, best = edge, total
			}
		}
		relax(this, edge, label)
	}
}

// seedForward begins at places: the label of an edge is what it costs to drive what is left of it.
func (q *question) seedForward(f *frontier, from []Place) {
	f.reset()
	for _, p := range from {
		f.improve(p.Edge, q.weigh.PartLabel(p.Edge, p.After.Duration, p.After.Distance), graph.None, 0)
	}
}

// seedBackward begins before places: the label of an edge is what it costs from its head to the place.
func (q *question) seedBackward(f *frontier, to []Place) {
	f.reset()
	for _, p := range to {
		for _, copied := range q.g.CopiesOf(p.Edge) {
			p.Edge = copied
			q.addSeeds(f, p)
		}
	}
}

// seedBackwardOn begins before one place.
func (q *question) seedBackwardOn(f *frontier, p Place) {
	f.reset()
	q.addSeeds(f, p)
}

func (q *question) addSeeds(f *frontier, p Place) {
	before := q.weigh.PartLabel(p.Edge, p.Before.Duration, p.Before.Distance)
	for _, edge := range q.g.InEdges(q.g.Tail[p.Edge]) {
		if turn := q.g.Turn(edge, p.Edge); turn != graph.ForbiddenTurn {
			f.improve(edge, before.Add(q.weigh.TurnLabel(turn)), p.Edge, lastHop)
		}
	}
}

// relaxForward looks at what follows an edge: edges, or across a cell.
func (q *question) relaxForward(f *frontier, edge uint32, label overlay.Label) {
	if level, cell := q.level(q.g.Head[edge]); level > 0 {
		q.relaxCell(f, edge, label, level, cell)
		return
	}
	q.relaxEdges(f, edge, label)
}

// relaxEdges looks at the edges that follow an edge.
func (q *question) relaxEdges(f *frontier, edge uint32, label overlay.Label) {
	first, end := q.g.OutEdges(q.g.Head[edge])
	for next := first; next < end; next++ {
		if turn := q.g.Turn(edge, next); turn != graph.ForbiddenTurn {
			f.improve(next, label.Add(q.weigh.TurnLabel(turn)).Add(q.weigh.Label(next)), edge, 0)
		}
	}
}

// relaxCell looks at the edges that leave a cell, which the edge enters.
func (q *question) relaxCell(f *frontier, edge uint32, label overlay.Label, level int, cell uint32) {
	l := &q.t.Levels[level-1]
	table := l.Table(cell)
	costs := q.metric.Costs(level, cell, len(table.Entries)*len(table.Exits))
	row := q.t.Row(l, table, edge) * uint32(len(table.Exits))
	for i, exit := range table.Exits {
		if costs.Weights[row+uint32(i)] != overlay.Unreachable {
			f.improve(exit, label.Add(costs.At(row+uint32(i), q.avoids)), edge, uint8(level))
		}
	}
}

// relaxBackward looks at what comes before an edge: edges, or across a cell. The label of an edge does not hold the edge itself.
func (q *question) relaxBackward(f *frontier, edge uint32, label overlay.Label) {
	level, cell := q.level(q.g.Tail[edge])
	if level == 0 {
		q.relaxEdgesBackward(f, edge, label)
		return
	}
	l := &q.t.Levels[level-1]
	table := l.Table(cell)
	costs := q.metric.Costs(level, cell, len(table.Entries)*len(table.Exits))
	width := uint32(len(table.Exits))
	at := q.t.Column(l, table, edge)
	for _, entry := range table.Entries {
		if costs.Weights[at] != overlay.Unreachable {
			f.improve(entry, label.Add(costs.At(at, q.avoids)), edge, uint8(level))
		}
		at += width
	}
}

// relaxEdgesBackward looks at the edges that come before an edge.
func (q *question) relaxEdgesBackward(f *frontier, edge uint32, label overlay.Label) {
	label = label.Add(q.weigh.Label(edge))
	for _, before := range q.g.InEdges(q.g.Tail[edge]) {
		if turn := q.g.Turn(before, edge); turn != graph.ForbiddenTurn {
			f.improve(before, label.Add(q.weigh.TurnLabel(turn)), edge, 0)
		}
	}
}
