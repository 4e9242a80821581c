package graph

import (
	"slices"
	"testing"
)

func TestEachEdgeOfAListLeadsToTheWholeList(t *testing.T) {
	t.Parallel()
	c, ok := NewCopies([]uint32{2, 5, 70, 3, 64, 1, 200}, 201)
	if !ok {
		t.Fatal("refused")
	}
	for edge, want := range map[uint32][]uint32{
		5: {5, 70}, 70: {5, 70}, 64: {64, 1, 200}, 1: {64, 1, 200}, 200: {64, 1, 200}, 0: nil, 63: nil, 199: nil, 201: nil, 1 << 20: nil,
	} {
		if got := c.Of(edge); !slices.Equal(got, want) {
			t.Errorf("edge %d: %v, want %v", edge, got, want)
		}
	}
	if got := c.Edges(); !slices.Equal(got, []uint32{1, 5, 64, 70, 200}) {
		t.Errorf("edges %v", got)
	}
	if none, ok := NewCopies(nil, 0); !ok || none.Of(0) != nil || len(none.Edges()) != 0 {
		t.Error("a graph without copies")
	}
}

func TestDamagedListsOfCopiesAreRefused(t *testing.T) {
	t.Parallel()
	for name, lists := range map[string][]uint32{
		"a length over the end":      {3, 1, 2},
		"a huge length":              {1<<32 - 1, 1},
		"an edge that is not there":  {2, 1, 10},
		"a second list over the end": {2, 1, 2, 1},
	} {
		if c, ok := NewCopies(lists, 10); ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
