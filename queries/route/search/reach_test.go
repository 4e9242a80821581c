package search

import (
	"math/rand/v2"
	"slices"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

func TestReachVisitsWhatDijkstraReachesWithinTheLimit(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 2))
		tw := newTown(t, r)
		s := New(tw.Graph, tw.topology, tw)
		for p := range tw.metrics {
			from, limit := tw.place(r), r.Uint32N(3000)
			for _, isArrival := range []bool{false, true} {
				checkReach(t, tw, s, p, from, limit, isArrival, seed)
			}
		}
	}
}

// checkReach compares what is visited with Dijkstra's costs to the head, or from the tail, of every edge.
func checkReach(t *testing.T, tw *town, s *Searcher, p route.Profile, from []Place, limit uint32, isArrival bool, seed uint64) {
	t.Helper()
	got := map[uint32]int64{}
	if err := s.Reach(t.Context(), p, from, limit, isArrival, func(edge uint32, start, end int64) {
		got[edge] = end
		if isArrival {
			got[edge] = start
		}
	}); err != nil {
		t.Fatal(err)
	}
	for e := range uint32(tw.Edges()) {
		if slices.ContainsFunc(from, func(p Place) bool { return p.Edge == e }) {
			continue // its own edge is reached in part
		}
		weigh := overlay.NewWeigher(tw.Graph, p)
		whole := int64(weigh.Edge(e).Primary())
		label := dijkstra(tw.Graph, p, from, []Place{PlaceOn(tw.Graph, e, 1)})
		if isArrival {
			label = dijkstra(tw.Graph, p, []Place{PlaceOn(tw.Graph, e, 0)}, from)
		}
		want, found := int64(label.Weight.Primary()), label.Weight != overlay.Unreachable
		if isWithin := found && want-whole <= int64(limit); isWithin != hasKey(got, e) || isWithin && got[e] != want {
			t.Errorf("seed %d, %v, arrival %v: edge %d costs %d, found %v, limit %d; visited %v with %d", seed, p, isArrival, e, want, found, limit, hasKey(got, e), got[e])
		}
	}
}

func hasKey(m map[uint32]int64, key uint32) bool {
	_, ok := m[key]
	return ok
}

func TestNearestAreThoseOfDijkstra(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		tw := newTown(t, r)
		s := New(tw.Graph, tw.topology, tw)
		p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
		from := tw.place(r)
		to := make([][]Place, 12)
		var want []Found
		for i := range to {
			to[i] = tw.place(r)
			if cost, ok := Dijkstra(tw.Graph, p, from, to[i]); ok {
				want = append(want, Found{i, cost})
			}
		}
		slices.SortStableFunc(want, func(a, b Found) int { return compareCosts(a.Cost, b.Cost) })
		want = want[:min(5, len(want))]
		for name, find := range map[string]func() ([]Found, error){
			"outwards":       func() ([]Found, error) { return s.Nearest(t.Context(), p, from, to, 5) },
			"on the overlay": func() ([]Found, error) { return s.nearestByMatrix(t.Context(), p, from, to, 5) },
		} {
			if got, err := find(); err != nil || !slices.Equal(got, want) {
				t.Errorf("seed %d, %s: %v, %v, want %v", seed, name, got, err, want)
			}
		}
	}
}

func compareCosts(a, b Cost) int {
	if a.Duration != b.Duration {
		return int(a.Duration) - int(b.Duration)
	}
	return int(a.Distance) - int(b.Distance)
}

func TestARouteMayEndOnACopyOfAnEdge(t *testing.T) {
	t.Parallel()
	// 0 -> 1 -> 2, where the second edge may be entered by its copy alone.
	g := graph.New(3, []graph.Arc{
		{Tail: 0, Head: 1, Duration: 100, Distance: 100},
		{Tail: 1, Head: 2, Duration: 200, Distance: 200, Segment: 2},
		{Tail: 1, Head: 2, Duration: 200, Distance: 200, Segment: 2},
	}, func(_, to uint32) uint8 {
		if to == 1 {
			return graph.ForbiddenTurn
		}
		return 0
	})
	g.Copies = map[uint32][]uint32{1: {1, 2}, 2: {1, 2}}
	p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
	got, found := Dijkstra(g, p, []Place{PlaceOn(g, 0, 0.5)}, []Place{PlaceOn(g, 1, 0.5)})
	if want := (Cost{150, 150}); !found || got != want {
		t.Errorf("got %v, %v, want %v", got, found, want)
	}
}
