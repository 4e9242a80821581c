package engine

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/osmpbf/osmtest"
	"lieudit/queries/route/tour"
)

// TestToursWithStopsInPocketsAreTheBestOfAllOrders compares tours on a real map, half of whose stops lie on roads that are only entered,
// only left, or neither, with every order of their own matrix.
func TestToursWithStopsInPocketsAreTheBestOfAllOrders(t *testing.T) {
	t.Parallel()
	e := open(t, osmtest.Path(t, "bondy"))
	r := rand.New(rand.NewPCG(11, 5))
	p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
	const tours = 500
	found := 0
	for range tours {
		stops := e.modes[p.Mode].drawAnywhere(r, 3+r.IntN(4))
		m, err := e.Matrix(t.Context(), route.MatrixQuery{Profile: p, Origins: stops, Destinations: stops})
		if err != nil {
			t.Fatal(err)
		}
		order, isOptimal, err := tour.Solve(m.Durations, tour.Options{FixedStart: true}, func(time.Duration) error { return nil })
		if err != nil || !isOptimal {
			t.Fatalf("%v: optimal %v, %v", stops, isOptimal, err)
		}
		want, got := leastOrder(m.Durations, []int{0}), math.Inf(1)
		if order != nil {
			found++
			got = durationOf(m.Durations, order)
		}
		if math.Abs(want-got) > 1e-6 && want != got {
			t.Errorf("%v: %v s, want %v", stops, got, want)
		}
	}
	if found < tours/4 {
		t.Errorf("only %d of %d tours have a way", found, tours)
	}
}

// leastOrder is the duration of the best order that begins with the given stops; infinite where none has a way.
func leastOrder(durations [][]float64, begun []int) float64 {
	if len(begun) == len(durations) {
		return durationOf(durations, begun)
	}
	least := math.Inf(1)
	for next := range durations {
		isTaken := false
		for _, stop := range begun {
			isTaken = isTaken || stop == next
		}
		if !isTaken {
			least = min(least, leastOrder(durations, append(begun[:len(begun):len(begun)], next)))
		}
	}
	return least
}

// durationOf is the duration of an order, infinite where a pair has no way.
func durationOf(durations [][]float64, order []int) (sum float64) {
	for i, stop := range order[1:] {
		d := durations[order[i]][stop]
		if d == route.Unreachable {
			return math.Inf(1)
		}
		sum += d
	}
	return sum
}
