package search

import (
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// Dijkstra is the cost of the best path between places, without their excess, by the plain algorithm on the whole graph, without
// cells; it returns false if there is no path. All other searches must agree with it. It settles the whole graph, so it is for
// tests and benchmarks.
func Dijkstra(g *graph.Graph, p route.Profile, from, to []Place) (Cost, bool) {
	d := newDijkstra(g, p, from)
	weight := d.to(from, to)
	if d.hasLeaving(from) && d.hasLeaving(to) {
		weight = bestOfPairs(g, p, from, to)
	}
	return d.cost(weight), weight.Key < overlay.NoPath
}

// bestOfPairs is the weight of the best path, except that two accesses with a path that stays in an area have no other path between
// their places on restricted roads.
func bestOfPairs(g *graph.Graph, p route.Profile, from, to []Place) overlay.Weight {
	best := overlay.Weight{Key: overlay.NoPath}
	for _, a := range accessesOf(from) {
		for _, b := range accessesOf(to) {
			starts, ends := PlacesOf(from, a), PlacesOf(to, b)
			within := &dijkstra{isWithin: true}
			within.start(g, p, starts)
			weight := within.to(starts, ends)
			isHeld := weight.Key < overlay.NoPath
			for i := range starts {
				d := newDijkstra(g, p, starts[i:i+1])
				for k := range ends {
					if isHeld && g.IsLeaving(starts[i].Edge) && g.IsLeaving(ends[k].Edge) {
						continue
					}
					if other := d.to(starts[i:i+1], ends[k:k+1]); other.IsLess(weight) {
						weight = other
					}
				}
			}
			if weight.IsLess(best) {
				best = weight
			}
		}
	}
	return best
}

// dijkstra is a search from places that has a label for each edge: the weight of the best path up to its head.
type dijkstra struct {
	query
	labels   []overlay.Weight
	heap     overlay.Heap
	isWithin bool // it stays on restricted roads
}

// newDijkstra searches from places until every edge that can be reached is settled.
func newDijkstra(g *graph.Graph, p route.Profile, from []Place) *dijkstra {
	d := &dijkstra{}
	d.start(g, p, from)
	return d
}

func (d *dijkstra) start(g *graph.Graph, p route.Profile, from []Place) {
	d.query = query{graph: g, weigher: overlay.NewWeigher(g, p)}
	d.labels = slices.Repeat([]overlay.Weight{{Key: overlay.NoPath}}, g.Edges())
	for i := range from {
		if !d.isWithin || g.IsLeaving(from[i].Edge) {
			d.improve(from[i].Edge, d.startWeight(&from[i]))
		}
	}
	for len(d.heap) > 0 {
		item := d.heap.Pop()
		if item.Weight() == d.labels[item.State] {
			d.relax(item.State, item.Weight())
		}
	}
}

// relax improves the labels of the edges that follow a settled one.
func (d *dijkstra) relax(edge uint32, at overlay.Weight) {
	first, end := d.graph.OutEdges(d.graph.Head[edge])
	for next := first; next < end; next++ {
		if turn := d.graph.Turn(edge, next); turn != graph.ForbiddenTurn && (!d.isWithin || d.graph.IsLeaving(next)) {
			d.improve(next, at.Plus(d.weigher.Edge(next)).Plus(overlay.Weight{Key: d.weigher.Turn(turn)}))
		}
	}
}

// improve lowers a label and queues its edge.
func (d *dijkstra) improve(edge uint32, to overlay.Weight) {
	if to.IsLess(d.labels[edge]) {
		d.labels[edge] = to
		d.heap.Push(overlay.Item{Key: to.Key, Penalty: to.Penalty, State: edge})
	}
}

// to is the weight of the best path to one of some places.
func (d *dijkstra) to(from, to []Place) overlay.Weight {
	if d.isWithin {
		from = slices.DeleteFunc(slices.Clone(from), func(p Place) bool { return !d.graph.IsLeaving(p.Edge) })
	}
	best := d.bestOnEdge(from, to).Weight
	d.visitEnds(to, func(edge uint32, place int) {
		if d.isWithin && !d.graph.IsLeaving(edge) {
			return
		}
		for _, before := range d.graph.InEdges(d.graph.Tail[edge]) {
			if weight, ok := d.turnOnto(before, edge, to[place]); ok && weight.Plus(d.labels[before]).IsLess(best) {
				best = weight.Plus(d.labels[before])
			}
		}
	})
	return best
}
