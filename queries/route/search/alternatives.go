package search

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/overlay"
	"lieudit/queries/worker"
)

// The conditions for an admissible alternative, after Abraham, Delling, Goldberg and Werneck (Alternative Routes in Road Networks,
// 2010). Bounded stretch: it is not much longer than the best path. Limited sharing: it does not have too much in common with the
// paths chosen before it. Local optimality: it is the best path between any two of its points that are not too far apart, so no
// driver sees it as a detour.
const (
	maxStretch    = 1.25 // times the best path's primary weight
	maxShared     = 0.75 // of the best path's distance
	localShare    = 0.25 // of the best path's primary weight: how far apart those points are
	maxCandidates = 20   // that are unpacked and checked
)

// checkWork is the approximate time to unpack and check an edge of a candidate.
const checkWork = 200 * time.Nanosecond

// Alternatives finds at most n paths besides the given best one, and returns all of them, the best first. The others lead through
// edges that searches from both ends have seen. The same question always gets the same answer. The places are those of the access
// where the best path begins and of the one where it ends, without excess.
func (s *Searcher) Alternatives(ctx context.Context, p route.Profile, best Path, from, to []Place, n int) ([]Path, error) {
	a := alternatives{searcher: s, profile: p, from: from, to: to, chosen: []Path{best}}
	if n <= 0 || len(best.Edges) < 2 {
		return a.chosen, nil
	}
	var err error
	if a.query, err = s.begin(ctx, p, s.Budgets.Route); err != nil {
		return nil, err
	}
	defer s.release(a.query)
	if in, err := (areaSearch{a.query}).findInside(from, to); in != nil || err != nil {
		return a.chosen, err // others leave the area
	}
	sums := a.sums(best)
	a.best = uint64(sums[len(sums)-1].Key >> 32)
	if err := a.findCandidates(); err != nil {
		return nil, err
	}
	return a.chosen, a.choose(n)
}

// alternatives is the state of one Alternatives. Its query keeps both searches until all paths are chosen.
type alternatives struct {
	*query
	searcher   *Searcher
	profile    route.Profile
	from, to   []Place
	best       uint64 // primary weight of the best path
	candidates []candidate
	chosen     []Path // the best path first
}

// candidate is the best path through an edge that both searches have seen, a via path.
type candidate struct {
	meeting
	edge uint32
}

// scale is a share of the primary weight of the best path, as a key.
func (a *alternatives) scale(share float64) uint64 { return uint64(share*float64(a.best)) << 32 }

// findCandidates searches from both ends as far as the longest alternative leads, and lists the edges that both see: those of the
// best paths first, and one for each path. A path may differ from the best one near either end only, so each search goes the whole
// way.
func (a *alternatives) findCandidates() error {
	origins, destinations := a.origins(a.from), a.destinations(a.to)
	a.openSeeds(origins)
	a.openSeeds(destinations)
	forward, backward := &a.forward, &a.backward
	forward.begin(origins)
	backward.begin(destinations)
	limit := a.scale(maxStretch)
	forward.limit, backward.limit = limit, limit
	for len(forward.heap) > 0 || len(backward.heap) > 0 {
		m, err := a.step(len(forward.heap) > 0)
		if err != nil {
			return err
		}
		if m.Key <= limit {
			a.candidates = append(a.candidates, candidate{m, a.edgeOf(forward.nodes[m.forward].id)})
		}
	}
	slices.SortFunc(a.candidates, func(b, c candidate) int {
		return cmp.Or(cmp.Compare(b.Key, c.Key), cmp.Compare(b.Penalty, c.Penalty), cmp.Compare(b.edge, c.edge))
	})
	a.candidates = slices.CompactFunc(a.candidates, func(b, c candidate) bool { return b.Weight == c.Weight })
	return nil
}

// choose unpacks and checks one candidate after the other until enough are chosen.
func (a *alternatives) choose(n int) error {
	best := map[uint32]bool{}
	for _, e := range a.chosen[0].Edges {
		best[e] = true
	}
	unpacked := 0
	for _, c := range a.candidates {
		if len(a.chosen) > n || unpacked == maxCandidates {
			return nil
		}
		if best[c.edge] || a.sharedWeight(c, best) > a.scale(maxShared) {
			continue
		}
		unpacked++
		path, err := a.unpacker.path(c.meeting, a.from, a.to)
		if err != nil {
			return err
		}
		isGood, err := a.isAdmissible(path, c.edge)
		if err == nil {
			err = worker.Yield(a.budget.ctx, time.Duration(len(path.Edges))*checkWork)
		}
		if err != nil {
			return err
		}
		if isGood {
			a.chosen = append(a.chosen, path)
		}
	}
	return nil
}

// sharedWeight estimates the weight of the part that a candidate shares with the best path: up to the last shared edge before the
// meeting and from the first one after it. It needs no unpacking.
func (a *alternatives) sharedWeight(c candidate, best map[uint32]bool) (sum uint64) {
	for _, end := range []struct {
		f     *frontier
		label uint32
	}{{&a.forward, c.forward}, {&a.backward, c.backward}} {
		for label := end.label; label&isSeed == 0; label = end.f.nodes[label].parent {
			if best[a.edgeOf(end.f.nodes[label].id)] {
				sum += end.f.keys[label]
				break
			}
		}
	}
	return sum
}

// isAdmissible reports whether the path through an edge has no loop, limited sharing and local optimality. The limit of the
// searches already bounds its stretch.
func (a *alternatives) isAdmissible(p Path, via uint32) (bool, error) {
	if a.hasLoop(p) {
		return false, nil
	}
	for _, other := range a.chosen {
		if float64(a.sharedDistance(p, other)) > maxShared*float64(a.chosen[0].Cost.Distance) {
			return false, nil
		}
	}
	return a.isLocallyOptimal(p, via)
}

// hasLoop reports whether a path comes to a junction twice.
func (a *alternatives) hasLoop(p Path) bool {
	seen := make(map[uint32]bool, len(p.Edges))
	for _, e := range p.Edges[:len(p.Edges)-1] {
		if seen[a.graph.Head[e]] {
			return true
		}
		seen[a.graph.Head[e]] = true
	}
	return false
}

// sharedDistance is the length of a path along segments of another.
func (a *alternatives) sharedDistance(p, other Path) (sum uint32) {
	known := make(map[uint32]bool, len(other.Edges))
	for _, e := range other.Edges {
		known[a.graph.Segment[e]] = true
	}
	for _, e := range p.Edges {
		if known[a.graph.Segment[e]] {
			sum += a.graph.Distance[e]
		}
	}
	return sum
}

// sums are the weights of a path from its start to the end of each of its edges.
func (a *alternatives) sums(p Path) []overlay.Weight {
	sums := make([]overlay.Weight, len(p.Edges))
	sums[0] = a.part(p.Edges[0], p.Start.After)
	last := len(p.Edges) - 1
	for i := 1; i <= last; i++ {
		e := p.Edges[i]
		sums[i] = sums[i-1].Plus(a.weigher.Edge(e))
		if i == last {
			sums[i] = sums[i-1].Plus(a.part(e, p.End.Before))
		}
		sums[i].Key += a.weigher.Turn(a.graph.Turn(p.Edges[i-1], e))
	}
	return sums
}

// isLocallyOptimal reports whether the part of a path around one of its edges is the best path between its ends: the T-test of the
// literature. On both sides of the edge the part is at most as long as localShare says.
func (a *alternatives) isLocallyOptimal(p Path, via uint32) (bool, error) {
	sums, around := a.sums(p), a.scale(localShare)
	middle := slices.Index(p.Edges, via)
	first, last := middle, middle
	for first > 0 && sums[middle].Key-sums[first-1].Key <= around {
		first--
	}
	for last < len(sums)-2 && sums[last+1].Key-sums[middle].Key <= around {
		last++
	}
	if first == last {
		return true, nil
	}
	from, to := PlaceOn(a.graph, p.Edges[first], 1), PlaceOn(a.graph, p.Edges[last], 1)
	best, err := a.searcher.Route(a.budget.ctx, a.profile, []Place{from}, []Place{to})
	if errors.Is(err, route.ErrNoRoute) {
		return false, nil
	}
	return err == nil && best.Cost == a.cost(sums[last].Minus(sums[first])), err
}
