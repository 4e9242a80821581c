package search

import (
	"context"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// What one question may cost, in settled edges. A country's hour by car takes less.
const (
	maxReached    = 3_000_000
	maxNearSearch = 150_000 // before Nearest goes over to the overlay
)

// Reach visits every edge that can be reached from places, or from which the places can be reached, within a limit of duration, or
// of distance where p is for the shortest path. start and end are what it costs to be at the tail and at the head of the edge. end
// may be over the limit. On the edge of a place the cost behind the place is negative. An avoided road counts
// route.AvoidFactor times: what lies behind it is out of reach as a rule, which is what avoiding means here.
func (s *Searcher) Reach(ctx context.Context, p route.Profile, from []Place, limit uint32, isArrival bool, visit func(edge uint32, start, end int64)) error {
	q := &question{Searcher: s, profile: p, weigh: overlay.NewWeigher(s.g, p), avoids: p.Avoid != 0}
	w := s.work.Get().(*workspace)
	defer s.work.Put(w)
	r := reach{question: q, frontier: &w.forward, limit: limit, visit: visit}
	if isArrival {
		return r.runBackward(ctx, from)
	}
	return r.runForward(ctx, from)
}

// reach is one search outwards on the graph itself.
type reach struct {
	*question
	frontier *frontier
	limit    uint32
	visit    func(edge uint32, start, end int64)
}

// whole is what an edge costs, of the cost that the limit is about.
func (q *question) whole(edge uint32) int64 { return int64(q.weigh.Edge(edge).Primary()) }

func (r *reach) runForward(ctx context.Context, from []Place) error {
	r.seedForward(r.frontier, from)
	return r.run(ctx, func(edge uint32, label overlay.Label) {
		end := int64(label.Weight.Primary())
		r.visit(edge, end-r.whole(edge), end)
		if end <= int64(r.limit) {
			r.relaxEdges(r.frontier, edge, label)
		}
	}, func(edge uint32, label overlay.Label) bool {
		return int64(label.Weight.Primary())-r.whole(edge) <= int64(r.limit)
	})
}

func (r *reach) runBackward(ctx context.Context, to []Place) error {
	r.seedBackward(r.frontier, to)
	for _, p := range to {
		before := int64(r.weigh.Part(p.Edge, p.Before.Duration, p.Before.Distance).Primary())
		r.visit(p.Edge, before, before-r.whole(p.Edge))
	}
	return r.run(ctx, func(edge uint32, label overlay.Label) {
		end := int64(label.Weight.Primary())
		r.visit(edge, end+r.whole(edge), end)
		if end+r.whole(edge) <= int64(r.limit) {
			r.relaxEdgesBackward(r.frontier, edge, label)
		}
	}, func(_ uint32, label overlay.Label) bool { return label.Weight.Primary() <= r.limit })
}

// run settles edges in the order of their labels: those that isWithin lets through.
func (r *reach) run(ctx context.Context, settle func(uint32, overlay.Label), isWithin func(uint32, overlay.Label) bool) error {
	for {
		edge, label, ok := r.frontier.settle()
		if !ok {
			return nil
		}
		if r.frontier.settled%stepsBetweenChecks == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if r.frontier.settled > maxReached {
			return route.ErrTooMuchWork
		}
		if isWithin(edge, label) {
			settle(edge, label)
		}
	}
}

// Found is a destination of Nearest by its index.
type Found struct {
	Index int
	Cost  Cost
}

// Nearest finds the destinations that are nearest to places by the weight of the profile, the nearest first and of equal ones the
// first: at most limit. It searches outwards on the graph. When few destinations are near it goes over to the overlay.
func (s *Searcher) Nearest(ctx context.Context, p route.Profile, from []Place, to [][]Place, limit int) ([]Found, error) {
	w := s.work.Get().(*workspace)
	defer s.work.Put(w)
	n := nearest{
		question: &question{Searcher: s, profile: p, weigh: overlay.NewWeigher(s.g, p), avoids: p.Avoid != 0}, frontier: &w.forward,
		ends: map[uint32][]end{}, best: map[int]overlay.Label{}, limit: min(limit, len(to)),
	}
	n.addEnds(from, to)
	isDone, err := n.run(ctx, from)
	if err != nil {
		return nil, err
	}
	if !isDone {
		return s.nearestByMatrix(ctx, p, from, to, limit)
	}
	return n.found(), nil
}

// end is a destination on an edge, and what it costs from the edge's tail.
type end struct {
	destination int
	before      overlay.Label
}

// nearest is one search for the nearest destinations.
type nearest struct {
	*question
	frontier *frontier
	ends     map[uint32][]end
	best     map[int]overlay.Label
	limit    int
}

func (n *nearest) addEnds(from []Place, to [][]Place) {
	for i, places := range to {
		if d := direct(&n.weigh, from, places); d.label.Weight != overlay.Unreachable {
			n.best[i] = d.label
		}
		for _, p := range places {
			before := n.weigh.PartLabel(p.Edge, p.Before.Duration, p.Before.Distance)
			for _, copied := range n.g.CopiesOf(p.Edge) {
				n.ends[copied] = append(n.ends[copied], end{i, before})
			}
		}
	}
}

// run searches until as many destinations as are wanted are nearer than all that is not searched yet. false says that it went too
// far for that.
func (n *nearest) run(ctx context.Context, from []Place) (isDone bool, err error) {
	n.seedForward(n.frontier, from)
	const stepsBetweenCounts = 256
	for {
		edge, label, ok := n.frontier.settle()
		if !ok {
			return true, nil
		}
		if n.frontier.settled%stepsBetweenCounts == 0 {
			switch {
			case n.countNearer(label) >= n.limit:
				return true, nil
			case n.frontier.settled > maxNearSearch:
				return false, nil
			case ctx.Err() != nil:
				return false, ctx.Err()
			}
		}
		n.lookAhead(edge, label)
		n.relaxEdges(n.frontier, edge, label)
	}
}

// lookAhead looks for destinations on the edges that follow an edge.
func (n *nearest) lookAhead(edge uint32, label overlay.Label) {
	first, last := n.g.OutEdges(n.g.Head[edge])
	for next := first; next < last; next++ {
		ends, ok := n.ends[next]
		if !ok {
			continue
		}
		turn := n.g.Turn(edge, next)
		if turn == graph.ForbiddenTurn {
			continue
		}
		for _, e := range ends {
			total := label.Add(n.weigh.TurnLabel(turn)).Add(e.before)
			if known, ok := n.best[e.destination]; !ok || total.IsLess(known) {
				n.best[e.destination] = total
			}
		}
	}
}

// countNearer is how many destinations cost less than a label.
func (n *nearest) countNearer(l overlay.Label) (count int) {
	if len(n.best) < n.limit {
		return 0
	}
	for _, b := range n.best {
		if b.IsLess(l) {
			count++
		}
	}
	return count
}

// found are the nearest destinations.
func (n *nearest) found() []Found {
	indexes := make([]int, 0, len(n.best))
	for i := range n.best {
		indexes = append(indexes, i)
	}
	slices.SortFunc(indexes, func(a, b int) int {
		switch {
		case n.best[a].IsLess(n.best[b]):
			return -1
		case n.best[b].IsLess(n.best[a]):
			return 1
		}
		return a - b
	})
	var all []Found
	for _, i := range indexes[:min(n.limit, len(indexes))] {
		all = append(all, Found{i, costOf(n.best[i], n.profile)})
	}
	return all
}

// nearestByMatrix finds the cost to every destination on the overlay.
func (s *Searcher) nearestByMatrix(ctx context.Context, p route.Profile, from []Place, to [][]Place, limit int) ([]Found, error) {
	labels, err := s.labels(ctx, p, [][]Place{from}, to)
	if err != nil {
		return nil, err
	}
	n := nearest{question: &question{profile: p}, best: map[int]overlay.Label{}, limit: limit}
	for i, l := range labels[0] {
		if l.Weight != overlay.Unreachable {
			n.best[i] = l
		}
	}
	return n.found(), nil
}
