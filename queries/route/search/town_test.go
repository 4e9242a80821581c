package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// town is an invented graph with cells and metrics.
type town struct {
	*graph.Graph
	topology *overlay.Topology
	metrics  map[route.Profile]*overlay.Metric
}

func (t *town) Metric(p route.Profile) (*overlay.Metric, bool) {
	m, ok := t.metrics[p]
	return m, ok
}

// newTown invents streets between junctions that are near each other: some one-way, some with copies, some turns forbidden, and all in
// one part or in several.
func newTown(t testing.TB, r *rand.Rand, junctions int) *town {
	t.Helper()
	points := scatter(r, junctions)
	arcs, original := drawStreets(r, points)
	seed := r.Uint64()
	tw := &town{metrics: map[route.Profile]*overlay.Metric{}}
	tw.Graph = graph.New(junctions, arcs, func(from, to uint32) uint8 {
		return turnCost(seed, original, from, to)
	})
	copies := map[uint32][]uint32{}
	for e, of := range original {
		if of != uint32(e) {
			copies[of] = append(copies[of], uint32(e))
		}
	}
	var lists []uint32
	for of, all := range copies {
		lists = append(append(lists, uint32(1+len(all)), of), all...)
	}
	tw.Copies, _ = graph.NewCopies(lists, tw.Edges())
	tw.Cells = divide(r, junctions)
	tw.customize(t, route.Avoid(r.IntN(8)), route.Avoid(r.IntN(8)))
	return tw
}

// customize computes the metrics of both optimizations: avoiding nothing and avoiding each of some sets.
func (tw *town) customize(t testing.TB, avoid ...route.Avoid) {
	t.Helper()
	var err error
	if tw.topology, err = overlay.NewTopology(tw.Graph); err != nil {
		t.Fatal(err)
	}
	for _, o := range []route.Optimization{route.Fastest, route.Shortest} {
		var base *overlay.Metric
		for _, a := range append([]route.Avoid{0}, avoid...) {
			p := route.Profile{Mode: route.Car, Optimization: o, Avoid: a}
			if a == 0 && base != nil {
				continue
			}
			m, err := overlay.Customize(t.Context(), tw.topology, tw.Graph, p, base)
			if err != nil {
				t.Fatal(err)
			}
			if base == nil {
				base = m
			}
			tw.metrics[p] = m
		}
	}
}

// scatter invents positions and numbers them by halving the town along one axis and then the other, so that those of any
// run of numbers are near each other.
func scatter(r *rand.Rand, n int) [][2]int {
	points := make([][2]int, n)
	for i := range points {
		points[i] = [2]int{r.IntN(1000), r.IntN(1000)}
	}
	var order func(points [][2]int, axis int)
	order = func(points [][2]int, axis int) {
		if len(points) < 2 {
			return
		}
		slices.SortFunc(points, func(a, b [2]int) int { return a[axis] - b[axis] })
		order(points[:len(points)/2], 1-axis)
		order(points[len(points)/2:], 1-axis)
	}
	order(points, 0)
	return points
}

// drawStreets returns edges sorted by their tails, and of each the one that it is a copy of, or itself.
func drawStreets(r *rand.Rand, points [][2]int) (arcs []graph.Arc, original []uint32) {
	type street struct {
		graph.Arc
		key, of int
	}
	var streets []street
	reach, parts, scale := 100+r.IntN(400), 1+r.IntN(3), 1+r.Uint32N(500)
	add := func(a graph.Arc) {
		of := len(streets)
		streets = append(streets, street{a, of, of})
		for r.IntN(12) == 0 {
			streets = append(streets, street{a, len(streets), of})
		}
	}
	for segment := range uint32(3 * len(points)) {
		a, b := r.IntN(len(points)), r.IntN(len(points))
		dx, dy := points[a][0]-points[b][0], points[a][1]-points[b][1]
		if dx*dx+dy*dy > reach*reach || points[a][0]*parts/1000 != points[b][0]*parts/1000 {
			continue
		}
		arc := graph.Arc{
			Tail: uint32(a), Head: uint32(b), Duration: r.Uint32N(scale), Distance: r.Uint32N(scale), Segment: 2 * segment,
			Flags: []graph.Flags{0, 0, 0, 1, 2, 4, 3, 7}[r.IntN(8)], Penalty: r.Uint32N(scale) * r.Uint32N(3),
		}
		add(arc)
		if r.IntN(4) > 0 {
			arc.Tail, arc.Head, arc.Segment = arc.Head, arc.Tail, arc.Segment+1
			add(arc)
		}
	}
	slices.SortStableFunc(streets, func(a, b street) int { return int(a.Tail) - int(b.Tail) })
	at := map[int]uint32{}
	for i, s := range streets {
		at[s.key] = uint32(i)
	}
	for _, s := range streets {
		arcs, original = append(arcs, s.Arc), append(original, at[s.of])
	}
	return arcs, original
}

// turnCost forbids some turns, and lets an edge turn onto an edge or onto one of its copies.
func turnCost(seed uint64, original []uint32, from, to uint32) uint8 {
	turn := rand.New(rand.NewPCG(seed, uint64(from)<<32|uint64(to)))
	onto := rand.New(rand.NewPCG(seed+1, uint64(from)<<32|uint64(original[to])))
	var copies []uint32
	for e, of := range original {
		if of == original[to] {
			copies = append(copies, uint32(e))
		}
	}
	if turn.IntN(7) == 0 || copies[onto.IntN(len(copies))] != to {
		return graph.ForbiddenTurn
	}
	return uint8(turn.IntN(50))
}

// divide cuts the junctions into runs, those into runs of runs, on one to five levels.
func divide(r *rand.Rand, junctions int) (c graph.Cells) {
	cut := func(n, longest int) (of []uint32, count int) {
		for left := 0; len(of) < n; left-- {
			if left == 0 {
				left = 1 + r.IntN(longest)
				count++
			}
			of = append(of, uint32(count-1))
		}
		return of, count
	}
	of, count := cut(junctions, 1+r.IntN(16))
	c.Of, c.Count = of, []int{count}
	for range r.IntN(5) {
		parent, n := cut(count, 4)
		c.Parent, c.Count = append(c.Parent, parent), append(c.Count, n)
		count = n
	}
	return c
}

// places returns a point on a street, for each direction in which it may be driven.
func (tw *town) places(r *rand.Rand) []Place {
	e := r.Uint32N(uint32(tw.Edges()))
	fraction := float64(r.IntN(5)) / 4
	places := []Place{PlaceOn(tw.Graph, tw.CopiesOf(e)[0], fraction)}
	first, end := tw.OutEdges(tw.Head[e])
	for twin := first; twin < end; twin++ {
		if tw.Segment[twin] == tw.Segment[e]^1 && r.IntN(4) > 0 {
			return append(places, PlaceOn(tw.Graph, tw.CopiesOf(twin)[0], 1-fraction))
		}
	}
	return places
}

// choices returns the places of some points, each point with its excess.
func (tw *town) choices(r *rand.Rand) (all []Place) {
	for range 1 + r.IntN(4) {
		excess, isLastResort := Cost{r.Uint32N(600), r.Uint32N(600)}, r.IntN(5) == 0
		for _, p := range tw.places(r) {
			p.Access, p.Excess, p.IsLastResort = uint32(len(all)), excess, isLastResort
			all = append(all, p)
		}
	}
	return all
}

func (tw *town) manyChoices(r *rand.Rand, n int) [][]Place {
	many := make([][]Place, n)
	for i := range many {
		many[i] = tw.choices(r)
	}
	return many
}

func (tw *town) manyPlaces(r *rand.Rand, n int) [][]Place {
	many := make([][]Place, n)
	for i := range many {
		many[i] = tw.places(r)
	}
	return many
}

// eachTown calls a function for invented towns of up to n junctions with each of their profiles.
func eachTown(t *testing.T, towns, size int, check func(t *testing.T, tw *town, s *Searcher, p route.Profile, r *rand.Rand)) {
	t.Helper()
	for seed := range uint64(towns) {
		r := rand.New(rand.NewPCG(seed, 1))
		tw := newTown(t, r, 2+r.IntN(size))
		if tw.Edges() == 0 {
			continue
		}
		s := New(tw.Graph, tw.topology, tw)
		for _, p := range profiles(tw) {
			t.Run(fmt.Sprintf("town %d %s avoid %d", seed, p.Optimization, p.Avoid), func(t *testing.T) { check(t, tw, s, p, r) })
		}
	}
}

// profiles lists the profiles of a town, always in the same order.
func profiles(tw *town) (all []route.Profile) {
	for _, o := range []route.Optimization{route.Fastest, route.Shortest} {
		for avoid := range route.Avoid(8) {
			p := route.Profile{Mode: route.Car, Optimization: o, Avoid: avoid}
			if _, ok := tw.metrics[p]; ok {
				all = append(all, p)
			}
		}
	}
	return all
}
