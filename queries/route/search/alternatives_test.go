package search

import (
	"math/rand/v2"
	"slices"
	"testing"

	"lieudit/queries/route"
)

func TestAlternativesAreOtherPathsThatAreNotMuchLonger(t *testing.T) {
	t.Parallel()
	others := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		tw := newTown(t, r)
		s := New(tw.Graph, tw.topology, tw)
		p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
		from, to := tw.place(r), tw.place(r)
		best, err := s.Route(t.Context(), p, from, to)
		if err != nil {
			continue
		}
		all, err := s.Alternatives(t.Context(), p, from, to, 2)
		if err != nil || len(all) == 0 || len(all) > 3 || all[0].Cost != best.Cost {
			t.Fatalf("seed %d: %v, %v, want the best first: %v", seed, all, err, best.Cost)
		}
		for i, path := range all {
			others += min(i, 1)
			checkPath(t, tw, path, "alternative")
			if float64(path.Cost.Duration) > longestAlternative*float64(best.Cost.Duration) {
				t.Errorf("seed %d: %d is too long beside %d", seed, path.Cost.Duration, best.Cost.Duration)
			}
			for _, other := range all[:i] {
				if slices.Equal(path.Edges, other.Edges) {
					t.Errorf("seed %d: the same path twice", seed)
				}
			}
		}
	}
	if others < 20 {
		t.Errorf("only %d alternatives in all", others)
	}
}
