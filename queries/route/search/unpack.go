package search

import (
	"errors"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// path returns the path that a meeting found, with the shortcuts between its states unpacked into edges.
func (q *query) path(m meeting, from, to []Place) (Path, error) {
	if m.Key >= overlay.NoPath {
		return Path{}, route.ErrNoRoute
	}
	path := Path{Cost: q.cost(m.Weight)}
	if m.forward&isSeed != 0 {
		path.Start, path.End = from[m.forward&^isSeed], to[m.backward&^isSeed]
		path.Edges = []uint32{path.Start.Edge}
		return path, nil
	}
	states, start, end := q.states(m)
	path.Start, path.End = from[start], to[end]
	path.Edges = append(make([]uint32, 0, 16*len(states)), q.edgeOf(states[0]))
	for i, id := range states[1:] {
		if err := q.appendHop(&path.Edges, states[i], id); err != nil {
			return Path{}, err
		}
	}
	path.Edges = append(path.Edges, q.lastEdge(states[len(states)-1], path.End))
	return path, nil
}

// states returns the states of a path in their order, and the places at its ends.
func (q *query) states(m meeting) (ids []uint32, start, end uint32) {
	label := m.forward
	for ; label&isSeed == 0; label = q.forward.nodes[label].parent {
		ids = append(ids, q.forward.nodes[label].id)
	}
	start = label &^ isSeed
	slices.Reverse(ids)
	label = q.backward.nodes[m.backward].parent
	for ; label&isSeed == 0; label = q.backward.nodes[label].parent {
		ids = append(ids, q.backward.nodes[label].id)
	}
	return ids, start, label &^ isSeed
}

// lastEdge is the edge on which a path ends that comes from a state: the place's own or the cheapest of its copies.
func (q *query) lastEdge(id uint32, end Place) uint32 {
	from, last, least := q.edgeOf(id), end.Edge, overlay.Weight{Key: overlay.NoPath}
	q.visitEnds([]Place{end}, func(edge uint32, _ int) {
		if weight, ok := q.turnOnto(from, edge, end); ok && weight.IsLess(least) {
			last, least = edge, weight
		}
	})
	return last
}

// turnOnto is the weight from an edge over a turn to a place on the next.
func (q *query) turnOnto(from, edge uint32, end Place) (overlay.Weight, bool) {
	if q.graph.Head[from] != q.graph.Tail[edge] {
		return overlay.Weight{}, false
	}
	turn := q.graph.Turn(from, edge)
	return q.endWeight(edge, &end).Plus(overlay.Weight{Key: q.weigher.Turn(turn)}), turn != graph.ForbiddenTurn
}

// appendHop appends the edges from one state of a path to the next, without the first.
func (q *query) appendHop(edges *[]uint32, from, to uint32) error {
	s := q.sideOf(from, false)
	if s.level == 0 {
		*edges = append(*edges, q.edgeOf(to))
		return nil
	}
	return q.unpack(edges, s.id, q.sideOf(to, true).id, s.cell, s.level)
}

// unpack appends the edges of the best path from an entry of a cell to an exit. It searches the path among the cells of the level
// below, and theirs in turn.
func (q *query) unpack(edges *[]uint32, entry, exit, cell uint32, level int) error {
	first := len(q.hops)
	if err := q.crossCell(entry, exit, cell, level); err != nil {
		return err
	}
	end := len(q.hops)
	// hops is a stack: the calls for the level below put theirs above this path, and take them off before they return.
	for from, i := entry, end-1; i >= first; i-- {
		to := q.hops[i]
		if level == 1 {
			*edges = append(*edges, q.edgeOf(to))
			continue
		}
		within := q.topology.AncestorsOf(q.topology.Cut(from &^ isCut).HeadCell())[level-2]
		if err := q.unpack(edges, from, to, within, level-1); err != nil {
			return err
		}
		from = to
	}
	q.hops = q.hops[:first]
	return nil
}

// crossCell appends to hops the states of the best path from an entry of a cell to an exit, the last first, without the entry.
// The weight of the shortcut bounds the search, so it sees little next to the path.
func (q *query) crossCell(entry, exit, cell uint32, level int) error {
	f := &q.inner
	f.reset()
	f.limit = q.crossingKey(entry, exit, cell, level)
	from := q.topology.Cut(entry &^ isCut)
	f.keys, f.nodes = append(f.keys, 0), append(f.nodes, node{parent: isSeed, id: entry})
	f.relax(0, q.sideInChild(entry, from.HeadCell(), level))
	for {
		label, ok := f.settle()
		if !ok {
			return errUnpacked
		}
		if err := q.budget.spend(); err != nil {
			return err
		}
		id := f.nodes[label].id
		switch cell1 := q.cellOf(id, false); {
		case id == exit || id == q.edgeOf(exit):
			for ; f.nodes[label].parent&isSeed == 0; label = f.nodes[label].parent {
				q.hops = append(q.hops, f.nodes[label].id)
			}
			return nil
		case q.topology.AncestorsOf(cell1)[level-1] == cell:
			f.relax(label, q.sideInChild(id, cell1, level))
		}
	}
}

// crossingKey is the key of the best path from an entry of a cell to an exit.
func (q *query) crossingKey(entry, exit, cell uint32, level int) uint64 {
	keys, _ := q.metric.Matrix(q.topology, cell)
	columns := q.topology.FirstExit[cell+1] - q.topology.FirstExit[cell]
	return keys[q.topology.Cut(entry&^isCut).Row(level)*columns+q.topology.Cut(exit&^isCut).Column(level)]
}

// sideInChild is a state seen from its head, in a cell of a level whose children are crossed.
func (q *query) sideInChild(id, cell1 uint32, level int) side {
	s := side{id: id, cell1: cell1, level: level - 1}
	if level > 1 {
		s.cell = q.topology.AncestorsOf(cell1)[level-2]
	}
	return s
}

// errUnpacked says that a matrix and the edges below it disagree: the metric is not that of the graph.
var errUnpacked = errors.New("the metric does not belong to the graph")
