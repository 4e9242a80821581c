package search

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// Found is a destination of Nearest by its index.
type Found struct {
	Index int
	Cost  Cost
}

// Nearest finds the destinations that are nearest to places, each along the path that the profile chooses: at most limit, the
// nearest first, ties in the given order. They are ranked by cost, without the penalties of the path; but if the profile avoids
// roads, penalties count, so that destinations behind an avoided road come last. Unreachable destinations are left out. It is one
// search, which opens the cells that hold destinations and crosses the others; it ends as soon as no destination that it has not
// found yet can be nearer.
func (s *Searcher) Nearest(ctx context.Context, p route.Profile, from []Place, to [][]Place, limit int) ([]Found, error) {
	q, err := s.begin(ctx, p, s.Budgets.Nearest)
	if err != nil {
		return nil, err
	}
	defer s.release(q)
	to, taken, err := areaSearch{q}.takeInside(from, to)
	if err != nil {
		return nil, err
	}
	n := nearest{query: q, to: to, ends: &q.ends, isFound: make([]bool, len(to)), limit: min(limit, len(to)), isByWeight: p.Avoid != 0}
	origins := q.origins(from)
	q.openSeeds(origins)
	n.addEnds()
	n.queueOnEdges(from)
	for _, destination := range taken {
		n.keep(destination)
	}
	q.forward.begin(origins)
	if err := n.search(&q.forward); err != nil {
		return nil, err
	}
	return n.result(), nil
}

// nearest is the state of one Nearest. Destinations are queued with the weight of a path as soon as the search is at the edge
// before them; they are found when no state with a smaller weight is left. The search reaches only a few of thousands of
// destinations, so the setup does little for each.
type nearest struct {
	*query
	to      [][]Place
	ends    *endTable
	queue   overlay.Heap // of destinations
	isFound []bool
	found   []overlay.Item // ascending by their ranks
	limit   int

	isByWeight bool // the rank of a weight is the weight itself
	steps      int  // until the queues are looked through again
}

// end is an edge on which a path to a destination may end.
type end struct {
	edge               uint32
	destination, place uint32 // indices
	next               uint32 // in the same list, + 1; 0 for the last
}

// endTable holds ends by the junctions that their edges leave: a hash table of lists. Neighbouring junctions have similar numbers,
// so the low bits of a number are its hash. A query keeps the memory.
type endTable struct {
	lists []uint32 // for each hash, the first in ends, + 1; their number is a power of two
	ends  []end
}

// begin empties the table and makes lists for a number of ends.
func (t *endTable) begin(count int) {
	size := 1 << bits.Len(uint(count))
	t.lists, t.ends = slices.Grow(t.lists[:0], size)[:size], t.ends[:0]
	clear(t.lists)
}

// add adds an end on an edge that leaves a junction.
func (t *endTable) add(junction uint32, e end) {
	list := &t.lists[junction&uint32(len(t.lists)-1)]
	e.next = *list
	t.ends = append(t.ends, e)
	*list = uint32(len(t.ends))
}

// from calls a function for the ends in the list of a junction. Some may belong to other junctions.
func (t *endTable) from(junction uint32, visit func(*end)) {
	for i := t.lists[junction&uint32(len(t.lists)-1)]; i != 0; i = t.ends[i-1].next {
		visit(&t.ends[i-1])
	}
}

// addEnds adds the ends of all destinations and opens their cells.
func (n *nearest) addEnds() {
	count := 0
	for _, places := range n.to {
		count += len(places)
	}
	n.ends.begin(count)
	for i, places := range n.to {
		n.visitEnds(places, func(edge uint32, place int) {
			junction := n.graph.Tail[edge]
			n.ends.add(junction, end{edge: edge, destination: uint32(i), place: uint32(place)})
			n.openAt(junction)
		})
	}
}

// queueOnEdges queues the destinations further along the edges of the origin.
func (n *nearest) queueOnEdges(from []Place) {
	for i := range from {
		n.ends.from(n.graph.Tail[from[i].Edge], func(e *end) {
			if e.edge != from[i].Edge {
				return
			}
			if weight, ok := n.weightOnEdge(&from[i], &n.to[e.destination][e.place]); ok {
				n.push(e.destination, weight)
			}
		})
	}
}

// push queues a destination. It may be queued many times; keep counts it once.
func (n *nearest) push(destination uint32, weight overlay.Weight) {
	n.queue.Push(overlay.Item{Key: weight.Key, Penalty: weight.Penalty, State: destination})
}

// search settles states and destinations together, in the order of their weights.
func (n *nearest) search(f *frontier) error {
	for !n.isDone(f) {
		if len(n.queue) > 0 && (len(f.heap) == 0 || n.queue[0].Weight().IsLess(f.heap[0].Weight())) {
			n.keep(n.queue.Pop())
			continue
		}
		label, ok := f.settle()
		if !ok {
			continue
		}
		if err := n.budget.spend(); err != nil {
			return err
		}
		s := f.nextSide(f.nodes[label].id)
		if s.level == 0 {
			n.queueDestinations(n.edgeOf(s.id), f.weight(label))
		}
		f.relax(label, s)
	}
	return nil
}

// rank is the order of a destination with a weight among the others.
func (n *nearest) rank(of overlay.Item) overlay.Weight {
	if n.isByWeight {
		return of.Weight()
	}
	return of.Weight().Plain()
}

// stepsToLook is how many steps are taken between two looks through the queues.
const stepsToLook = 128

// isDone reports whether enough destinations are found, and all that are equal to the last of them.
func (n *nearest) isDone(f *frontier) bool {
	if n.limit <= 0 || len(n.queue) == 0 && len(f.heap) == 0 {
		return true
	}
	if len(n.found) < n.limit {
		return false
	}
	last := n.rank(n.found[n.limit-1]).Key
	if n.isByWeight {
		return (len(n.queue) == 0 || n.queue[0].Key > last) && (len(f.heap) == 0 || f.heap[0].Key > last)
	}
	// A rank only grows along a path, but the queues are not in the order of ranks.
	if n.steps > 0 {
		n.steps--
		return false
	}
	n.steps = stepsToLook
	isNearer := func(i overlay.Item) bool { return n.rank(i).Key <= last }
	return !slices.ContainsFunc(n.queue, isNearer) && !slices.ContainsFunc(f.heap, isNearer)
}

// keep adds a destination to those found, unless it was found by a better path.
func (n *nearest) keep(destination overlay.Item) {
	if n.isFound[destination.State] {
		return
	}
	n.isFound[destination.State] = true
	at, _ := slices.BinarySearchFunc(n.found, destination, n.compare)
	n.found = slices.Insert(n.found, at, destination)
}

// compare orders destinations by their ranks, those of the same rank by their indices.
func (n *nearest) compare(a, b overlay.Item) int {
	x, y := n.rank(a), n.rank(b)
	return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Penalty, y.Penalty), cmp.Compare(a.State, b.State))
}

// queueDestinations queues the destinations on the edges that leave the head of an edge.
func (n *nearest) queueDestinations(edge uint32, at overlay.Weight) {
	junction := n.graph.Head[edge]
	n.ends.from(junction, func(e *end) {
		if n.graph.Tail[e.edge] != junction || n.isFound[e.destination] {
			return
		}
		if turn := n.graph.Turn(edge, e.edge); turn != graph.ForbiddenTurn {
			before := n.endWeight(e.edge, &n.to[e.destination][e.place])
			n.push(e.destination, at.Plus(before).Plus(overlay.Weight{Key: n.weigher.Turn(turn)}))
		}
	})
}

// result returns the destinations found, in order.
func (n *nearest) result() []Found {
	n.found = n.found[:min(len(n.found), n.limit)]
	found := make([]Found, len(n.found))
	for i, item := range n.found {
		found[i] = Found{int(item.State), n.cost(item.Weight())}
	}
	return found
}
