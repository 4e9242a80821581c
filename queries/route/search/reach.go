package search

import (
	"context"
	"slices"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
	"lieudit/queries/worker"
)

// Reach visits every edge that can be reached from places, or from which the places can be reached, within a limit of duration, or
// of distance where p is for the shortest path. start and end are what it costs to be at the tail and at the head of the edge: exact.
// The one that is farther from the places may be over the limit. An avoided road counts route.AvoidFactor times: what lies
// behind it is out of reach as a rule, which is what avoiding means here. The places count alike, whatever their excess: an area holds
// what can be reached from any of them.
//
// The edges of the places come first; on them the cost behind a place is negative. Such an edge comes once more if its other
// part is reached too. The others come cell by cell, always in the same order.
func (s *Searcher) Reach(
	ctx context.Context, p route.Profile, from []Place, limit uint32, isArrival bool, visit func(edge uint32, start, end int64),
) error {
	end, err := worker.BeginSearch(ctx)
	if err != nil {
		return err
	}
	defer end()
	r, ok := s.reaches.Get().(*reach)
	if !ok {
		r = &reach{graph: s.graph, topology: s.topology, blocks: make([]block, s.topology.LevelFirst[1])}
	}
	defer s.releaseReach(r)
	r.begin(overlay.NewWeigher(s.graph, p), limit)
	r.isArrival, r.budget = isArrival, budget{ctx: ctx, left: s.Budgets.Reach}
	r.seed(from, visit)
	if err := r.search(); err != nil {
		return err
	}
	return r.visitLabels(visit)
}

// releaseReach gives the state of a call back to the pool. It drops what belongs to the call.
func (s *Searcher) releaseReach(r *reach) {
	r.budget.end()
	r.budget.ctx = nil
	s.reaches.Put(r)
}

// reach is the state of one Reach: a search on edges, without the overlay, because it visits every edge anyway. Its labels lie in
// blocks, one for each cell of level 1 that was seen, and a queue of buckets. The label of an edge is the cost at its nearer end:
// at its tail, for arrivals at its head. In a bucket edges wait in no order, so that one may be settled again with a better label
// before the bucket is empty.
type reach struct {
	graph     *graph.Graph
	topology  *overlay.Topology
	weigher   *overlay.Weigher
	isArrival bool
	limit     uint32
	budget    budget

	blocks  []block  // of each cell of level 1
	current uint32   // number of the search; blocks of others are stale
	cells   []uint32 // that have blocks
	labels  []uint32

	width   uint32  // of a bucket
	buckets []int32 // index of the first in waiting; -1 where the bucket is empty
	waiting []waiting
}

// waiting is an edge in a bucket, which is a linked list.
type waiting struct {
	edge, label, cost uint32
	next              int32
}

// bucketCount buckets divide the costs up to the limit.
const bucketCount = 4096

// begin forgets the search before, and makes all buckets empty.
func (r *reach) begin(w *overlay.Weigher, limit uint32) {
	r.weigher, r.limit, r.width = w, limit, limit/bucketCount+1
	r.cells, r.labels, r.waiting = r.cells[:0], r.labels[:0], r.waiting[:0]
	r.buckets = slices.Grow(r.buckets[:0], bucketCount)[:bucketCount]
	for i := range r.buckets {
		r.buckets[i] = -1
	}
	r.current++
	if r.current == 0 {
		clear(r.blocks)
		r.current = 1
	}
}

// primary is the primary cost of an edge, in which an avoided road counts route.AvoidFactor times.
func (r *reach) primary(edge uint32) uint64 { return r.weigher.Edge(edge).Key >> 32 }

// seed visits the edges of places and begins behind (or before) them.
func (r *reach) seed(from []Place, visit func(edge uint32, start, end int64)) {
	q := query{graph: r.graph, weigher: r.weigher}
	for _, p := range from {
		whole := int64(r.primary(p.Edge))
		if r.isArrival {
			before := int64(q.part(p.Edge, p.Before).Key >> 32)
			visit(p.Edge, before, before-whole)
			continue
		}
		after := q.part(p.Edge, p.After).Key >> 32
		visit(p.Edge, int64(after)-whole, int64(after))
		r.relaxOutEdges(p.Edge, after)
	}
	if r.isArrival {
		for _, s := range q.destinations(withoutExcess(from)) {
			if cost := s.weight.Key >> 32; cost <= uint64(r.limit) {
				r.improve(s.edge, r.labelOf(s.edge), uint32(cost))
			}
		}
	}
}

// withoutExcess returns places that all weigh alike.
func withoutExcess(places []Place) []Place {
	plain := slices.Clone(places)
	for i := range plain {
		plain[i].Excess, plain[i].IsLastResort = Cost{}, false
	}
	return plain
}

// labelOf returns the label of an edge.
func (r *reach) labelOf(edge uint32) uint32 {
	if r.isArrival {
		j := r.graph.Head[edge]
		return r.block(r.graph.Cells.Of[j]) + r.graph.FirstIn[j] + uint32(r.graph.InRank[edge])
	}
	return r.block(r.graph.Cells.Of[r.graph.Tail[edge]]) + edge
}

// edgesOf returns where the edges of a cell begin and end: numbers of edges, for arrivals places in Graph.In.
func (r *reach) edgesOf(cell uint32) (first, end uint32) {
	column := r.graph.FirstOut
	if r.isArrival {
		column = r.graph.FirstIn
	}
	return column[r.topology.FirstJunction[cell]], column[r.topology.FirstJunction[cell+1]]
}

// block returns what leads from the number of an edge (or place in Graph.In) to its label. It makes the labels of a cell when there are
// none yet.
func (r *reach) block(cell uint32) uint32 {
	b := &r.blocks[cell]
	if b.search != r.current {
		first, end := r.edgesOf(cell)
		b.search, b.first = r.current, uint32(len(r.labels))-first
		r.cells = append(r.cells, cell)
		r.labels = slices.Grow(r.labels, int(end-first))
		for range end - first {
			r.labels = append(r.labels, graph.None)
		}
	}
	return b.first
}

// improve lowers a label and puts its edge in the bucket of its cost. What waits in another bucket becomes stale.
func (r *reach) improve(edge, label, cost uint32) {
	if cost >= r.labels[label] {
		return
	}
	r.labels[label] = cost
	bucket := &r.buckets[cost/r.width]
	r.waiting = append(r.waiting, waiting{edge, label, cost, *bucket})
	*bucket = int32(len(r.waiting) - 1)
}

// search settles the edges of one bucket after the other.
func (r *reach) search() error {
	for b := range r.buckets {
		for r.buckets[b] >= 0 {
			w := r.waiting[r.buckets[b]]
			r.buckets[b] = w.next
			if r.labels[w.label] != w.cost {
				continue
			}
			if err := r.budget.spend(); err != nil {
				return err
			}
			cost := uint64(w.cost) + r.primary(w.edge)
			if r.isArrival {
				r.relaxInEdges(w.edge, cost)
			} else {
				r.relaxOutEdges(w.edge, cost)
			}
		}
	}
	return nil
}

// relaxOutEdges goes from the head of an edge, where the cost is known, to the edges that follow.
func (r *reach) relaxOutEdges(edge uint32, cost uint64) {
	if cost > uint64(r.limit) {
		return
	}
	g, j := r.graph, r.graph.Head[edge]
	out, end := g.OutEdges(j)
	turns := g.Turns[g.TurnTable[j]+uint32(g.InRank[edge])*(end-out):]
	block := r.block(g.Cells.Of[j])
	for next := out; next < end; next++ {
		turn := turns[next-out]
		if at := cost + r.weigher.Turn(turn)>>32; turn != graph.ForbiddenTurn && at <= uint64(r.limit) {
			r.improve(next, block+next, uint32(at))
		}
	}
}

// relaxInEdges goes from the tail of an edge to the edges that lead there.
func (r *reach) relaxInEdges(edge uint32, cost uint64) {
	if cost > uint64(r.limit) {
		return
	}
	g, j := r.graph, r.graph.Tail[edge]
	out, end := g.OutEdges(j)
	turn := g.TurnTable[j] + edge - out
	block := r.block(g.Cells.Of[j])
	for i := g.FirstIn[j]; i < g.FirstIn[j+1]; i++ {
		t := g.Turns[turn]
		if at := cost + r.weigher.Turn(t)>>32; t != graph.ForbiddenTurn && at <= uint64(r.limit) {
			r.improve(g.In[i], block+i, uint32(at))
		}
		turn += end - out
	}
}

// labelWork is about how long the visit of an edge takes.
const labelWork = 100 * time.Nanosecond

// visitLabels visits all edges that have labels.
func (r *reach) visitLabels(visit func(edge uint32, start, end int64)) error {
	for _, cell := range r.cells {
		block := r.block(cell)
		first, end := r.edgesOf(cell)
		for i := first; i < end; i++ {
			cost := r.labels[block+i]
			switch {
			case cost == graph.None:
			case r.isArrival:
				visit(r.graph.In[i], int64(cost)+int64(r.primary(r.graph.In[i])), int64(cost))
			default:
				visit(i, int64(cost), int64(cost)+int64(r.primary(i)))
			}
		}
		if err := worker.Yield(r.budget.ctx, time.Duration(end-first)*labelWork); err != nil {
			return err
		}
	}
	return nil
}
