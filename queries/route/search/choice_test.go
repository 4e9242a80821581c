package search

import (
	"cmp"
	"errors"
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
	i := slices.IndexFunc(want, func(c choice) bool {
		return c.from == int(path.Start.Access) && c.to == int(path.End.Access) && c.cost == path.Cost
	})
	if i < 0 {
		t.Errorf("from %d to %d for %v, want one of %v", path.Start.Access, path.End.Access, path.Cost, want)
		return
	}
	checkPath(t, tw, path, want[i].cost)
}

func TestAJourneyLeavesEachStopFromWhereItArrivedAndWeighsLeastOfAllThatDo(t *testing.T) {
	t.Parallel()
	disagreed := 0
	eachTown(t, 200, 60, func(t *testing.T, tw *town, s *Searcher, p route.Profile, r *rand.Rand) {
		stops := tw.manyChoices(r, 3+r.IntN(2))
		var legs []Leg
		for i := range stops[1:] {
			legs = append(legs, Leg{stops[i], stops[i+1]})
		}
		want, found := leastJourney(tw, p, stops)
		paths, err := s.Through(t.Context(), p, legs)
		if found != (err == nil) || !found && !errors.Is(err, route.ErrNoRoute) {
			t.Fatalf("%v, want found %v", err, found)
		}
		got := uint64(0)
		for i, path := range paths {
			if i > 0 && paths[i-1].End.Access != path.Start.Access {
				t.Errorf("leg %d leaves from access %d, and the one before arrived at %d", i, path.Start.Access, paths[i-1].End.Access)
			}
			alone := listChoices(tw, p, PlacesOf(legs[i].From, path.Start.Access), PlacesOf(legs[i].To, path.End.Access))
			got += best(alone)[0].sum()
			if i > 0 && paths[i-1].End.Access != bestAccess(tw, p, legs[i]) {
				disagreed++
			}
		}
		if got != want {
			t.Errorf("it weighs %d, want %d", got, want)
		}
	})
	if disagreed == 0 {
		t.Error("no leg gave way to another")
	}
}

// sum is a weight that counts a last resort for more than any path.
func (c choice) sum() uint64 { return uint64(c.lastResorts)<<40 + c.weight }

// bestAccess is where the best path of a leg alone begins.
func bestAccess(tw *town, p route.Profile, leg Leg) uint32 {
	return leg.From[best(listChoices(tw, p, leg.From, leg.To))[0].from].Access
}

// leastJourney tries all accesses of all stops.
func leastJourney(tw *town, p route.Profile, stops [][]Place) (least uint64, found bool) {
	for _, access := range accessesOf(stops[0]) {
		from := PlacesOf(stops[0], access)
		if len(stops) == 1 {
			return 0, true
		}
		for _, next := range accessesOf(stops[1]) {
			leg := best(listChoices(tw, p, from, PlacesOf(stops[1], next)))
			if len(leg) == 0 {
				continue
			}
			rest, ok := leastJourney(tw, p, append([][]Place{PlacesOf(stops[1], next)}, stops[2:]...))
			if sum := leg[0].sum() + rest; ok && (!found || sum < least) {
				least, found = sum, true
			}
		}
	}
	return least, found
}
