package search

import (
	"errors"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// unpacker turns a meeting into a path: it searches the cells of each shortcut again for the edges that the shortcut stands for.
type unpacker struct {
	*query
	frontier frontier
	hops     []uint32 // states of the paths across the cells that are being unpacked, a stack
}

// path returns the path that a meeting found, with the shortcuts between its states unpacked into edges.
func (u *unpacker) path(m meeting, from, to []Place) (Path, error) {
	if m.Key >= overlay.NoPath {
		return Path{}, route.ErrNoRoute
	}
	path := Path{Cost: u.cost(m.Weight)}
	if m.forward&isSeed != 0 {
		path.Start, path.End = from[m.forward&^isSeed], to[m.backward&^isSeed]
		path.Edges = []uint32{path.Start.Edge}
		return path, nil
	}
	states, start, end := u.states(m)
	path.Start, path.End = from[start], to[end]
	path.Edges = append(make([]uint32, 0, 16*len(states)), u.edgeOf(states[0]))
	for i, id := range states[1:] {
		if err := u.appendHop(&path.Edges, states[i], id); err != nil {
			return Path{}, err
		}
	}
	path.Edges = append(path.Edges, u.lastEdge(states[len(states)-1], path.End))
	return path, nil
}

// states returns the states of a path in their order, and the places at its ends.
func (u *unpacker) states(m meeting) (ids []uint32, start, end uint32) {
	label := m.forward
	for ; label&isSeed == 0; label = u.forward.nodes[label].parent {
		ids = append(ids, u.forward.nodes[label].id)
	}
	start = label &^ isSeed
	slices.Reverse(ids)
	label = u.backward.nodes[m.backward].parent
	for ; label&isSeed == 0; label = u.backward.nodes[label].parent {
		ids = append(ids, u.backward.nodes[label].id)
	}
	return ids, start, label &^ isSeed
}

// lastEdge is the edge on which a path ends that comes from a state: the place's own or the cheapest of its copies.
func (u *unpacker) lastEdge(id uint32, end Place) uint32 {
	from, last, least := u.edgeOf(id), end.Edge, overlay.Weight{Key: overlay.NoPath}
	u.visitEnds([]Place{end}, func(edge uint32, _ int) {
		if weight, ok := u.turnOnto(from, edge, end); ok && weight.IsLess(least) {
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
func (u *unpacker) appendHop(edges *[]uint32, from, to uint32) error {
	s := u.sideOf(from, false)
	if s.level == 0 {
		*edges = append(*edges, u.edgeOf(to))
		return nil
	}
	return u.unpack(edges, s.id, u.sideOf(to, true).id, s.cell, s.level)
}

// unpack appends the edges of the best path from an entry of a cell to an exit. It searches the path among the cells of the level
// below, and theirs in turn.
func (u *unpacker) unpack(edges *[]uint32, entry, exit, cell uint32, level int) error {
	first := len(u.hops)
	if err := u.crossCell(entry, exit, cell, level); err != nil {
		return err
	}
	end := len(u.hops)
	// hops is a stack: the calls for the level below push theirs above this path, and pop them before they return.
	for from, i := entry, end-1; i >= first; i-- {
		to := u.hops[i]
		if level == 1 {
			*edges = append(*edges, u.edgeOf(to))
			continue
		}
		within := u.topology.AncestorsOf(u.topology.Cut(from &^ isCut).HeadCell())[level-2]
		if err := u.unpack(edges, from, to, within, level-1); err != nil {
			return err
		}
		from = to
	}
	u.hops = u.hops[:first]
	return nil
}

// crossCell appends to hops the states of the best path from an entry of a cell to an exit, the last first, without the entry. The
// weight of the shortcut bounds the search, so it sees little besides the path.
func (u *unpacker) crossCell(entry, exit, cell uint32, level int) error {
	f := &u.frontier
	f.reset()
	f.limit = u.crossingKey(entry, exit, cell, level)
	from := u.topology.Cut(entry &^ isCut)
	f.keys, f.nodes = append(f.keys, 0), append(f.nodes, node{parent: isSeed, id: entry})
	f.relax(0, u.sideInChild(entry, from.HeadCell(), level))
	for {
		label, ok := f.settle()
		if !ok {
			return errUnpacked
		}
		if err := u.budget.spend(); err != nil {
			return err
		}
		id := f.nodes[label].id
		switch cell1 := u.cellOf(id, false); {
		case id == exit || id == u.edgeOf(exit):
			for ; f.nodes[label].parent&isSeed == 0; label = f.nodes[label].parent {
				u.hops = append(u.hops, f.nodes[label].id)
			}
			return nil
		case u.topology.AncestorsOf(cell1)[level-1] == cell:
			f.relax(label, u.sideInChild(id, cell1, level))
		}
	}
}

// crossingKey is the key of the best path from an entry of a cell to an exit.
func (u *unpacker) crossingKey(entry, exit, cell uint32, level int) uint64 {
	keys, _ := u.metric.Matrix(u.topology, cell)
	columns := u.topology.FirstExit[cell+1] - u.topology.FirstExit[cell]
	return keys[u.topology.Cut(entry&^isCut).Row(level)*columns+u.topology.Cut(exit&^isCut).Column(level)]
}

// sideInChild is a state seen from its head, in a cell of a level whose children are crossed.
func (u *unpacker) sideInChild(id, cell1 uint32, level int) side {
	s := side{id: id, cell1: cell1, level: level - 1}
	if level > 1 {
		s.cell = u.topology.AncestorsOf(cell1)[level-2]
	}
	return s
}

// errUnpacked means that a matrix and the edges below it disagree: the metric does not belong to the graph.
var errUnpacked = errors.New("the metric does not belong to the graph")
