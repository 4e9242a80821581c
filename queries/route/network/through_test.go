package network

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/osmpbf/osmtest"
	"lieudit/queries/route/search"
)

// randomThrough restricts some segments of a layer and puts gates at some of its junctions.
func randomThrough(b *layerBuilder, rng *rand.Rand) *throughRules {
	r := &throughRules{restricted: make([]bool, 2*len(b.segments)), gates: map[uint32]bool{}}
	share := 2 + rng.IntN(4)
	for i := range r.restricted {
		r.restricted[i] = rng.IntN(share) == 0
		if i%2 == 1 && rng.IntN(4) > 0 {
			r.restricted[i] = r.restricted[i-1]
		}
	}
	for j := range uint32(len(b.places)) {
		if rng.IntN(6) == 0 {
			r.gates[j] = true
		}
	}
	r.leaves, r.arrives = r.restricted, r.restricted
	return r
}

// partedWalk is a walk with the part of a route in which it is: that of who has not come to a public road yet, is on one, or has left
// the public roads.
type partedWalk struct {
	history
	part int
}

// partedCosts are the costs of the best walks from a directed segment to all others that are restricted, then public, then restricted.
func partedCosts(b *layerBuilder, rules []pathRule, r *throughRules, start uint32) map[uint32]uint32 {
	first := partedWalk{history: history{walk: [4]uint32{start}, n: 1}}
	if !r.restricted[start] {
		first.part = 1
	}
	costs, best := map[uint32]uint32{start: 0}, map[partedWalk]uint32{}
	for queue := []partedWalk{first}; len(queue) > 0; queue = queue[1:] {
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
		queue = append(queue, nextParted(b, rules, r, at)...)
	}
	return costs
}

// nextParted continues from a walk. Turning back is for where nothing but roads for those who go there leads on.
func nextParted(b *layerBuilder, rules []pathRule, r *throughRules, at partedWalk) (next []partedWalk) {
	walk := at.walk[:at.n]
	last := walk[at.n-1]
	leadsOn := false
	for to := range uint32(2 * len(b.segments)) {
		if !b.isOpen(to) || b.tail(to) != b.head(last) || !allowed(rules, walk, to) {
			continue
		}
		isGate := r.gates[b.head(last)] && to != last^1
		leadsOn = leadsOn || to != last^1 && (r.restricted[last] || !r.restricted[to] && !isGate)
		w := partedWalk{part: at.part}
		switch {
		case at.part == 2 && !r.restricted[to], at.part == 1 && !r.restricted[to] && isGate:
			continue
		case at.part == 0 && !r.restricted[to]:
			w.part = 1
		case at.part == 1 && r.restricted[to]:
			w.part = 2
		}
		w.cost = at.cost + b.segments[to/2].duration[to%2]
		w.n = copy(w.walk[:], append(slices.Clone(walk[max(0, at.n-3):]), to))
		next = append(next, w)
	}
	if leadsOn {
		next = slices.DeleteFunc(next, func(w partedWalk) bool { return w.walk[w.n-1] == last^1 })
	}
	return next
}

func TestRestrictedRoadsAreDrivenAtTheEndsOfARouteAlone(t *testing.T) {
	t.Parallel()
	changed, seeds := 0, 400
	if testing.Short() {
		seeds = 50
	}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 3))
		b, rules := randomLayer(rng)
		for _, r := range rules {
			b.rules.add(r.path, r.to, r.isOnly)
		}
		b.rules.link()
		through := randomThrough(b, rng)
		through.hasParts = true
		e, err := b.buildEdges(through)
		if err != nil {
			t.Fatal(err)
		}
		for directed, edge := range e.plain {
			if edge == graph.None {
				continue
			}
			got, want := graphCosts(e.g, edge), partedCosts(b, rules, through, uint32(directed))
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d, from %d: %v, want %v; rules %v, %v", seed, directed, got, want, rules, through)
			}
			if fmt.Sprint(got) != fmt.Sprint(walkCosts(b, rules, uint32(directed))) {
				changed++
			}
		}
	}
	if changed < seeds {
		t.Errorf("the rule changes only %d searches", changed)
	}
}

func TestNoRoadIsCutOffBecauseOthersAreRestricted(t *testing.T) {
	t.Parallel()
	pockets := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 4))
		b, _ := randomLayer(rng)
		through := randomThrough(b, rng)
		draft, err := b.buildEdges(through)
		if err != nil {
			t.Fatal(err)
		}
		main := newPocketFinder(through, draft).main
		through.openPockets(draft)
		through.hasParts = true
		e, err := b.buildEdges(through)
		if err != nil {
			t.Fatal(err)
		}
		for _, edge := range main {
			start := draft.g.Segment[edge]
			if through.hasLater(start) {
				t.Fatalf("seed %d: segment %d of the public network is in a pocket", seed, start)
			}
			compareReached(t, seed, graphCosts(draft.g, edge), graphCosts(e.g, e.plain[start]))
		}
		for directed, edge := range draft.plain {
			if edge != graph.None && len(main) > 0 {
				compareLeading(t, seed, graphCosts(draft.g, edge), graphCosts(e.g, e.plain[directed]), draft.g.Segment[main[0]])
			}
		}
		if !slices.Equal(through.leaves, through.restricted) || !slices.Equal(through.arrives, through.restricted) {
			pockets++
		}
	}
	if pockets < 100 {
		t.Errorf("only %d layers have pockets", pockets)
	}
}

// compareReached checks that two searches reach the same segments.
func compareReached(t *testing.T, seed uint64, before, after map[uint32]uint32) {
	t.Helper()
	for directed := range before {
		if _, ok := after[directed]; !ok {
			t.Errorf("seed %d: segment %d is not reached any more", seed, directed)
		}
	}
}

// compareLeading checks that a search that reached the public network still does.
func compareLeading(t *testing.T, seed uint64, before, after map[uint32]uint32, main uint32) {
	t.Helper()
	_, was := before[main]
	if _, is := after[main]; was && !is {
		t.Errorf("seed %d: segment %d of the public network is not reached any more", seed, main)
	}
}

// roadGraph is the directed segments of a layer with the turns between them, and which of them are restricted by their tags: what is
// left of a graph when its copies are put together again.
type roadGraph struct {
	*Layer
	turns      map[uint32]map[uint32]uint32 // of directed segments to others, what they cost
	restricted map[uint32]bool
}

func newRoadGraph(l *Layer) *roadGraph {
	r := &roadGraph{l, map[uint32]map[uint32]uint32{}, map[uint32]bool{}}
	g := l.Graph
	for from := range uint32(g.Edges()) {
		directed := g.Segment[from]
		if r.turns[directed] == nil {
			r.turns[directed] = map[uint32]uint32{}
			r.restricted[directed] = l.Road(directed / 2).IsRestricted
		}
		first, end := g.OutEdges(g.Head[from])
		for to := first; to < end; to++ {
			if turn := g.Turn(from, to); turn != graph.ForbiddenTurn {
				r.turns[directed][g.Segment[to]] = uint32(turn) * graph.DurationUnit / graph.TurnUnit
			}
		}
	}
	return r
}

// weightsFrom are the least weights with which routes come from the middle of a directed segment to the end of others, as far as they are
// restricted, then public, then restricted: without leaving the restricted roads where that is possible. faster are the
// segments to which another route would be faster.
func (r *roadGraph) weightsFrom(start uint32) (weights map[uint32]uint32, faster map[uint32]bool) {
	type place struct {
		directed uint32
		part     int
	}
	weigh := func(directed uint32) uint32 {
		edge := r.edgeOf(directed)
		return r.Graph.Duration[edge] + r.penalty(edge)
	}
	best, first := map[place]uint32{}, place{start, 1}
	if r.restricted[start] {
		first.part = 0
	}
	best[first] = 0
	queue := []place{first}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for to, turn := range r.turns[at.directed] {
			next := place{to, at.part}
			switch {
			case at.part == 2 && !r.restricted[to]:
				continue
			case at.part == 1 && r.restricted[to]:
				next.part = 2
			case at.part == 0 && !r.restricted[to]:
				next.part = 1
			}
			weight := best[at] + turn + weigh(to)
			if known, ok := best[next]; !ok || weight < known {
				best[next] = weight
				queue = append(queue, next)
			}
		}
	}
	weights, faster = map[uint32]uint32{}, map[uint32]bool{}
	for at, weight := range best {
		if inside, ok := best[place{at.directed, 0}]; ok {
			weights[at.directed] = inside
			faster[at.directed] = faster[at.directed] || weight < inside
			continue
		}
		if known, ok := weights[at.directed]; !ok || weight < known {
			weights[at.directed] = weight
		}
	}
	return weights, faster
}

func (r *roadGraph) edgeOf(directed uint32) uint32 {
	forward, backward := r.SegmentEdges(directed / 2)
	return []uint32{forward, backward}[directed%2]
}

func (r *roadGraph) penalty(edge uint32) uint32 {
	if len(r.Graph.Penalty) == 0 {
		return 0
	}
	return r.Graph.Penalty[edge]
}

// weightOf is the weight of a path from the end of its first edge to the end of its last, and whether it is restricted, then public, then
// restricted by the tags.
func (r *roadGraph) weightOf(edges []uint32) (weight uint32, isLegal bool) {
	part := 1
	if r.restricted[r.Graph.Segment[edges[0]]] {
		part = 0
	}
	isLegal = true
	for i, e := range edges[1:] {
		directed := r.Graph.Segment[e]
		weight += r.turns[r.Graph.Segment[edges[i]]][directed] + r.Graph.Duration[e] + r.penalty(e)
		switch {
		case part == 2 && !r.restricted[directed]:
			isLegal = false
		case part == 1 && r.restricted[directed]:
			part = 2
		case part == 0 && !r.restricted[directed]:
			part = 1
		}
	}
	return weight, isLegal
}

// TestRoutesOnARealMapDriveThroughNoRestrictedRoad compares routes with those of a search over segments, by the tags of the roads alone. A
// route drives through a restricted road only where a search that does not finds no way: from and to the pockets behind them.
func TestRoutesOnARealMapDriveThroughNoRestrictedRoad(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bondy", "monaco"} {
		n, _ := buildOpen(t, osmtest.Path(t, name), Options{})
		r := newRoadGraph(n.Layer(route.Car))
		s := search.New(r.Graph, r.Topology, r.Layer)
		rng, compared := rand.New(rand.NewPCG(5, 5)), 0
		for range 40 {
			from := randomRoad(r.Layer, rng)
			weights, _ := r.weightsFrom(r.Graph.Segment[from])
			for range 20 {
				compared += r.compareRoute(t, s, from, randomRoad(r.Layer, rng), weights)
			}
		}
		if compared < 600 {
			t.Errorf("%s: only %d routes are compared", name, compared)
		}
	}
}

// TestRoutesWithinRestrictedRoadsStayThere compares routes between roads of one area with those of the search by tags, and with the cells of
// matrices and the searches for the nearest.
func TestRoutesWithinRestrictedRoadsStayThere(t *testing.T) {
	t.Parallel()
	held := 0
	for _, name := range []string{"bondy", "monaco"} {
		n, _ := buildOpen(t, osmtest.Path(t, name), Options{})
		r := newRoadGraph(n.Layer(route.Car))
		s := search.New(r.Graph, r.Topology, r.Layer)
		rng := rand.New(rand.NewPCG(6, 6))
		for starts := 0; starts < 150; {
			from := randomRoad(r.Layer, rng)
			if !r.restricted[r.Graph.Segment[from]] || r.leadsToPocket(from) {
				continue
			}
			starts++
			weights, faster := r.weightsFrom(r.Graph.Segment[from])
			for _, to := range r.targets(weights, faster) {
				if faster[r.Graph.Segment[to]] {
					held++
				}
				r.compareRoute(t, s, from, to, weights)
				r.compareCell(t, s, from, to)
			}
		}
	}
	if held < 20 {
		t.Errorf("the rule holds only %d routes back", held)
	}
}

// leadsToPocket reports whether the area of an edge has public roads, which the search by tags takes for those of the town.
func (r *roadGraph) leadsToPocket(start uint32) bool {
	g, isSeen := r.Graph, map[uint32]bool{start: true}
	for open := []uint32{start}; len(open) > 0; {
		edge := open[len(open)-1]
		open = open[:len(open)-1]
		if !r.restricted[g.Segment[edge]] {
			return true
		}
		first, end := g.OutEdges(g.Head[edge])
		for next := first; next < end; next++ {
			if g.Turn(edge, next) != graph.ForbiddenTurn && g.IsLeaving(next) && !isSeen[next] {
				isSeen[next] = true
				open = append(open, next)
			}
		}
	}
	return false
}

// targets are the segments to which the fastest route leaves the area, and a few others.
func (r *roadGraph) targets(weights map[uint32]uint32, faster map[uint32]bool) (all []uint32) {
	others := 0
	for _, directed := range slices.Sorted(maps.Keys(weights)) {
		if edge := r.edgeOf(directed); edge != graph.None && (faster[directed] || r.restricted[directed] && others < 2) {
			others++
			all = append(all, edge)
		}
	}
	return all
}

// compareCell compares a route between the middles of two roads, each with a second place on another road, with Dijkstra's algorithm, with
// a matrix and with the nearest.
func (r *roadGraph) compareCell(t *testing.T, s *search.Searcher, from, to uint32) {
	t.Helper()
	places := func(edge uint32) []search.Place {
		second := search.PlaceOn(r.Graph, (edge*7+13)%uint32(r.Graph.Edges()), 0.3)
		second.Edge = r.Graph.CopiesOf(second.Edge)[0]
		second = search.PlaceOn(r.Graph, second.Edge, 0.3)
		second.Access, second.Excess = 1, search.Cost{Duration: 1000, Distance: 250}
		places := []search.Place{search.PlaceOn(r.Graph, edge, 0.5), second}
		if back := r.edgeOf(r.Graph.Segment[edge] ^ 1); back != graph.None {
			places = append(places, search.PlaceOn(r.Graph, back, 0.5))
		}
		return places
	}
	starts, ends := places(from), places(to)
	for _, o := range []route.Optimization{route.Fastest, route.Shortest} {
		p := route.Profile{Mode: route.Car, Optimization: o}
		want, ok := search.Dijkstra(r.Graph, p, starts, ends)
		path, err := s.Route(t.Context(), p, starts, ends)
		if (err == nil) != ok || ok && path.Cost != want {
			t.Errorf("from %d to %d, %s: got %v, %v, want %v", from, to, o, path.Cost, err, want)
		}
		if !ok {
			continue
		}
		m, err := s.Matrix(t.Context(), p, [][]search.Place{ends, starts}, [][]search.Place{starts, ends, ends[:1]})
		if err != nil || m[1][1] != want {
			t.Errorf("from %d to %d, %s: the cell is %v, %v, want %v", from, to, o, m[1][1], err, want)
		}
		found, err := s.Nearest(t.Context(), p, starts, [][]search.Place{ends, nil, ends[1:]}, 3)
		if err != nil || !slices.Contains(found, search.Found{Index: 0, Cost: want}) {
			t.Errorf("from %d to %d, %s: found %v, %v, want %v", from, to, o, found, err, want)
		}
	}
}

// compareRoute compares one route, and returns 1 where the plain search has one too.
func (r *roadGraph) compareRoute(t *testing.T, s *search.Searcher, from, to uint32, weights map[uint32]uint32) int {
	t.Helper()
	want, ok := weights[r.Graph.Segment[to]]
	if !ok || from == to {
		return 0
	}
	p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
	path, err := s.Route(t.Context(), p, []search.Place{search.PlaceOn(r.Graph, from, 1)}, []search.Place{search.PlaceOn(r.Graph, to, 1)})
	if err != nil {
		t.Errorf("from %d to %d: %v, want a route that weighs %d", from, to, err, want)
		return 1
	}
	if got, isLegal := r.weightOf(path.Edges); !isLegal || got != want {
		t.Errorf("from %d to %d: weighs %d, drives through no restricted road: %v; want %d; %v", from, to, got, isLegal, want, path.Edges)
	}
	return 1
}

// randomRoad is an edge that is not a copy.
func randomRoad(l *Layer, rng *rand.Rand) uint32 {
	for {
		forward, backward := l.SegmentEdges(uint32(rng.IntN(l.Segments())))
		if e := []uint32{forward, backward}[rng.IntN(2)]; e != graph.None {
			return e
		}
	}
}
