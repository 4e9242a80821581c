package search

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
	"lieudit/queries/worker"
)

func TestRoutesAndMatricesAreThoseOfDijkstra(t *testing.T) {
	t.Parallel()
	eachTown(t, 500, 90, func(t *testing.T, tw *town, s *Searcher, p route.Profile, r *rand.Rand) {
		from, to := tw.manyPlaces(r, 1+r.IntN(4)), tw.manyPlaces(r, 1+r.IntN(4))
		matrix, err := s.Matrix(t.Context(), p, from, to)
		if err != nil {
			t.Fatal(err)
		}
		for i := range from {
			for j := range to {
				want, found := Dijkstra(tw.Graph, p, from[i], to[j])
				path, err := s.Route(t.Context(), p, from[i], to[j])
				if !found {
					want = Unreachable
				}
				if matrix[i][j] != want {
					t.Errorf("matrix %d × %d: %v, want %v", len(from), len(to), matrix[i][j], want)
				}
				if found != (err == nil) || !found && !errors.Is(err, route.ErrNoRoute) {
					t.Errorf("route: %v, want found %v", err, found)
				}
				if err == nil {
					checkPath(t, tw, path, want)
				}
			}
		}
	})
}

// checkPath checks that the edges of a path join, and that their cost is the one reported and wanted.
func checkPath(t *testing.T, tw *town, p Path, want Cost) {
	t.Helper()
	var sum Cost
	last := len(p.Edges) - 1
	for i, e := range p.Edges {
		part := Cost{tw.Duration[e], tw.Distance[e]}
		switch {
		case last == 0:
			part = Cost{p.End.Before.Duration - p.Start.Before.Duration, p.End.Before.Distance - p.Start.Before.Distance}
		case i == 0:
			part = p.Start.After
		case i == last:
			part = p.End.Before
		}
		if i > 0 {
			turn := tw.Turn(p.Edges[i-1], e)
			if tw.Head[p.Edges[i-1]] != tw.Tail[e] || turn == graph.ForbiddenTurn {
				t.Errorf("edges %d and %d do not join", p.Edges[i-1], e)
			}
			sum.Duration += uint32(turn) * graph.DurationUnit / graph.TurnUnit
		}
		sum.Duration, sum.Distance = sum.Duration+part.Duration, sum.Distance+part.Distance
	}
	if p.Edges[0] != p.Start.Edge || !slices.Contains(tw.CopiesOf(p.End.Edge), p.Edges[last]) {
		t.Errorf("path %v does not lead from %d to %d", p.Edges, p.Start.Edge, p.End.Edge)
	}
	if sum != p.Cost || p.Cost != want {
		t.Errorf("the edges cost %v, told is %v, want %v", sum, p.Cost, want)
	}
}

func TestNearestAreThoseOfDijkstra(t *testing.T) {
	t.Parallel()
	eachTown(t, 300, 90, func(t *testing.T, tw *town, s *Searcher, p route.Profile, r *rand.Rand) {
		from, to, limit := tw.places(r), tw.manyPlaces(r, 12), r.IntN(14)
		type ranked struct {
			Found
			overlay.Weight
		}
		var want []ranked
		d := newDijkstra(tw.Graph, p, from)
		for i := range to {
			if weight := d.to(from, to[i]); weight.Key < overlay.NoPath {
				cost := d.cost(weight)
				if p.Avoid == 0 {
					weight = overlay.Weight{Key: uint64(cost.Duration)<<32 | uint64(cost.Distance)}
					if p.Optimization == route.Shortest {
						weight.Key = uint64(cost.Distance)<<32 | uint64(cost.Duration)
					}
				}
				want = append(want, ranked{Found{i, cost}, weight})
			}
		}
		slices.SortStableFunc(want, func(a, b ranked) int {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Weight.Penalty, b.Weight.Penalty))
		})
		want = want[:min(limit, len(want))]
		got, err := s.Nearest(t.Context(), p, from, to, limit)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%v, %v, want %v", got, err, want)
		}
		for i := range got {
			if got[i] != want[i].Found {
				t.Errorf("%d: %v, want %v", i, got[i], want[i])
			}
		}
	})
}

// ends are what an edge was visited with.
type ends struct{ start, end int64 }

// reachOf returns what Reach visits, without the visits to the edges of the places themselves.
func reachOf(t *testing.T, s *Searcher, p route.Profile, from []Place, limit uint32, isArrival bool) map[uint32]ends {
	t.Helper()
	got, visits := map[uint32]ends{}, 0
	err := s.Reach(t.Context(), p, from, limit, isArrival, func(edge uint32, start, end int64) {
		if visits++; visits <= len(from) {
			return
		}
		if _, ok := got[edge]; ok {
			t.Errorf("edge %d is visited twice", edge)
		}
		got[edge] = ends{start, end}
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestReachVisitsWhatIsWithinTheLimitAlongTheChosenPaths(t *testing.T) {
	t.Parallel()
	eachTown(t, 200, 90, func(t *testing.T, tw *town, s *Searcher, p route.Profile, r *rand.Rand) {
		from, limit := tw.choices(r), r.Uint32N(4000)
		departures := reachOf(t, s, p, from, limit, false)
		arrivals := reachOf(t, s, p, from, limit, true)
		departs, arrives := gaugesFrom(tw.Graph, p, from), gaugesTo(tw.Graph, p, from)
		for e := range uint32(tw.Edges()) {
			whole := wholeOf(tw.Graph, p, e).cost
			start, end := departs[e].cost, arrives[e].cost
			compareReach(t, "departure", e, departures, start <= int64(limit), ends{start, start + whole})
			compareReach(t, "arrival", e, arrivals, end <= int64(limit), ends{end + whole, end})
		}
	})
}

// chosen is what a path weighs for the choice and what it costs: the plain form of gauge, to test it.
type chosen struct{ choice, cost int64 }

func (c chosen) plus(o chosen) chosen { return chosen{c.choice + o.choice, c.cost + o.cost} }

func (c chosen) isLess(o chosen) bool {
	return c.choice < o.choice || c.choice == o.choice && c.cost < o.cost
}

var notReached = chosen{1 << 60, 1 << 60}

// wholeOf is what an edge weighs and costs, from the columns of the graph.
func wholeOf(g *graph.Graph, p route.Profile, e uint32) chosen {
	c := chosen{int64(g.Distance[e]), int64(g.Distance[e])}
	if p.Optimization == route.Fastest {
		c = chosen{int64(g.Duration[e]), int64(g.Duration[e])}
		if len(g.Penalty) > 0 {
			c.choice += int64(g.Penalty[e])
		}
	}
	if route.Avoid(g.Flags[e])&p.Avoid != 0 {
		return chosen{c.choice * route.AvoidFactor, c.cost * route.AvoidFactor}
	}
	return c
}

// plainTurn is the same of a turn.
func plainTurn(p route.Profile, turn uint8) chosen {
	if p.Optimization == route.Shortest {
		return chosen{}
	}
	cost := int64(turn) * graph.DurationUnit / graph.TurnUnit
	return chosen{cost, cost}
}

// gaugesFrom are the gauges of the best paths from places to the tail of each edge, found by relaxing all turns until nothing changes.
func gaugesFrom(g *graph.Graph, p route.Profile, from []Place) []chosen {
	best := slices.Repeat([]chosen{notReached}, g.Edges())
	relax := func(e uint32, at chosen) (isBetter bool) {
		first, end := g.OutEdges(g.Head[e])
		for next := first; next < end; next++ {
			if turn := g.Turn(e, next); turn != graph.ForbiddenTurn {
				if to := at.plus(plainTurn(p, turn)); to.isLess(best[next]) {
					best[next], isBetter = to, true
				}
			}
		}
		return isBetter
	}
	for _, place := range from {
		relax(place.Edge, partOf(g, p, place.Edge, place.After).plus(excessOf(p, place)))
	}
	settleAll(g, func(e uint32) bool {
		return best[e] != notReached && relax(e, best[e].plus(wholeOf(g, p, e)))
	})
	return best
}

// gaugesTo are the gauges of the best paths from the head of each edge to places.
func gaugesTo(g *graph.Graph, p route.Profile, to []Place) []chosen {
	best := slices.Repeat([]chosen{notReached}, g.Edges())
	relax := func(e uint32, at chosen) (isBetter bool) {
		for _, before := range g.InEdges(g.Tail[e]) {
			if turn := g.Turn(before, e); turn != graph.ForbiddenTurn {
				if from := at.plus(plainTurn(p, turn)); from.isLess(best[before]) {
					best[before], isBetter = from, true
				}
			}
		}
		return isBetter
	}
	for _, place := range to {
		for _, e := range g.CopiesOf(place.Edge) {
			relax(e, partOf(g, p, place.Edge, place.Before).plus(excessOf(p, place)))
		}
	}
	settleAll(g, func(e uint32) bool {
		return best[e] != notReached && relax(e, best[e].plus(wholeOf(g, p, e)))
	})
	return best
}

// settleAll relaxes every edge until nothing changes.
func settleAll(g *graph.Graph, relax func(e uint32) bool) {
	for isBetter := true; isBetter; {
		isBetter = false
		for e := range uint32(g.Edges()) {
			isBetter = relax(e) || isBetter
		}
	}
}

// excessOf is what it weighs to choose a place.
func excessOf(p route.Profile, place Place) (c chosen) {
	c.choice = int64(place.Excess.Duration)
	if p.Optimization == route.Shortest {
		c.choice = int64(place.Excess.Distance)
	}
	if place.IsLastResort {
		c.choice += 1 << 27
	}
	return c
}

// partOf is the gauge of a part of an edge.
func partOf(g *graph.Graph, p route.Profile, e uint32, c Cost) chosen {
	part := chosen{int64(c.Distance), int64(c.Distance)}
	if p.Optimization == route.Fastest {
		part = chosen{int64(c.Duration), int64(c.Duration)}
		if len(g.Penalty) > 0 && g.Duration[e] > 0 {
			part.choice += int64(g.Penalty[e]) * int64(c.Duration) / int64(g.Duration[e])
		}
	}
	if route.Avoid(g.Flags[e])&p.Avoid != 0 {
		return chosen{part.choice * route.AvoidFactor, part.cost * route.AvoidFactor}
	}
	return part
}

func compareReach(t *testing.T, name string, edge uint32, got map[uint32]ends, isWithin bool, want ends) {
	t.Helper()
	if at, ok := got[edge]; ok != isWithin || ok && at != want {
		t.Errorf("%s: edge %d visited %v with %v, want %v with %v", name, edge, ok, at, isWithin, want)
	}
}

func TestReachBeginsWithTheEdgesOfThePlaces(t *testing.T) {
	t.Parallel()
	g := graph.New(2, []graph.Arc{{Tail: 0, Head: 1, Duration: 100, Distance: 10}}, nil)
	g.Cells = graph.Cells{Of: []uint32{0, 0}, Count: []int{1}}
	tw := &town{Graph: g, metrics: map[route.Profile]*overlay.Metric{}}
	tw.customize(t)
	s := New(g, tw.topology, tw)
	for isArrival, want := range map[bool]ends{false: {-25, 75}, true: {25, -75}} {
		var got ends
		visit := func(_ uint32, start, end int64) { got = ends{start, end} }
		err := s.Reach(t.Context(), route.Profile{Mode: route.Car}, []Place{PlaceOn(g, 0, 0.25)}, 50, isArrival, visit)
		if err != nil || got != want {
			t.Errorf("arrival %v: %v, %v, want %v", isArrival, got, err, want)
		}
	}
}

func TestAlternativesAreOtherPathsThatAreNotMuchLonger(t *testing.T) {
	t.Parallel()
	tw := newGrid(t, 6)
	s, p := New(tw.Graph, tw.topology, tw), route.Profile{Mode: route.Car, Optimization: route.Fastest}
	r := rand.New(rand.NewPCG(1, 1))
	others := 0
	for range 50 {
		from, to := tw.places(r), tw.places(r)
		best, err := s.Route(t.Context(), p, from, to)
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.Alternatives(t.Context(), p, best, from, to, 2)
		again, _ := s.Alternatives(t.Context(), p, best, from, to, 2)
		if err != nil || len(all) == 0 || len(all) > 3 || all[0].Cost != best.Cost || len(again) != len(all) {
			t.Fatalf("%v, %v, want the best first: %v", all, err, best.Cost)
		}
		others += len(all) - 1
		for i, path := range all {
			checkPath(t, tw, path, path.Cost)
			if !slices.Equal(path.Edges, again[i].Edges) {
				t.Error("the same question has another answer")
			}
			checkAlternative(t, tw, path, all[:i])
		}
	}
	if others < 20 {
		t.Errorf("only %d alternatives in all", others)
	}
}

// checkAlternative checks that a path is not much longer than the best and shares not too much with those before it.
func checkAlternative(t *testing.T, tw *town, path Path, before []Path) {
	t.Helper()
	for _, other := range before {
		a := alternatives{query: &query{graph: tw.Graph}}
		if float64(a.sharedDistance(path, other)) > maxShared*float64(before[0].Cost.Distance) {
			t.Errorf("%v shares too much with %v", path.Edges, other.Edges)
		}
		if float64(path.Cost.Duration) > maxStretch*float64(before[0].Cost.Duration) || path.Cost.Duration < other.Cost.Duration {
			t.Errorf("%v is too long beside %v, or not in order", path.Cost, other.Cost)
		}
	}
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
	g.Copies, _ = graph.NewCopies([]uint32{2, 1, 2}, g.Edges())
	g.Cells = graph.Cells{Of: []uint32{0, 1, 2}, Count: []int{3}}
	tw := &town{Graph: g, metrics: map[route.Profile]*overlay.Metric{}}
	tw.customize(t)
	p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
	got, err := New(g, tw.topology, tw).Route(t.Context(), p, []Place{PlaceOn(g, 0, 0.5)}, []Place{PlaceOn(g, 1, 0.5)})
	if err != nil || got.Cost != (Cost{150, 150}) || !slices.Equal(got.Edges, []uint32{0, 2}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// everyCall is one call of each method between drawn places.
func everyCall(tw *town) map[string]func(*Searcher, context.Context) error {
	p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
	r := rand.New(rand.NewPCG(1, 1))
	from, to := tw.manyPlaces(r, 20), tw.manyPlaces(r, 20)
	return map[string]func(*Searcher, context.Context) error{
		"matrix": func(s *Searcher, ctx context.Context) error {
			_, err := s.Matrix(ctx, p, from, to)
			return err
		},
		"nearest": func(s *Searcher, ctx context.Context) error {
			_, err := s.Nearest(ctx, p, slices.Concat(from...), to, 20)
			return err
		},
		"reach": func(s *Searcher, ctx context.Context) error {
			return s.Reach(ctx, p, slices.Concat(from...), 1<<30, false, func(uint32, int64, int64) {})
		},
		"route": func(s *Searcher, ctx context.Context) error {
			_, err := s.Route(ctx, p, from[0], to[1])
			return err
		},
		"alternatives": func(s *Searcher, ctx context.Context) error {
			best, err := s.Route(ctx, p, from[0], to[1])
			if err == nil {
				_, err = s.Alternatives(ctx, p, best, from[0], to[1], 2)
			}
			return err
		},
	}
}

// searchPlaces is a pool with a number of free places for searches.
type searchPlaces struct{ free, least int }

var errNoPlace = errors.New("no place for a search")

// Exchange implements worker.Pool.
func (p *searchPlaces) Exchange(_ context.Context, _ string, _ int64, giveBack func()) (func(), error) {
	giveBack()
	if p.free == 0 {
		return nil, errNoPlace
	}
	p.free--
	p.least = min(p.least, p.free)
	return func() { p.free++ }, nil
}

func TestEachCallTakesOnePlaceForASearchAndGivesItBack(t *testing.T) {
	t.Parallel()
	tw := newTown(t, rand.New(rand.NewPCG(5, 5)), 400)
	for name, call := range everyCall(tw) {
		s := New(tw.Graph, tw.topology, tw)
		for _, places := range []int{0, 1} {
			p := &searchPlaces{places, places}
			ctx, task := worker.WithTask(t.Context(), worker.Pools{Workers: &searchPlaces{1, 1}, Searches: p}, "a")
			err := call(s, ctx)
			task.Release()
			if isRefused := errors.Is(err, errNoPlace); isRefused != (places == 0) || !isRefused && err != nil && !errors.Is(err, route.ErrNoRoute) {
				t.Errorf("%s with %d places: %v", name, places, err)
			}
			if p.free != places || p.least != 0 {
				t.Errorf("%s with %d places: %d are free afterwards, and %d were at least", name, places, p.free, p.least)
			}
		}
	}
}

func TestEachCallEndsWhenItsBudgetIsSpentAndWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	tw := newTown(t, rand.New(rand.NewPCG(5, 5)), 400)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range everyCall(tw) {
		s := New(tw.Graph, tw.topology, tw)
		if err := call(s, ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
		s.Budgets = Budgets{}
		if err := call(s, t.Context()); !errors.Is(err, route.ErrTooMuchWork) {
			t.Errorf("%s without a budget: %v", name, err)
		}
	}
}

func TestAProfileWithoutMetricIsUnsupported(t *testing.T) {
	t.Parallel()
	tw := newTown(t, rand.New(rand.NewPCG(5, 5)), 40)
	tw.metrics = nil
	_, err := New(tw.Graph, tw.topology, tw).Route(t.Context(), route.Profile{Mode: route.Car}, tw.places(rand.New(rand.NewPCG(1, 1))), nil)
	if !errors.Is(err, route.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
