package overlay

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
)

// line is a two-way street of n junctions in cells of two, and those in cells of four. Edge i of each direction lasts 100 + i.
func line(n int, flags graph.Flags) *graph.Graph {
	var arcs []graph.Arc
	for j := range uint32(n) {
		if j > 0 {
			arcs = append(arcs, graph.Arc{Tail: j, Head: j - 1, Duration: 100 + j - 1, Distance: 10, Segment: 2*j - 1})
		}
		if int(j) < n-1 {
			arcs = append(arcs, graph.Arc{Tail: j, Head: j + 1, Duration: 100 + j, Distance: 10, Segment: 2 * j})
		}
	}
	arcs[len(arcs)-1].Flags = flags
	g := graph.New(n, arcs, func(from, to uint32) uint8 {
		if arcs[from].Tail == arcs[to].Head {
			return graph.ForbiddenTurn
		}
		return 1
	})
	g.Cells = graph.Cells{Parent: [][]uint32{nil}, Count: []int{n / 2, n / 4}}
	for j := range uint32(n) {
		g.Cells.Of = append(g.Cells.Of, j/2)
		if j%2 == 0 {
			g.Cells.Parent[0] = append(g.Cells.Parent[0], j/4)
		}
	}
	return g
}

func customize(t *testing.T, topology *Topology, g *graph.Graph, avoid route.Avoid, base *Metric) *Metric {
	t.Helper()
	m, err := Customize(t.Context(), topology, g, route.Profile{Mode: route.Car, Optimization: route.Fastest, Avoid: avoid}, base)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newTopology(t *testing.T, g *graph.Graph) *Topology {
	t.Helper()
	topology, err := NewTopology(g)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

func TestAMatrixHoldsWhatItCostsToCrossTheCell(t *testing.T) {
	t.Parallel()
	g := line(8, 0)
	topology := newTopology(t, g)
	m := customize(t, topology, g, 0, nil)
	// The second cell of level 1 has the junctions 2 and 3. From the left it is crossed by the edges that last 102 and 103, after a
	// turn of 10 each; to leave it where it was entered is forbidden.
	keys, penalties := m.Matrix(topology, 1)
	crossed := uint64(102+103+20)<<32 | 20
	back := uint64(102+101+20)<<32 | 20
	if want := []uint64{NoPath, crossed, back, NoPath}; !slices.Equal(keys, want) || penalties != nil {
		t.Errorf("level 1: %x, %v, want %x", keys, penalties, want)
	}
	// The first cell of level 2 ends at the street's end: who enters it never leaves.
	if keys, _ := m.Matrix(topology, topology.LevelFirst[1]); !slices.Equal(keys, []uint64{NoPath}) {
		t.Errorf("level 2: %x", keys)
	}
}

func TestAMetricSharesTheCellsInWhichNothingIsAvoided(t *testing.T) {
	t.Parallel()
	g := line(8, graph.Flags(route.Tolls))
	topology := newTopology(t, g)
	base := customize(t, topology, g, 0, nil)
	if m := customize(t, topology, g, route.Ferries, base); len(m.Weights) != 0 || slices.Contains(m.IsShared, 0) {
		t.Errorf("nothing is to be penalties, but %d weights are not shared", len(m.Weights))
	}
	g.Flags[slices.Index(g.Segment, 2*2)] = graph.Flags(route.Tolls) // from junction 2 to 3
	m := customize(t, topology, g, route.Tolls, base)
	keys, penalties := m.Matrix(topology, 1)
	if want := uint64(102*route.AvoidFactor+103+20)<<32 | 20; keys[1] != want || penalties[1] != 102*(route.AvoidFactor-1) {
		t.Errorf("%x with %d penalties, want %x with 102 × 49", keys[1], penalties[1], want)
	}
	if m.IsShared[1] != 0 || m.IsShared[0] == 0 || m.IsShared[2] == 0 {
		t.Errorf("shared: %v", m.IsShared)
	}
}

func TestTheSameGraphMakesTheSameColumns(t *testing.T) {
	t.Parallel()
	g := line(64, graph.Flags(route.Tolls))
	topology := newTopology(t, g)
	base := customize(t, topology, g, 0, nil)
	first := customize(t, topology, g, route.Tolls, base)
	for range 10 {
		if d := cmp.Diff(first, customize(t, newTopology(t, g), g, route.Tolls, base), cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	}
}

func TestCellsMustBeNumberedInTheOrderOfTheirJunctions(t *testing.T) {
	t.Parallel()
	g := line(8, 0)
	slices.Reverse(g.Cells.Of)
	if _, err := NewTopology(g); !errors.Is(err, ErrUnordered) {
		t.Errorf("got %v", err)
	}
}

func TestCustomizeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	g := line(64, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Customize(ctx, newTopology(t, g), g, route.Profile{Mode: route.Car}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
