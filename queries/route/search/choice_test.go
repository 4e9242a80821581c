package search

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/overlay"
)

// choice is a pair of places, each alone and without its excess, and what the best path between them costs.
type choice struct {
	from, to    int
	lastResorts int
	weight      uint64 // primary, with the excess of both places
	cost        Cost
}

// listChoices searches a path between each two places by the plain algorithm.
func listChoices(tw *town, p route.Profile, from, to []Place) (all []choice) {
	for i, f := range from {
		for j, t := range to {
			c := choice{from: i, to: j}
			for _, end := range []Place{f, t} {
				excess := end.Excess.Duration
				if p.Optimization == route.Shortest {
					excess = end.Excess.Distance
				}
				c.weight += uint64(excess)
				if end.IsLastResort {
					c.lastResorts++
				}
			}
			start, end := withoutExcess([]Place{f}), withoutExcess([]Place{t})
			d := newDijkstra(tw.Graph, p, start)
			weight := d.to(start, end)
			if weight.Key >= overlay.NoPath {
				continue
			}
			c.weight += weight.Key >> 32
			c.cost = d.cost(weight)
			all = append(all, c)
		}
	}
	return all
}

// best are the choices that are as good as the best one.
func best(all []choice) (least []choice) {
	for _, c := range all {
		if len(least) > 0 {
			switch order := cmp.Or(cmp.Compare(c.lastResorts, least[0].lastResorts), cmp.Compare(c.weight, least[0].weight)); {
			case order > 0:
				continue
			case order < 0:
				least = least[:0]
			}
		}
		least = append(least, c)
	}
	return least
}

func TestARouteTakesThePlacesThatWeighLeastWithTheirExcessAndTellsWhatItCostsWithout(t *testing.T) {
	t.Parallel()
	eachTown(t, 300, 60, func(t *testing.T, tw *town, s *Searcher, p route.Profile, r *rand.Rand) {
		from, to := tw.manyChoices(r, 1+r.IntN(3)), tw.manyChoices(r, 1+r.IntN(3))
		matrix, err := s.Matrix(t.Context(), p, from, to)
		if err != nil {
			t.Fatal(err)
		}
		for i := range from {
			nearest, err := s.Nearest(t.Context(), p, from[i], to, len(to))
			if err != nil {
				t.Fatal(err)
			}
			for j := range to {
				want := best(listChoices(tw, p, from[i], to[j]))
				path, err := s.Route(t.Context(), p, from[i], to[j])
				if found := err == nil; found != (len(want) > 0) {
					t.Fatalf("route: %v, want one of %v", err, want)
				}
				isFound := slices.ContainsFunc(nearest, func(f Found) bool { return f.Index == j && f.Cost == path.Cost })
				if err != nil {
					path.Cost = Unreachable
				} else {
					checkChoice(t, tw, path, want)
				}
				if matrix[i][j] != path.Cost || isFound != (err == nil) {
					t.Errorf("matrix %v, nearest %v, route %v", matrix[i][j], nearest, path.Cost)
				}
			}
		}
	})
}

// withoutExcess returns places that all weigh alike.
func withoutExcess(places []Place) []Place {
	plain := slices.Clone(places)
	for i := range plain {
		plain[i].Excess, plain[i].IsLastResort = Cost{}, false
	}
	return plain
}

// checkChoice checks that a path leads between the places of one of the best choices, and costs what the path between these costs.
func checkChoice(t *testing.T, tw *town, path Path, want []choice) {
	t.Helper()
	i := slices.IndexFunc(want, func(c choice) bool { return c.from == path.From && c.to == path.To && c.cost == path.Cost })
	if i < 0 {
		t.Errorf("from %d to %d for %v, want one of %v", path.From, path.To, path.Cost, want)
		return
	}
	checkPath(t, tw, path, want[i].cost)
}
