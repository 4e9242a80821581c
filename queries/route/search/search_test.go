package search

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// town is a random graph with cells and metrics.
type town struct {
	*graph.Graph
	topology *overlay.Topology
	metrics  map[route.Profile]*overlay.Metric
}

func (t *town) Metric(p route.Profile) (*overlay.Metric, bool) {
	m, ok := t.metrics[p]
	return m, ok
}

// newTown invents junctions on a line of cells: random edges to junctions nearby, some one-way, some turns forbidden.
func newTown(t *testing.T, r *rand.Rand) *town {
	t.Helper()
	junctions := 2 + r.IntN(60)
	var arcs []graph.Arc
	segment := uint32(0)
	for range junctions + r.IntN(2*junctions) {
		a := r.IntN(junctions)
		b := min(max(a+r.IntN(9)-4, 0), junctions-1)
		arc := graph.Arc{Tail: uint32(a), Head: uint32(b), Duration: 1 + r.Uint32N(500), Distance: 1 + r.Uint32N(500), Flags: graph.Flags(r.IntN(8)), Segment: segment * 2}
		arcs = append(arcs, arc)
		if r.IntN(4) > 0 {
			arc.Tail, arc.Head, arc.Segment = arc.Head, arc.Tail, arc.Segment+1
			arcs = append(arcs, arc)
		}
		segment++
	}
	slices.SortStableFunc(arcs, func(a, b graph.Arc) int { return int(a.Tail) - int(b.Tail) })
	g := graph.New(junctions, arcs, func(from, to uint32) uint8 {
		if r.IntN(6) == 0 {
			return graph.ForbiddenTurn
		}
		return uint8(r.IntN(50))
	})
	g.Cells = randomCells(junctions, r)
	tw := &town{Graph: g, metrics: map[route.Profile]*overlay.Metric{}}
	var err error
	if tw.topology, err = overlay.NewTopology(g); err != nil {
		t.Fatal(err)
	}
	for _, o := range []route.Optimization{route.Fastest, route.Shortest} {
		var base *overlay.Metric
		for _, avoid := range []route.Avoid{0, route.Tolls, route.Motorways | route.Ferries} {
			p := route.Profile{Mode: route.Car, Optimization: o, Avoid: avoid}
			m, err := overlay.Customize(t.Context(), tw.topology, g, p, base)
			if err != nil {
				t.Fatal(err)
			}
			if avoid == 0 {
				base = m
			}
			tw.metrics[p] = m
		}
	}
	return tw
}

// randomCells cuts the junctions into runs, and those into runs of runs.
func randomCells(junctions int, r *rand.Rand) (c graph.Cells) {
	cut := func(n, longest int) (of []uint32, count int) {
		for i, left := 0, 0; i < n; i++ {
			if left == 0 {
				left = 1 + r.IntN(longest)
				count++
			}
			left--
			of = append(of, uint32(count-1))
		}
		return of, count
	}
	of, count := cut(junctions, 8)
	c.Of, c.Count = of, []int{count}
	for range r.IntN(4) {
		parent, n := cut(count, 3)
		c.Parent, c.Count = append(c.Parent, parent), append(c.Count, n)
		count = n
	}
	return c
}

func (t *town) place(r *rand.Rand) []Place {
	e := r.Uint32N(uint32(t.Edges()))
	fraction := float64(r.IntN(5)) / 4
	places := []Place{PlaceOn(t.Graph, e, fraction)}
	if twin := slices.Index(t.Segment, t.Segment[e]^1); twin >= 0 {
		places = append(places, PlaceOn(t.Graph, uint32(twin), 1-fraction))
	}
	return places
}

func TestEveryAnswerIsThatOfDijkstra(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		tw := newTown(t, r)
		s := New(tw.Graph, tw.topology, tw)
		for p := range tw.metrics {
			checkTown(t, tw, s, p, r, fmt.Sprintf("seed %d, %v", seed, p))
		}
	}
}

func checkTown(t *testing.T, tw *town, s *Searcher, p route.Profile, r *rand.Rand, name string) {
	t.Helper()
	from, to := make([][]Place, 4), make([][]Place, 4)
	for i := range from {
		from[i], to[i] = tw.place(r), tw.place(r)
	}
	matrix, err := s.Matrix(t.Context(), p, from, to)
	if err != nil {
		t.Fatal(err)
	}
	for i := range from {
		for j := range to {
			want, found := Dijkstra(tw.Graph, p, from[i], to[j])
			if !found {
				want = Unreachable
			}
			if matrix[i][j] != want {
				t.Errorf("%s: matrix %v, want %v", name, matrix[i][j], want)
			}
			path, err := s.Route(t.Context(), p, from[i], to[j])
			if found != (err == nil) || err != nil && !errors.Is(err, route.ErrNoRoute) {
				t.Errorf("%s: %v, found %v", name, err, found)
				continue
			}
			if err == nil {
				if path.Cost != want {
					t.Errorf("%s: route %v, want %v", name, path.Cost, want)
				}
				checkPath(t, tw, path, name)
			}
		}
	}
}

// checkPath checks that the edges of a path join and cost what is told.
func checkPath(t *testing.T, tw *town, p Path, name string) {
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
				t.Errorf("%s: edges %d and %d do not join", name, p.Edges[i-1], e)
			}
			sum.Duration += uint32(turn) * 10
		}
		sum.Duration, sum.Distance = sum.Duration+part.Duration, sum.Distance+part.Distance
	}
	if sum != p.Cost {
		t.Errorf("%s: the edges cost %v, told is %v", name, sum, p.Cost)
	}
}
