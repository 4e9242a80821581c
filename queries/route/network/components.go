package network

import (
	"cmp"
	"slices"

	"lieudit/queries/route/graph"
)

// findComponents returns the strongly connected component of each edge: edges from each of which a path leads to each other. They
// are numbered by their size, the largest first, equal ones by their first edge. (The algorithm of Tarjan, without recursion.)
func findComponents(g *graph.Graph) []uint32 {
	t := &tarjan{g: g, order: make([]uint32, g.Edges()), low: make([]uint32, g.Edges()), component: make([]uint32, g.Edges())}
	for edge := range t.component {
		t.component[edge] = graph.None
	}
	for edge := range uint32(g.Edges()) {
		if t.order[edge] == 0 {
			t.visit(edge)
		}
	}
	return t.number()
}

// tarjan is the state of the algorithm: a depth-first search over edges, each of which leads to those that it may turn onto.
type tarjan struct {
	g          *graph.Graph
	order, low []uint32 // of each edge when it was reached, from 1 on, and the earliest that it leads back to
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
		case t.g.Turn(s.edge, to) == graph.ForbiddenTurn:
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

// leave takes the last edge off the path. When it leads back to nothing earlier, it closes a component.
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

// number renumbers the components by size.
func (t *tarjan) number() []uint32 {
	first := make([]uint32, len(t.sizes)) // the first edge of each
	for edge := len(t.component) - 1; edge >= 0; edge-- {
		first[t.component[edge]] = uint32(edge)
	}
	bySize := make([]uint32, len(t.sizes))
	for i := range bySize {
		bySize[i] = uint32(i)
	}
	slices.SortFunc(bySize, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(t.sizes[b], t.sizes[a]), cmp.Compare(first[a], first[b]))
	})
	number := make([]uint32, len(t.sizes))
	for i, c := range bySize {
		number[c] = uint32(i)
	}
	for edge, c := range t.component {
		t.component[edge] = number[c]
	}
	return t.component
}
