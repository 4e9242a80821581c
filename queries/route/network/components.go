package network

import (
	"slices"

	"lieudit/queries/route/graph"
)

// connect finds how each edge is connected with the main part: the largest strongly connected component, or among equal ones the
// one with the first edge. An edge is reached if a copy of it is, because a path may end on any copy.
func connect(g *graph.Graph) []graph.Connection {
	t := findComponents(g, func(from, to uint32) bool { return g.Turn(from, to) != graph.ForbiddenTurn })
	all := connectTo(g, t.mainEdges())
	for _, edge := range g.Copies.Edges() {
		for _, each := range g.CopiesOf(edge) {
			all[edge] |= all[each] & graph.IsReachedFromMain
		}
	}
	return all
}

// findComponents finds the strongly connected components of the edges, by the turns that are open. (The algorithm of Tarjan, without
// recursion.)
func findComponents(g *graph.Graph, isOpen func(from, to uint32) bool) *tarjan {
	t := &tarjan{g: g, isOpen: isOpen, order: make([]uint32, g.Edges()), low: make([]uint32, g.Edges()), component: make([]uint32, g.Edges())}
	for edge := range t.component {
		t.component[edge] = graph.None
	}
	for edge := range uint32(g.Edges()) {
		if t.order[edge] == 0 {
			t.visit(edge)
		}
	}
	return t
}

// connectTo finds how each edge is connected with the edges of the main part.
func connectTo(g *graph.Graph, main []uint32) []graph.Connection {
	all := make([]graph.Connection, g.Edges())
	for _, edge := range main {
		all[edge] = graph.ReachesMain | graph.IsReachedFromMain
	}
	spread(all, main, graph.IsReachedFromMain, func(edge uint32, visit func(uint32)) { eachNext(g, edge, visit) })
	spread(all, main, graph.ReachesMain, func(edge uint32, visit func(uint32)) { eachBefore(g, edge, visit) })
	return all
}

// spread gives a connection to all edges that can be reached from the edges of the main part by steps in one direction.
func spread(all []graph.Connection, main []uint32, c graph.Connection, eachStep func(edge uint32, visit func(uint32))) {
	for open := slices.Clone(main); len(open) > 0; {
		edge := open[len(open)-1]
		open = open[:len(open)-1]
		eachStep(edge, func(to uint32) {
			if all[to]&c == 0 {
				all[to] |= c
				open = append(open, to)
			}
		})
	}
}

// eachNext visits the edges onto which an edge may turn.
func eachNext(g *graph.Graph, edge uint32, visit func(uint32)) {
	first, end := g.OutEdges(g.Head[edge])
	for to := first; to < end; to++ {
		if g.Turn(edge, to) != graph.ForbiddenTurn {
			visit(to)
		}
	}
}

// eachBefore visits the edges that may turn onto an edge.
func eachBefore(g *graph.Graph, edge uint32, visit func(uint32)) {
	for _, from := range g.InEdges(g.Tail[edge]) {
		if g.Turn(from, edge) != graph.ForbiddenTurn {
			visit(from)
		}
	}
}

// tarjan is the state of the algorithm: a depth-first search over edges, each of which leads to those that it may turn onto.
type tarjan struct {
	g          *graph.Graph
	isOpen     func(from, to uint32) bool // of turns
	order, low []uint32                   // by edge: when it was reached, from 1, and the earliest edge that it leads back to
	component  []uint32
	sizes      []int    // of the components found
	reached    uint32   // number of edges
	open       []uint32 // edges without a component, in the order in which they were reached
	path       []step
}

// step is an edge on the path of the search and the next edge to look at from there.
type step struct{ edge, next uint32 }

// visit searches from an edge.
func (t *tarjan) visit(edge uint32) {
	t.enter(edge)
	for len(t.path) > 0 {
		s := &t.path[len(t.path)-1]
		first, end := t.g.OutEdges(t.g.Head[s.edge])
		if first+s.next >= end {
			t.leave()
			continue
		}
		to := first + s.next
		s.next++
		switch {
		case !t.isOpen(s.edge, to):
		case t.order[to] == 0:
			t.enter(to)
		case t.component[to] == graph.None:
			t.low[s.edge] = min(t.low[s.edge], t.order[to])
		}
	}
}

// enter puts an edge on the path.
func (t *tarjan) enter(edge uint32) {
	t.reached++
	t.order[edge], t.low[edge] = t.reached, t.reached
	t.open = append(t.open, edge)
	t.path = append(t.path, step{edge: edge})
}

// leave takes the last edge off the path. If that leads back to no earlier edge, it completes a component.
func (t *tarjan) leave() {
	edge := t.path[len(t.path)-1].edge
	t.path = t.path[:len(t.path)-1]
	if len(t.path) > 0 {
		before := t.path[len(t.path)-1].edge
		t.low[before] = min(t.low[before], t.low[edge])
	}
	if t.low[edge] != t.order[edge] {
		return
	}
	size := 0
	for last := graph.None; last != edge; size++ {
		last = t.open[len(t.open)-1]
		t.open = t.open[:len(t.open)-1]
		t.component[last] = uint32(len(t.sizes))
	}
	t.sizes = append(t.sizes, size)
}

// mainEdges returns the edges of the largest component.
func (t *tarjan) mainEdges() (edges []uint32) {
	if len(t.sizes) == 0 {
		return nil
	}
	largest := slices.Max(t.sizes)
	main := graph.None
	for edge, c := range t.component {
		if main == graph.None && t.sizes[c] == largest {
			main = c
		}
		if c == main {
			edges = append(edges, uint32(edge))
		}
	}
	return edges
}
