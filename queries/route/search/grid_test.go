package search

import (
	"math/rand/v2"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// newGrid invents a town of streets at right angles, 1 << bits each way: every eighth is twice as fast, every sixty-fourth four
// times. Junctions are numbered along a curve that leaves a square when all of it is numbered, so that squares are cells.
func newGrid(t testing.TB, bits int) *town {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(bits), 7))
	side := uint32(1) << bits
	var arcs []graph.Arc
	for j := range side * side {
		x, y := spread(j), spread(j>>1)
		for _, to := range [][2]uint32{{x + 1, y}, {x, y + 1}, {x - 1, y}, {x, y - 1}} {
			if to[0] < side && to[1] < side {
				street := x
				if to[0] != x {
					street = y
				}
				arcs = append(arcs, graph.Arc{
					Tail: j, Head: curve(to[0]) | curve(to[1])<<1, Segment: 2 * uint32(len(arcs)),
					Duration: (900 + r.Uint32N(200)) / pace(street), Distance: 1000,
				})
			}
		}
	}
	tw := &town{metrics: map[route.Profile]*overlay.Metric{}}
	tw.Graph = graph.New(int(side*side), arcs, func(from, to uint32) uint8 {
		if arcs[from].Tail == arcs[to].Head {
			return graph.ForbiddenTurn
		}
		return uint8((from ^ to) % 4)
	})
	tw.Cells = squares(bits)
	tw.customize(t)
	return tw
}

// pace is how many times faster a street is.
func pace(street uint32) uint32 {
	switch {
	case street%64 == 0:
		return 4
	case street%8 == 0:
		return 2
	}
	return 1
}

// curve spreads the bits of a coordinate over the even bits of a number; spread is its inverse.
func curve(x uint32) (j uint32) {
	for bit := range 16 {
		j |= x >> bit & 1 << (2 * bit)
	}
	return j
}

func spread(j uint32) (x uint32) {
	for bit := range 16 {
		x |= j >> (2 * bit) & 1 << bit
	}
	return x
}

// squares are cells of 16 × 16 junctions, and of three times as many bits on each further level.
func squares(bits int) (c graph.Cells) {
	count := 1 << max(0, 2*bits-8)
	c.Count = []int{count}
	for j := range 1 << (2 * bits) {
		c.Of = append(c.Of, uint32(j>>8))
	}
	for count > 8 {
		var parent []uint32
		for cell := range count {
			parent = append(parent, uint32(cell>>3))
		}
		count = (count + 7) >> 3
		c.Parent, c.Count = append(c.Parent, parent), append(c.Count, count)
	}
	return c
}

// BenchmarkSearch measures each kind of search on a grid of a city: 65,536 junctions and 260,000 edges.
func BenchmarkSearch(b *testing.B) {
	tw := newGrid(b, 8)
	s, p := New(tw.Graph, tw.topology, tw), route.Profile{Mode: route.Car, Optimization: route.Fastest}
	r := rand.New(rand.NewPCG(1, 1))
	for name, search := range map[string]func() error{
		"route": func() error {
			_, err := s.Route(b.Context(), p, tw.places(r), tw.places(r))
			return err
		},
		"alternatives": func() error {
			from, to := tw.places(r), tw.places(r)
			best, err := s.Route(b.Context(), p, from, to)
			if err == nil {
				_, err = s.Alternatives(b.Context(), p, best, from, to, 2)
			}
			return err
		},
		"matrix 25 x 25": func() error {
			_, err := s.Matrix(b.Context(), p, tw.manyPlaces(r, 25), tw.manyPlaces(r, 25))
			return err
		},
		"nearest 20 of 1000": func() error {
			_, err := s.Nearest(b.Context(), p, tw.places(r), tw.manyPlaces(r, 1000), 20)
			return err
		},
		"reach 30 minutes": func() error {
			return s.Reach(b.Context(), p, tw.places(r), 30*60*graph.DurationUnit, false, func(uint32, int64, int64) {})
		},
		"Dijkstra": func() error {
			Dijkstra(tw.Graph, p, tw.places(r), tw.places(r))
			return nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := search(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCustomize measures one metric of the grid.
func BenchmarkCustomize(b *testing.B) {
	tw := newGrid(b, 8)
	p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
	for b.Loop() {
		if _, err := overlay.Customize(b.Context(), tw.topology, tw.Graph, p, nil); err != nil {
			b.Fatal(err)
		}
	}
}
