package search

import (
	"context"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/overlay"
)

// Route finds the best path from one of some places to one of others. It fails with route.ErrNoRoute if no path exists. Among
// equally good paths it always finds the same one.
func (s *Searcher) Route(ctx context.Context, p route.Profile, from, to []Place) (Path, error) {
	q, err := s.begin(ctx, p, s.Budgets.Route)
	if err != nil {
		return Path{}, err
	}
	defer s.release(q)
	in, err := areaSearch{q}.findInside(from, to)
	if err != nil {
		return Path{}, err
	}
	if in != nil {
		_, path, err := areaSearch{q}.bestAround(in, true)
		return path, err
	}
	best, err := q.meetBetween(from, to)
	if err != nil {
		return Path{}, err
	}
	return q.unpacker.path(best, from, to)
}

// meetBetween searches from both ends.
func (q *query) meetBetween(from, to []Place) (meeting, error) {
	best := q.bestOnEdge(from, to)
	origins, destinations := q.origins(from), q.destinations(to)
	q.openSeeds(origins)
	q.openSeeds(destinations)
	q.forward.begin(origins)
	q.backward.begin(destinations)
	err := q.meet(&best)
	return best, err
}

// meeting is the best path found so far: where the two searches meet, or along one edge.
type meeting struct {
	overlay.Weight
	forward, backward uint32 // labels of the state; for a path along one edge isSeed and the indices of the places
}

// bestOnEdge is the best path from a place to one further along the same edge, which no search finds, because it takes no turn.
func (q *query) bestOnEdge(from, to []Place) meeting {
	best := meeting{Weight: overlay.Weight{Key: overlay.NoPath}}
	for k := range to {
		segment := q.graph.Segment[to[k].Edge] // an edge and its copies have the same
		for i := range from {
			if q.graph.Segment[from[i].Edge] != segment {
				continue
			}
			if weight, ok := q.weightOnEdge(&from[i], &to[k]); ok && weight.IsLess(best.Weight) {
				best = meeting{weight, isSeed | uint32(i), isSeed | uint32(k)}
			}
		}
	}
	return best
}

// weightOnEdge is the weight from a place to one further along the same edge; false if to lies before from.
func (q *query) weightOnEdge(from, to *Place) (overlay.Weight, bool) {
	isBehind := from.Before.Duration <= to.Before.Duration && from.Before.Distance <= to.Before.Distance
	if !isBehind || from.Edge != to.Edge && !slices.Contains(q.graph.CopiesOf(to.Edge), from.Edge) {
		return overlay.Weight{}, false
	}
	weight := q.part(to.Edge, Cost{to.Before.Duration - from.Before.Duration, to.Before.Distance - from.Before.Distance})
	return weight.Plus(q.excess(from)).Plus(q.excess(to)), true
}

// visitEnds calls a function for each edge on which a path to one of some places may end.
func (q *query) visitEnds(to []Place, visit func(edge uint32, place int)) {
	for i := range to {
		copies := q.graph.Copies.Of(to[i].Edge)
		if copies == nil {
			visit(to[i].Edge, i)
		}
		for _, edge := range copies {
			visit(edge, i)
		}
	}
}

// seed is where a search begins: an edge whose head the path has reached, or will reach, with the cost from or to the place.
// Searches from both ends begin on edges: at a destination on those from which a turn leads onto the edge of the place.
type seed struct {
	edge   uint32
	weight overlay.Weight
	place  uint32 // index
}

// origins returns the seeds of a search from places.
func (q *query) origins(from []Place) []seed {
	seeds := make([]seed, len(from))
	for i := range from {
		seeds[i] = seed{from[i].Edge, q.startWeight(&from[i]), uint32(i)}
	}
	return seeds
}

// destinations returns the seeds of a search to places.
func (q *query) destinations(to []Place) (seeds []seed) {
	q.visitEnds(to, func(edge uint32, place int) {
		for _, before := range q.graph.InEdges(q.graph.Tail[edge]) {
			if weight, ok := q.turnOnto(before, edge, to[place]); ok {
				seeds = append(seeds, seed{before, weight, uint32(place)})
			}
		}
	})
	return seeds
}

// openSeeds opens the cells in which searches begin, on all levels.
func (q *query) openSeeds(seeds []seed) {
	for _, s := range seeds {
		q.openAt(q.graph.Head[s.edge])
	}
}

// meet searches from both ends, always on the side whose next weight is smaller. It stops when the next weights of both add up to no
// less than the best path: every path that neither search has seen costs at least that sum.
func (q *query) meet(best *meeting) error {
	forward, backward := &q.forward, &q.backward
	for len(forward.heap) > 0 && len(backward.heap) > 0 {
		ahead, behind := forward.heap[0].Weight(), backward.heap[0].Weight()
		if !ahead.Plus(behind).IsLess(best.Weight) {
			return nil
		}
		m, err := q.step(ahead.IsLess(behind))
		if err != nil {
			return err
		}
		if m.IsLess(best.Weight) {
			*best = m
			forward.limit, backward.limit = m.Key, m.Key
		}
	}
	return nil
}

// step settles a state of one search, checks whether the other has reached it, and continues.
func (q *query) step(isForward bool) (meeting, error) {
	m := meeting{Weight: overlay.Weight{Key: overlay.NoPath}}
	f, other := &q.forward, &q.backward
	if !isForward {
		f, other = other, f
	}
	label, ok := f.settle()
	if !ok {
		return m, nil
	}
	if err := q.budget.spend(); err != nil {
		return m, err
	}
	s := f.nextSide(f.nodes[label].id)
	if there, ok := other.find(s); ok {
		m = meeting{f.weight(label).Plus(other.weight(there)), label, there}
		if f.isBackward {
			m.forward, m.backward = there, label
		}
	}
	f.relax(label, s)
	return m, nil
}
