package tour

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// town invents costs between stops in a plane: the way back costs up to detour times more than the way there, and some pairs have
// no way at all.
func town(seed uint64, stops int, detour, blocked float64) [][]float64 {
	r := rand.New(rand.NewPCG(seed, uint64(stops)))
	x, y := make([]float64, stops), make([]float64, stops)
	for i := range x {
		x[i], y[i] = r.Float64()*3_000, r.Float64()*3_000
	}
	cost := make([][]float64, stops)
	for i := range cost {
		cost[i] = make([]float64, stops)
		for j := range cost[i] {
			if cost[i][j] = math.Hypot(x[i]-x[j], y[i]-y[j])*(1+detour*r.Float64()) + 20*r.Float64(); r.Float64() < blocked {
				cost[i][j] = -1
			}
		}
	}
	return cost
}

// brute finds the least cost by trying every order; it is infinite when none works.
func brute(cost [][]float64, o Options) float64 {
	least, order := math.Inf(1), make([]int, len(cost))
	for i := range order {
		order[i] = i
	}
	var try func(at int)
	try = func(at int) {
		if at == len(order) {
			if isAllowed(order, o) {
				least = min(least, lengthOf(cost, order, o))
			}
			return
		}
		for i := at; i < len(order); i++ {
			order[at], order[i] = order[i], order[at]
			try(at + 1)
			order[at], order[i] = order[i], order[at]
		}
	}
	try(0)
	return least
}

// isAllowed returns whether an order is one of all stops that the options allow.
func isAllowed(order []int, o Options) bool {
	sorted := slices.Sorted(slices.Values(order))
	for i, s := range sorted {
		if s != i {
			return false
		}
	}
	return (!o.FixedStart && !o.RoundTrip || order[0] == 0) && (!o.FixedEnd || order[len(order)-1] == len(order)-1)
}

// lengthOf is the cost of an order, infinite when a pair has no way.
func lengthOf(cost [][]float64, order []int, o Options) float64 {
	sum := 0.0
	for i := range order {
		next := i + 1
		if next == len(order) {
			if !o.RoundTrip {
				break
			}
			next = 0
		}
		c := cost[order[i]][order[next]]
		if c < 0 {
			return math.Inf(1)
		}
		sum += c
	}
	return sum
}

// allOptions are the eight combinations.
func allOptions() []Options {
	var all []Options
	for i := range 8 {
		all = append(all, Options{FixedStart: i&1 > 0, FixedEnd: i&2 > 0, RoundTrip: i&4 > 0})
	}
	return all
}

func TestFewStopsGetTheBestOrder(t *testing.T) {
	t.Parallel()
	for _, o := range allOptions() {
		for stops := 2; stops <= 7; stops++ {
			for seed := range uint64(12) {
				cost := town(seed, stops, 0.5, []float64{0, 0.2, 0.5}[seed%3])
				want := brute(cost, o)
				order, optimal := solve(t, cost, o)
				if math.IsInf(want, 1) {
					if order != nil || !optimal {
						t.Errorf("%+v, %d stops, seed %d: order %v, %v, want none, proven", o, stops, seed, order, optimal)
					}
					continue
				}
				if !optimal || !isAllowed(order, o) || math.Abs(lengthOf(cost, order, o)-want) > 1e-6 {
					t.Errorf("%+v, %d stops, seed %d: order %v costs %v, %v; want %v, proven", o, stops, seed, order,
						lengthOf(cost, order, o), optimal, want)
				}
			}
		}
	}
}

func TestLocalSearchFindsTheProvenOrderOfMiddlingTours(t *testing.T) {
	t.Parallel()
	for _, o := range allOptions() {
		for seed := range uint64(4) {
			p := newProblem(town(seed, 13, 0.6, 0.1), o)
			want := p.length(mustTrip(p.exact(goOn)))
			if want >= p.forbidden {
				continue
			}
			if got := p.length(mustTrip(p.improve(300_000, goOn))); got != want {
				t.Errorf("%+v, seed %d: local search found %d, the best is %d", o, seed, got, want)
			}
		}
	}
}

func TestManyStopsKeepTheirEndsAndComeOnce(t *testing.T) {
	t.Parallel()
	for _, o := range allOptions() {
		for _, stops := range []int{18, 30} {
			cost := town(1, stops, 0.5, 0.3)
			cost[stops-1][0] = 100
			order, optimal := solve(t, cost, o)
			if optimal || !isAllowed(order, o) || len(order) != stops || math.IsInf(lengthOf(cost, order, o), 1) {
				t.Errorf("%+v: order %v of %d stops, proven: %v", o, order, stops, optimal)
			}
			again, _ := solve(t, cost, o)
			if diff := cmp.Diff(order, again); diff != "" {
				t.Errorf("%+v: another order the second time: %s", o, diff)
			}
		}
	}
}

func TestAStopWithoutAnyWayMakesTheTourImpossible(t *testing.T) {
	t.Parallel()
	for _, stops := range []int{5, 30} {
		cost := town(1, stops, 0.5, 0)
		for j := range cost {
			cost[j][3] = -1
		}
		if order, optimal := solve(t, cost, Options{FixedStart: true}); order != nil || !optimal {
			t.Errorf("%d stops, one unreachable: order %v, %v", stops, order, optimal)
		}
		if order, _ := solve(t, cost, Options{}); order == nil || order[0] != 3 {
			t.Errorf("%d stops, one unreachable but free to be first: order %v", stops, order)
		}
	}
}

func TestTinyToursAreAnswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cost [][]float64
		want []int
	}{
		{nil, nil},
		{[][]float64{{0}}, []int{0}},
		{[][]float64{{0, 5}, {2, 0}}, []int{1, 0}},
		{[][]float64{{0, 0}, {0, 0}}, []int{0, 1}},
		{[][]float64{{0, math.Inf(1)}, {1e9, 0}}, []int{1, 0}},
	} {
		if got, optimal := solve(t, c.cost, Options{}); !optimal || cmp.Diff(c.want, got) != "" {
			t.Errorf("%v: order %v, proven: %v; want %v", c.cost, got, optimal, c.want)
		}
	}
}

// TestManyStopsAreNearTheBestKnown compares with a search of twice the steps.
func TestManyStopsAreNearTheBestKnown(t *testing.T) {
	t.Parallel()
	for _, stops := range []int{25, 48} {
		for seed := range uint64(1) {
			p := newProblem(town(seed, stops, 0.5, 0), Options{FixedStart: true})
			got, want := p.length(mustTrip(p.improve(stepsFor(len(p.cost)), goOn))), p.length(mustTrip(p.improve(2*stepsFor(len(p.cost)), goOn)))
			if float64(got) > float64(want)*1.005 {
				t.Errorf("%d stops, seed %d: %.2f %% over the best known", stops, seed, 100*(float64(got)/float64(want)-1))
			}
		}
	}
}

// mustTrip is a trip that was found without an error.
func mustTrip(trip []int, err error) []int {
	if err != nil {
		panic(err)
	}
	return trip
}

// solve is Solve of a request that nobody ends.
func solve(t testing.TB, cost [][]float64, o Options) (order []int, optimal bool) {
	t.Helper()
	order, optimal, err := Solve(cost, o, goOn)
	if err != nil {
		t.Fatal(err)
	}
	return order, optimal
}

func BenchmarkSolve(b *testing.B) {
	for _, stops := range []int{12, 15, 25, 48} {
		b.Run(fmt.Sprint(stops), func(b *testing.B) {
			cost := town(1, stops, 0.5, 0)
			for b.Loop() {
				solve(b, cost, Options{})
			}
		})
	}
}

func TestOfOrdersThatCostTheSameTheGivenOneIsTaken(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 10, MaxStops} {
		cost, want := make([][]float64, n), make([]int, n)
		for i := range cost {
			cost[i], want[i] = make([]float64, n), i
		}
		if got, _ := solve(t, cost, Options{}); !slices.Equal(got, want) {
			t.Errorf("%d stops: got %v", n, got)
		}
	}
}

// goOn is the Yield of a caller that nobody waits for.
func goOn(time.Duration) error { return nil }

// checkYields does work twice: whole, in which it must yield that often or more and tell of that much work, and with an error of the
// last of these times, which must end it.
func checkYields(t *testing.T, least int, leastWork time.Duration, work func(Yield) error) {
	t.Helper()
	times, sum := 0, time.Duration(0)
	if err := work(func(done time.Duration) error { times++; sum += done; return nil }); err != nil || times < least || sum < leastWork {
		t.Fatalf("%v after %v in %d pieces, want an answer after %v in %d", err, sum, times, leastWork, least)
	}
	t.Logf("%v in %d pieces", sum, times)
	ended, left := errors.New("the client left"), times
	err := work(func(time.Duration) error {
		if left--; left == 0 {
			return ended
		}
		return nil
	})
	if !errors.Is(err, ended) || left != 0 {
		t.Errorf("got %v, want that the work ends with the error", err)
	}
}

func TestLongToursGiveWay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stops, least int
		work         time.Duration
	}{{15, 20, 5 * time.Millisecond}, {MaxStops, 100, 50 * time.Millisecond}} {
		cost := town(1, c.stops, 0.6, 0)
		checkYields(t, c.least, c.work, func(yield Yield) error {
			_, _, err := Solve(cost, Options{}, yield)
			return err
		})
	}
}
