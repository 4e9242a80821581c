package search

import (
	"slices"

	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// A route that begins and ends within one area of restricted roads, such as the yards of a factory, stays in it if it can, even if
// it were faster to drive out by one gate and in by another. So if a path that stays inside leads from one access to another,
// whatever its directions at both ends, no other path between their places on restricted roads is an answer. Such a path ends on an
// edge with the flag graph.Leaving, because a path that has reached a public road never enters such an edge again.
//
//	findInside ── plain searches on the few edges of the area ──► inside: the weights of such paths, for each pair of places
//	bestAround ── the best of these, and of searches between the pairs that have none ──► a path or its weight
//
// Bounds on restricted roads are rare, and areas small, so the extra work is done only for such pairs: for a route before its
// search, for a matrix in the cells of such pairs after it, for the nearest with such destinations before it.

// hasLeaving reports whether a place lies on a restricted road.
func (q *query) hasLeaving(places []Place) bool {
	return slices.ContainsFunc(places, func(p Place) bool { return q.graph.IsLeaving(p.Edge) })
}

// areaTree holds the best paths from a place that stay inside its area.
type areaTree struct {
	*query
	from   Place
	labels map[uint32]areaLabel // of edges: up to their heads
}

type areaLabel struct {
	overlay.Weight
	parent uint32 // the edge before, or graph.None
}

// areaSearch finds the paths of a query that stay inside.
type areaSearch struct{ *query }

// searchArea finds all paths from each place that stay inside. Places on public roads have no such paths.
func (a areaSearch) searchArea(from []Place) ([]areaTree, error) {
	trees := make([]areaTree, len(from))
	for i := range from {
		trees[i] = areaTree{query: a.query, from: from[i]}
		if a.graph.IsLeaving(from[i].Edge) {
			if err := trees[i].search(); err != nil {
				return nil, err
			}
		}
	}
	return trees, nil
}

// search is Dijkstra's algorithm on the edges of the area.
func (t *areaTree) search() error {
	t.labels = map[uint32]areaLabel{t.from.Edge: {t.startWeight(&t.from), graph.None}}
	var heap overlay.Heap
	push := func(edge uint32, w overlay.Weight) {
		heap.Push(overlay.Item{Key: w.Key, Penalty: w.Penalty, State: edge})
	}
	push(t.from.Edge, t.labels[t.from.Edge].Weight)
	for len(heap) > 0 {
		item := heap.Pop()
		if item.Weight() != t.labels[item.State].Weight {
			continue
		}
		if err := t.budget.spend(); err != nil {
			return err
		}
		first, end := t.graph.OutEdges(t.graph.Head[item.State])
		for next := first; next < end; next++ {
			turn := t.graph.Turn(item.State, next)
			if turn == graph.ForbiddenTurn || !t.graph.IsLeaving(next) {
				continue
			}
			to := t.weigher.Edge(next).Plus(item.Weight())
			to.Key += t.weigher.Turn(turn)
			if known, ok := t.labels[next]; !ok || to.IsLess(known.Weight) {
				t.labels[next] = areaLabel{to, item.State}
				push(next, to)
			}
		}
	}
	return nil
}

// areaPath is the best path to a place that stays inside: its last edge and the previous one, which is graph.None for a path along
// one edge.
type areaPath struct {
	overlay.Weight
	before, last uint32
}

// to finds the path to a place. Without a path the key is overlay.NoPath or more.
func (t *areaTree) to(place *Place) areaPath {
	best := areaPath{Weight: overlay.Weight{Key: overlay.NoPath}}
	if len(t.labels) == 0 || !t.graph.IsLeaving(place.Edge) {
		return best
	}
	if weight, ok := t.weightOnEdge(&t.from, place); ok {
		best = areaPath{weight, graph.None, place.Edge}
	}
	t.visitEnds([]Place{*place}, func(edge uint32, _ int) {
		if !t.graph.IsLeaving(edge) {
			return
		}
		for _, before := range t.graph.InEdges(t.graph.Tail[edge]) {
			label, ok := t.labels[before]
			if !ok {
				continue
			}
			if end, ok := t.turnOnto(before, edge, *place); ok && label.Plus(end).IsLess(best.Weight) {
				best = areaPath{label.Plus(end), before, edge}
			}
		}
	})
	return best
}

// edges are the edges of a path, in order.
func (t *areaTree) edges(p areaPath) []uint32 {
	edges := []uint32{p.last}
	for edge := p.before; edge != graph.None; edge = t.labels[edge].parent {
		edges = append(edges, edge)
	}
	slices.Reverse(edges)
	return edges
}

// inside holds the paths between two lists of places that stay inside an area.
type inside struct {
	trees    []areaTree
	from, to []Place
	paths    [][]areaPath // by pair
	isHeld   [][]bool     // by pair: it has no other path than one inside
}

// findInside finds the paths that stay inside; nil if no path does, as between most bounds.
func (a areaSearch) findInside(from, to []Place) (*inside, error) {
	if !a.hasLeaving(to) || !a.hasLeaving(from) {
		return nil, nil
	}
	trees, err := a.searchArea(from)
	if err != nil {
		return nil, err
	}
	return newInside(trees, from, to), nil
}

// newInside looks up the paths to places in the trees of other places.
func newInside(trees []areaTree, from, to []Place) *inside {
	in, isAny := &inside{trees: trees, from: from, to: to}, false
	for i := range trees {
		row := make([]areaPath, len(to))
		for k := range to {
			row[k] = trees[i].to(&to[k])
			isAny = isAny || row[k].Key < overlay.NoPath
		}
		in.paths = append(in.paths, row)
	}
	if !isAny {
		return nil
	}
	in.hold()
	return in
}

// hold fills in isHeld: a path inside between one pair of places of two accesses holds all their pairs on restricted roads.
func (in *inside) hold() {
	held := map[[2]uint32]bool{}
	in.eachPair(func(i, k int) {
		accesses := [2]uint32{in.from[i].Access, in.to[k].Access}
		held[accesses] = held[accesses] || in.paths[i][k].Key < overlay.NoPath
	})
	in.isHeld = make([][]bool, len(in.from))
	for i := range in.isHeld {
		in.isHeld[i] = make([]bool, len(in.to))
	}
	g := in.trees[0].graph
	in.eachPair(func(i, k int) {
		in.isHeld[i][k] = held[[2]uint32{in.from[i].Access, in.to[k].Access}] && g.IsLeaving(in.from[i].Edge) && g.IsLeaving(in.to[k].Edge)
	})
}

// eachPair visits the indices of all pairs of places.
func (in *inside) eachPair(visit func(from, to int)) {
	for i := range in.from {
		for k := range in.to {
			visit(i, k)
		}
	}
}

// best returns the best of the paths by the indices of its places.
func (in *inside) best() (from, to int) {
	in.eachPair(func(i, k int) {
		if in.paths[i][k].IsLess(in.paths[from][to].Weight) {
			from, to = i, k
		}
	})
	return from, to
}

// eachGroup visits places along with the places to which they are not held; places with the same ones form a group.
func (in *inside) eachGroup(visit func(from, to []Place) error) error {
	isVisited := make([]bool, len(in.from))
	for i := range in.from {
		if isVisited[i] {
			continue
		}
		var from, to []Place
		for other := i; other < len(in.from); other++ {
			if slices.Equal(in.isHeld[i], in.isHeld[other]) {
				isVisited[other] = true
				from = append(from, in.from[other])
			}
		}
		for k := range in.to {
			if !in.isHeld[i][k] {
				to = append(to, in.to[k])
			}
		}
		if len(to) == 0 {
			continue
		}
		if err := visit(from, to); err != nil {
			return err
		}
	}
	return nil
}

// bestAround is the weight of the best path between places some of which lie in one area, and the path if it is wanted.
func (a areaSearch) bestAround(in *inside, isWanted bool) (best overlay.Weight, path Path, err error) {
	i, k := in.best()
	best = in.paths[i][k].Weight
	path = Path{Edges: in.trees[i].edges(in.paths[i][k]), Start: in.from[i], End: in.to[k], Cost: a.cost(best)}
	err = in.eachGroup(func(from, to []Place) error {
		a.closeAll()
		m, err := a.meetBetween(from, to)
		if err != nil || !m.IsLess(best) {
			return err
		}
		best = m.Weight
		if isWanted {
			path, err = a.unpacker.path(m, from, to)
		}
		return err
	})
	return best, path, err
}

// keepInside stores the weights of routes that stay in an area in their cells.
func (a areaSearch) keepInside(from, to [][]Place, weights [][]overlay.Weight) error {
	if !slices.ContainsFunc(from, a.hasLeaving) {
		return nil
	}
	var columns []int
	for j := range to {
		if a.hasLeaving(to[j]) {
			columns = append(columns, j)
		}
	}
	for i := range from {
		if err := a.visitInside(from[i], to, columns, func(j int, best overlay.Weight) { weights[i][j] = best }); err != nil {
			return err
		}
	}
	return nil
}

// visitInside visits those of some destinations to which a path stays in the area of the origin, with the weight of the best path to them.
func (a areaSearch) visitInside(from []Place, to [][]Place, some []int, visit func(j int, best overlay.Weight)) error {
	if len(some) == 0 || !a.hasLeaving(from) {
		return nil
	}
	trees, err := a.searchArea(from)
	if err != nil {
		return err
	}
	for _, j := range some {
		in := newInside(trees, from, to[j])
		if in == nil {
			continue
		}
		best, _, err := a.bestAround(in, false)
		if err != nil {
			return err
		}
		visit(j, best)
	}
	return nil
}

// takeInside takes the destinations in the area of the origin out of the others, and returns them with their weights.
func (a areaSearch) takeInside(from []Place, to [][]Place) (others [][]Place, taken []overlay.Item, err error) {
	if !a.hasLeaving(from) {
		return to, nil, nil
	}
	var some []int
	for j := range to {
		if a.hasLeaving(to[j]) {
			some = append(some, j)
		}
	}
	others = slices.Clone(to)
	err = a.visitInside(from, to, some, func(j int, best overlay.Weight) {
		others[j] = nil
		taken = append(taken, overlay.Item{Key: best.Key, Penalty: best.Penalty, State: uint32(j)})
	})
	a.closeAll()
	return others, taken, err
}
