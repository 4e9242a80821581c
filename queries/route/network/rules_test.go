package network

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"lieudit/queries/route/graph"
	"lieudit/queries/route/profile"
)

// pathRule is a rule as ruleTrie.add takes it.
type pathRule struct {
	path   []uint32
	to     uint32
	isOnly bool
}

// randomLayer is a graph of a few junctions on which rules can overlap in every way.
func randomLayer(rng *rand.Rand) (*layerBuilder, []pathRule) {
	s := &source{wayTable: wayTable{roads: newRoadTable(), wayRoads: []uint32{0}}}
	s.roads.records = make([]uint32, roadSize)
	junctions := 3 + rng.Uint32N(4)
	b := &layerBuilder{cutter: &cutter{source: s}, mode: profile.Foot, places: make([]uint32, junctions)}
	for range 4 + rng.IntN(8) {
		duration := 1 + rng.Uint32N(20)
		x := segment{from: rng.Uint32N(junctions), to: rng.Uint32N(junctions), duration: [2]uint32{duration, duration}}
		if rng.IntN(3) == 0 {
			x.duration[rng.IntN(2)] = 0
		}
		b.segments = append(b.segments, x)
	}
	var rules []pathRule
	for range rng.IntN(8) {
		walk := randomWalk(b, rng, 2+rng.IntN(4))
		if last := len(walk) - 1; last > 0 {
			rules = append(rules, pathRule{walk[:last], walk[last], rng.IntN(3) == 0})
		}
	}
	return b, rules
}

// randomWalk is a list of directed segments that follow each other, perhaps shorter than wanted.
func randomWalk(b *layerBuilder, rng *rand.Rand, length int) (walk []uint32) {
	for range length * 20 {
		next := rng.Uint32N(uint32(2 * len(b.segments)))
		if b.isOpen(next) && (len(walk) == 0 || b.head(walk[len(walk)-1]) == b.tail(next)) && len(walk) < length {
			walk = append(walk, next)
		}
	}
	return walk
}

// allowed reports, by the rules alone, whether a walk may continue to a directed segment.
func allowed(rules []pathRule, walk []uint32, to uint32) bool {
	only := map[int]bool{} // by the length of the path: whether to is one of those it leaves
	for _, r := range rules {
		if len(r.path) > len(walk) || !slices.Equal(walk[len(walk)-len(r.path):], r.path) {
			continue
		}
		if !r.isOnly && r.to == to {
			return false
		}
		if r.isOnly {
			only[len(r.path)] = only[len(r.path)] || r.to == to
		}
	}
	for _, isLeft := range only {
		if !isLeft {
			return false
		}
	}
	return true
}

// history is a walk of which only the last few segments matter, and what it cost.
type history struct {
	walk [4]uint32
	n    int
	cost uint32
}

// walkCosts are the costs of the best walks from a directed segment to all others: found by trying each with every history.
func walkCosts(b *layerBuilder, rules []pathRule, start uint32) map[uint32]uint32 {
	costs := map[uint32]uint32{start: 0}
	best := map[history]uint32{}
	for queue := []history{{walk: [4]uint32{start}, n: 1}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		key := at
		key.cost = 0
		if cost, ok := best[key]; ok && cost <= at.cost {
			continue
		}
		best[key] = at.cost
		last := at.walk[at.n-1]
		if cost, ok := costs[last]; !ok || at.cost < cost {
			costs[last] = at.cost
		}
		queue = append(queue, nextHistories(b, rules, at)...)
	}
	return costs
}

// nextHistories continues from a walk. Turning back is for dead ends.
func nextHistories(b *layerBuilder, rules []pathRule, at history) (next []history) {
	walk := at.walk[:at.n]
	last := walk[at.n-1]
	for to := range uint32(2 * len(b.segments)) {
		if !b.isOpen(to) || b.tail(to) != b.head(last) || !allowed(rules, walk, to) {
			continue
		}
		h := history{cost: at.cost + b.segments[to/2].duration[to%2]}
		h.n = copy(h.walk[:], append(slices.Clone(walk[max(0, at.n-3):]), to))
		next = append(next, h)
	}
	if len(next) > 1 {
		next = slices.DeleteFunc(next, func(h history) bool { return h.walk[h.n-1] == last^1 })
	}
	return next
}

// graphCosts are the same costs on a graph with copies.
func graphCosts(g *graph.Graph, start uint32) map[uint32]uint32 {
	cost := make([]uint32, g.Edges())
	for i := range cost {
		cost[i] = graph.None
	}
	cost[start] = 0
	for range g.Edges() {
		for from := range uint32(g.Edges()) {
			first, end := g.OutEdges(g.Head[from])
			for to := first; to < end; to++ {
				if cost[from] != graph.None && g.Turn(from, to) != graph.ForbiddenTurn {
					cost[to] = min(cost[to], cost[from]+g.Duration[to])
				}
			}
		}
	}
	costs := map[uint32]uint32{}
	for edge, c := range cost {
		if old, ok := costs[g.Segment[edge]]; c != graph.None && (!ok || c < old) {
			costs[g.Segment[edge]] = c
		}
	}
	return costs
}

func TestCopiesOfEdgesHoldAnyOverlappingRules(t *testing.T) {
	t.Parallel()
	copies, seeds := 0, 150
	if testing.Short() {
		seeds = 40
	}
	for seed := range uint64(seeds) {
		b, rules := randomLayer(rand.New(rand.NewPCG(seed, 1)))
		for _, r := range rules {
			b.rules.add(r.path, r.to, r.isOnly)
		}
		b.rules.link()
		e, err := b.buildGraph()
		if err != nil {
			t.Fatal(err)
		}
		copies += len(e.g.Copies.Edges())
		for directed, edge := range e.plain {
			if edge == graph.None {
				continue
			}
			got, want := graphCosts(e.g, edge), walkCosts(b, rules, uint32(directed))
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d, from %d: %v, want %v; rules %v", seed, directed, got, want, rules)
			}
		}
	}
	if copies < seeds {
		t.Errorf("only %d edges have copies", copies)
	}
}
