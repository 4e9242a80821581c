package network

import (
	"slices"

	"lieudit/queries/route/graph"
	"lieudit/queries/route/profile"
)

// throughRules describe the roads that are closed to through traffic, such as private and delivery roads: cars may drive to them,
// but not through them. A gate of this kind is treated like such a road.
//
// A public road may lie behind them, such as the streets of an estate of which only the entrance is private. Such a pocket is
// treated like the restricted road itself in the direction that needs it: a route that begins there leaves it before it reaches the
// public network, and one that ends there arrives by the entrance. Otherwise it could not be reached.
type throughRules struct {
	restricted []bool          // by directed segment: its tags say so
	leaves     []bool          // by directed segment: a route may use it before it reaches a public road
	arrives    []bool          // by directed segment: a route may use it after it has left the public roads
	gates      map[uint32]bool // junctions
	hasParts   bool            // the graph has copies for the parts of routes; if not, it is the draft for openPockets
}

// findRestricted returns the rules that the roads and gates of the map make; nil if the map has no such roads, or the mode ignores
// them.
func (b *layerBuilder) findRestricted() *throughRules {
	if b.mode != profile.Car {
		return nil
	}
	r := &throughRules{restricted: make([]bool, 2*len(b.segments)), gates: map[uint32]bool{}}
	isAny := false
	for directed := range uint32(2 * len(b.segments)) {
		r.restricted[directed] = b.bitsOf(directed)&bitRestricted != 0
		isAny = isAny || r.restricted[directed]
	}
	for node, facts := range b.facts {
		if junction, ok := b.junctionOf(node); ok && facts.IsRestricted {
			r.gates[junction], isAny = true, true
		}
	}
	if !isAny {
		return nil
	}
	return r
}

// hasLater reports whether a directed segment may lie in two parts of a route.
func (r *throughRules) hasLater(directed uint32) bool {
	return r.leaves[directed] || r.arrives[directed]
}

// partOf is the earlier or the later part of a route in which a directed segment may lie. The public part is not needed: no public
// road leads to such a segment or from it.
func (r *throughRules) partOf(directed uint32, isLater bool) part {
	switch {
	case !isLater && r.leaves[directed]:
		return leaving
	case isLater && r.arrives[directed]:
		return arriving
	}
	return public
}

// openPockets fills in leaves and arrives: for restricted roads, and for the pockets of public roads that can be left or entered
// only by restricted roads and gates. draft has no copies, and its turns ignore parts.
func (r *throughRules) openPockets(draft *edgeBuilder) {
	f := newPocketFinder(r, draft)
	r.leaves, r.arrives = slices.Clone(r.restricted), slices.Clone(r.restricted)
	for _, way := range []struct {
		each visitTurns
		is   []bool
	}{{f.eachBefore, r.leaves}, {f.eachNext, r.arrives}} {
		all, byPublic := f.spread(f.main, way.each), f.spread(f.main, f.onlyPublic(way.each))
		for directed, edge := range draft.plain {
			if edge != graph.None && all[edge] && !byPublic[edge] {
				way.is[directed] = true
			}
		}
	}
}

// pocketFinder looks for the public roads that are connected with the public network by public roads.
type pocketFinder struct {
	*throughRules
	draft *edgeBuilder
	main  []uint32 // edges of the public network: the largest component of each region
}

// newPocketFinder finds the public network.
func newPocketFinder(r *throughRules, draft *edgeBuilder) *pocketFinder {
	f := &pocketFinder{throughRules: r, draft: draft}
	g := draft.g
	component := findComponents(g, f.isPublicTurn).component
	region := findRegions(g)
	size := make([]int, g.Edges())
	for edge, c := range component {
		if !r.restricted[g.Segment[edge]] {
			size[c]++
		}
	}
	largest := map[uint32]uint32{} // of each region its component
	for edge, c := range component {
		if best, ok := largest[region[edge]]; size[c] > 0 && (!ok || size[c] > size[best]) {
			largest[region[edge]] = c
		}
	}
	for edge, c := range component {
		if best, ok := largest[region[edge]]; ok && c == best && size[c] > 0 {
			f.main = append(f.main, uint32(edge))
		}
	}
	return f
}

// isPublicTurn reports whether through traffic may take a turn.
func (f *pocketFinder) isPublicTurn(from, to uint32) bool {
	g := f.draft.g
	return g.Turn(from, to) != graph.ForbiddenTurn && !f.restricted[g.Segment[from]] && !f.restricted[g.Segment[to]] &&
		!f.draft.passesGate(from, to)
}

// visitTurns visits the turns from or to an edge.
type visitTurns func(edge uint32, visit func(from, to, other uint32))

// eachNext visits the turns from an edge.
func (f *pocketFinder) eachNext(edge uint32, visit func(from, to, other uint32)) {
	g := f.draft.g
	first, end := g.OutEdges(g.Head[edge])
	for to := first; to < end; to++ {
		if g.Turn(edge, to) != graph.ForbiddenTurn {
			visit(edge, to, to)
		}
	}
}

// eachBefore visits the turns to an edge.
func (f *pocketFinder) eachBefore(edge uint32, visit func(from, to, other uint32)) {
	g := f.draft.g
	for _, from := range g.InEdges(g.Tail[edge]) {
		if g.Turn(from, edge) != graph.ForbiddenTurn {
			visit(from, edge, from)
		}
	}
}

// onlyPublic keeps the turns that through traffic may take.
func (f *pocketFinder) onlyPublic(each visitTurns) visitTurns {
	return func(edge uint32, visit func(from, to, other uint32)) {
		each(edge, func(from, to, other uint32) {
			if f.isPublicTurn(from, to) {
				visit(from, to, other)
			}
		})
	}
}

// spread returns the edges that can be reached from some edges by steps.
func (f *pocketFinder) spread(from []uint32, each visitTurns) []bool {
	isReached := make([]bool, f.draft.g.Edges())
	open := slices.Clone(from)
	for _, edge := range open {
		isReached[edge] = true
	}
	for len(open) > 0 {
		edge := open[len(open)-1]
		open = open[:len(open)-1]
		each(edge, func(_, _, other uint32) {
			if !isReached[other] {
				isReached[other] = true
				open = append(open, other)
			}
		})
	}
	return isReached
}

// findRegions returns for each edge the first edge of its region: edges that turns connect in whatever direction.
func findRegions(g *graph.Graph) []uint32 {
	first := make([]uint32, g.Edges())
	for edge := range first {
		first[edge] = uint32(edge)
	}
	find := func(edge uint32) uint32 {
		for first[edge] != edge {
			first[edge] = first[first[edge]]
			edge = first[edge]
		}
		return edge
	}
	for from := range uint32(g.Edges()) {
		out, end := g.OutEdges(g.Head[from])
		for to := out; to < end; to++ {
			if g.Turn(from, to) != graph.ForbiddenTurn {
				a, b := find(from), find(to)
				first[max(a, b)] = min(a, b)
			}
		}
	}
	for edge := range first {
		first[edge] = find(uint32(edge))
	}
	return first
}
