package search

import (
	"context"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// What makes a path an alternative, after the literature on alternative routes: it is not much longer than the best path, shares
// not too much with those chosen before it, and is itself the best path between any two of its points that are not too far
// apart, so that no driver would see a detour in it.
const (
	longestAlternative = 1.25 // of the best path's cost
	sharedAlternative  = 0.75 // of the best path's distance
	localAlternative   = 0.25 // of the best path's cost: how far apart those points are
	maxCandidates      = 40   // that are looked at closely
)

// Alternatives finds the best path and at most n others, the best first. It fails with route.ErrNoRoute. The others lead through
// edges that searches from both ends have seen; whether there are any is a matter of the network, not of luck: the same
// question has the same answer.
func (s *Searcher) Alternatives(ctx context.Context, p route.Profile, from, to []Place, n int) ([]Path, error) {
	best, err := s.Route(ctx, p, from, to)
	if err != nil || n == 0 || len(best.Edges) < 2 {
		return []Path{best}, err
	}
	q, err := s.newQuestion(p, append(s.heads(from), s.tails(to)...))
	if err != nil {
		return nil, err
	}
	w := s.work.Get().(*workspace)
	defer s.work.Put(w)
	candidates, err := q.findCandidates(ctx, w, from, to, best)
	if err != nil {
		return nil, err
	}
	chosen := []Path{best}
	for _, c := range candidates[:min(len(candidates), maxCandidates)] {
		if len(chosen) > n {
			break
		}
		if slices.ContainsFunc(chosen, func(p Path) bool { return slices.Contains(p.Edges, c.edge) }) {
			continue
		}
		path := q.path(w, c.edge, from, to, costOf(c.label, p))
		isGood, err := q.isAlternative(ctx, path, c.edge, chosen)
		if err != nil {
			return nil, err
		}
		if isGood {
			chosen = append(chosen, path)
		}
	}
	return chosen, nil
}

// candidate is an edge through which a path leads, with the label of the whole path.
type candidate struct {
	edge  uint32
	label overlay.Label
}

// findCandidates searches from both ends farther than the best path needs, and returns the edges that both have seen, those of
// the best paths first.
func (q *question) findCandidates(ctx context.Context, w *workspace, from, to []Place, best Path) (all []candidate, err error) {
	limit := q.scale(best, longestAlternative)
	for _, side := range []struct {
		f     *frontier
		seed  func(*frontier, []Place)
		ends  []Place
		relax func(*frontier, uint32, overlay.Label)
	}{{&w.forward, q.seedForward, from, q.relaxForward}, {&w.backward, q.seedBackward, to, q.relaxBackward}} {
		side.seed(side.f, side.ends)
		for {
			edge, label, ok := side.f.settle()
			if !ok || label.Weight.Primary() > limit {
				break
			}
			if side.f.settled%stepsBetweenChecks == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if n, ok := w.forward.get(edge); ok && side.f == &w.backward && n.isSettled {
				if total := label.Add(n.label); total.Weight.Primary() <= limit {
					all = append(all, candidate{edge, total})
				}
			}
			side.relax(side.f, edge, label)
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		switch {
		case a.label.IsLess(b.label):
			return -1
		case b.label.IsLess(a.label):
			return 1
		}
		return int(a.edge) - int(b.edge)
	})
	return slices.CompactFunc(all, func(a, b candidate) bool { return a.label == b.label }), nil // edges of one path
}

// scale is a share of the primary weight of a path.
func (q *question) scale(p Path, share float64) uint32 {
	return uint32(min(share*float64(q.weightOf(p, 0, len(p.Edges)).Weight.Primary()), float64(^uint32(0))))
}

// weightOf is the label of the edges of a path from an index up to another, with the turns between them.
func (q *question) weightOf(p Path, from, to int) (sum overlay.Label) {
	for i := from; i < to; i++ {
		if i > from {
			sum = sum.Add(q.weigh.TurnLabel(q.g.Turn(p.Edges[i-1], p.Edges[i])))
		}
		switch i {
		case 0:
			sum = sum.Add(q.weigh.PartLabel(p.Edges[i], p.Start.After.Duration, p.Start.After.Distance))
		case len(p.Edges) - 1:
			sum = sum.Add(q.weigh.PartLabel(p.Edges[i], p.End.Before.Duration, p.End.Before.Distance))
		default:
			sum = sum.Add(q.weigh.Label(p.Edges[i]))
		}
	}
	return sum
}

// isAlternative looks closely at the path through an edge.
func (q *question) isAlternative(ctx context.Context, p Path, via uint32, chosen []Path) (bool, error) {
	if hasLoop(q.g, p) {
		return false, nil
	}
	for _, other := range chosen {
		if float64(q.sharedDistance(p, other)) > sharedAlternative*float64(chosen[0].Cost.Distance) {
			return false, nil
		}
	}
	return q.isLocallyBest(ctx, p, slices.Index(p.Edges, via), q.scale(chosen[0], localAlternative))
}

// hasLoop reports whether a path comes to a junction twice.
func hasLoop(g *graph.Graph, p Path) bool {
	seen := make(map[uint32]bool, len(p.Edges))
	for _, e := range p.Edges[:len(p.Edges)-1] {
		if seen[g.Head[e]] {
			return true
		}
		seen[g.Head[e]] = true
	}
	return false
}

// sharedDistance is the distance that two paths go along the same edges.
func (q *question) sharedDistance(a, b Path) (sum uint32) {
	known := make(map[uint32]bool, len(b.Edges))
	for _, e := range b.Edges {
		known[q.g.Segment[e]] = true
	}
	for _, e := range a.Edges {
		if known[q.g.Segment[e]] {
			sum += q.g.Distance[e]
		}
	}
	return sum
}

// isLocallyBest reports whether the part of a path around one of its edges is the best path between its ends. The part is as long
// as a weight on either side.
func (q *question) isLocallyBest(ctx context.Context, p Path, via int, around uint32) (bool, error) {
	first, last := via, via
	for first > 1 && q.weightOf(p, first, via).Weight.Primary() < around {
		first--
	}
	for last < len(p.Edges)-2 && q.weightOf(p, via, last).Weight.Primary() < around {
		last++
	}
	if first < 1 || last > len(p.Edges)-2 || first >= last {
		return true, nil
	}
	from := []Place{PlaceOn(q.g, p.Edges[first], 0)}
	to := []Place{PlaceOn(q.g, p.Edges[last], 1)}
	best, err := q.Searcher.Route(ctx, q.profile, from, to)
	if err != nil {
		return false, err
	}
	part := q.weightOf(p, first, last+1)
	return costOf(part, q.profile) == best.Cost, nil
}
