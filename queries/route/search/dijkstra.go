package search

import (
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// Dijkstra is the cost of the best path between places, without their excess, by the plain algorithm on the whole graph, without cells: what all other
// searches must agree with. false says that there is no path. It settles the whole graph, so it is for tests and benchmarks.
func Dijkstra(g *graph.Graph, p route.Profile, from, to []Place) (Cost, bool) {
	d := newDijkstra(g, p, from)
	weight := d.to(from, to)
	return d.cost(weight), weight.Key < overlay.NoPath
}

// dijkstra is a search from places that has a label for each edge: the weight of the best path up to its head.
type dijkstra struct {
	query
	labels []overlay.Weight
	heap   overlay.Heap
}

// newDijkstra searches from places until every edge that can be reached is settled.
func newDijkstra(g *graph.Graph, p route.Profile, from []Place) *dijkstra {
	d := &dijkstra{
		query:  query{graph: g, weigher: overlay.NewWeigher(g, p)},
		labels: slices.Repeat([]overlay.Weight{{Key: overlay.NoPath}}, g.Edges()),
	}
	for i := range from {
		d.improve(from[i].Edge, d.startWeight(&from[i]))
	}
	for len(d.heap) > 0 {
		item := d.heap.Pop()
		if item.Weight() == d.labels[item.State] {
			d.relax(item.State, item.Weight())
		}
	}
	return d
}

// relax improves the labels of the edges that follow a settled one.
func (d *dijkstra) relax(edge uint32, at overlay.Weight) {
	first, end := d.graph.OutEdges(d.graph.Head[edge])
	for next := first; next < end; next++ {
		if turn := d.graph.Turn(edge, next); turn != graph.ForbiddenTurn {
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
	best := d.bestOnEdge(from, to).Weight
	d.visitEnds(to, func(edge uint32, place int) {
		for _, before := range d.graph.InEdges(d.graph.Tail[edge]) {
			if weight, ok := d.turnOnto(before, edge, to[place]); ok && weight.Plus(d.labels[before]).IsLess(best) {
				best = weight.Plus(d.labels[before])
			}
		}
	})
	return best
}
