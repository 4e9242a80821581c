package search

import (
	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// Dijkstra is the cost of the best path between places, without the overlay: what all other searches must agree with.
func Dijkstra(g *graph.Graph, p route.Profile, from, to []Place) (Cost, bool) {
	cost := costOf(dijkstra(g, p, from, to), p)
	return cost, cost != Unreachable
}

// dijkstra is the label of the best path between places.
func dijkstra(g *graph.Graph, p route.Profile, from, to []Place) overlay.Label {
	weigh := overlay.NewWeigher(g, p)
	best := direct(&weigh, from, to).label
	labels := make([]overlay.Label, g.Edges())
	for i := range labels {
		labels[i].Weight = overlay.Unreachable
	}
	ends := map[uint32][]overlay.Label{}
	for _, place := range to {
		for _, edge := range g.CopiesOf(place.Edge) {
			ends[edge] = append(ends[edge], weigh.PartLabel(edge, place.Before.Duration, place.Before.Distance))
		}
	}
	var queue overlay.Queue
	improve := func(edge uint32, label overlay.Label) {
		if label.IsLess(labels[edge]) {
			labels[edge] = label
			queue.Push(edge, label)
		}
	}
	for _, place := range from {
		improve(place.Edge, weigh.PartLabel(place.Edge, place.After.Duration, place.After.Distance))
	}
	for {
		edge, label, ok := queue.Pop()
		if !ok {
			break
		}
		if labels[edge] != label {
			continue
		}
		first, end := g.OutEdges(g.Head[edge])
		for next := first; next < end; next++ {
			turn := g.Turn(edge, next)
			if turn == graph.ForbiddenTurn {
				continue
			}
			through := label.Add(weigh.TurnLabel(turn))
			for _, before := range ends[next] {
				if total := through.Add(before); total.IsLess(best) {
					best = total
				}
			}
			improve(next, through.Add(weigh.Label(next)))
		}
	}
	return best
}

// directPath is the best path that stays on one edge.
type directPath struct {
	label      overlay.Label
	start, end Place
}

// direct finds the best path that stays on one edge; its weight is overlay.Unreachable where there is none.
func direct(weigh *overlay.Weigher, from, to []Place) directPath {
	best := directPath{label: overlay.Label{Weight: overlay.Unreachable}}
	for _, a := range from {
		for _, b := range to {
			if a.Edge != b.Edge || b.Before.Distance < a.Before.Distance || b.Before.Duration < a.Before.Duration {
				continue
			}
			label := weigh.PartLabel(a.Edge, b.Before.Duration-a.Before.Duration, b.Before.Distance-a.Before.Distance)
			if label.IsLess(best.label) {
				best = directPath{label, a, b}
			}
		}
	}
	return best
}
