package search

import (
	"context"
	"math"
	"slices"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
	"lieudit/queries/worker"
)

// Reach visits every edge that can be reached from places, or from which the places can be reached, within a limit of duration, or
// of distance if p is for the shortest path. start and end are the costs at the tail and at the head of the edge along the path
// that the profile chooses: without penalties, as Route reports them. Among equally good paths the cheapest counts. The end that is
// farther from the places may be over the limit. An avoided road counts route.AvoidFactor times, so roads behind it are usually out
// of reach, which is the meaning of avoiding here.
//
// The edges of the places come first; on them the cost behind a place is negative. Such an edge is visited again if its other part
// is reached too. The others follow cell by cell, always in the same order.
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
	r.isCostChoice = r.isCostChoice && !slices.ContainsFunc(from, func(p Place) bool { return r.excessOf(&p) > 0 })
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
// blocks, one for each cell of level 1 that was seen, and a queue of buckets. The label of an edge is a gauge at its nearer end: at
// its tail, for arrivals at its head. The edges in a bucket are unordered, so an edge may be settled again with a better label
// before the bucket is empty.
//
// The search settles edges in the order of their weights, but the limit is one of cost. An edge over the limit may be settled
// before one within it, so the search continues as long as an edge within the limit waits.
type reach struct {
	graph     *graph.Graph
	topology  *overlay.Topology
	weigher   *overlay.Weigher
	isArrival bool
	limit     uint32
	budget    budget

	turns        [256]gauge // how far a turn of each cost leads; it has no penalty
	isCostChoice bool       // no edge has a penalty and no place an excess, so every edge settled after one over the limit is over it too
	avoids       bool       // the profile avoids roads; if not, the kinds of roads need not be read

	blocks  []block  // by cell of level 1
	current uint32   // number of the search; blocks of others are stale
	cells   []uint32 // that have blocks
	labels  []gauge

	base    uint32  // the least choice of the first bucket
	width   uint32  // of a bucket
	buckets []int32 // index of the first in waiting; -1 if the bucket is empty. Edges beyond the others wait in the last one
	waiting []waiting
	free    int32 // first of a list of free elements of waiting, or -1. Reusing them keeps the few that wait in the processor's cache
	within  int   // how many of those that wait are within the limit
}

// gauge is how far a path has come: its weight, which decides the choice, is in the upper half, its cost in the lower.
type gauge uint64

func newGauge(choice, cost uint64) gauge { return gauge(choice<<32 | cost) }
func (g gauge) choice() uint32           { return uint32(g >> 32) }
func (g gauge) cost() uint32             { return uint32(g) }

const (
	unreached = ^gauge(0)
	farthest  = gauge(overlay.NoPath) // gauges from here on are ignored, and a sum of two of them does not overflow
)

// waiting is an edge in a bucket, which is a linked list.
type waiting struct {
	edge, label uint32
	gauge       gauge
	next        int32
}

// bucketCount buckets divide the choices up to the limit.
const bucketCount = 4096

// begin discards the previous search, and empties all buckets.
func (r *reach) begin(w *overlay.Weigher, limit uint32) {
	r.weigher, r.limit, r.base, r.width, r.within = w, limit, 0, limit/bucketCount+1, 0
	r.isCostChoice, r.avoids, r.free = w.IsShortest || len(r.graph.Penalty) == 0, w.HasAvoided(), -1
	r.cells, r.labels, r.waiting = r.cells[:0], r.labels[:0], r.waiting[:0]
	r.buckets = slices.Grow(r.buckets[:0], bucketCount+1)[:bucketCount+1]
	for i := range r.buckets {
		r.buckets[i] = -1
	}
	for cost := range r.turns {
		primary := w.Turn(uint8(cost)) >> 32
		r.turns[cost] = newGauge(primary, primary)
	}
	r.current++
	if r.current == 0 {
		clear(r.blocks)
		r.current = 1
	}
}

// gaugeOf is how far an edge leads.
func (r *reach) gaugeOf(edge uint32) gauge {
	primary, penalty := r.weigher.Primary(edge)
	g := newGauge(uint64(primary)+uint64(penalty), uint64(primary))
	if r.avoids && r.weigher.IsAvoided(edge) {
		g *= route.AvoidFactor
	}
	return g
}

// partOf is how far a part of an edge leads.
func (r *reach) partOf(edge uint32, c Cost) gauge {
	return r.measure(edge, r.weigher.Part(edge, c.Duration, c.Distance))
}

// measure is how far an edge or a part of it leads that has this weight.
func (r *reach) measure(edge uint32, w overlay.Weight) gauge {
	cost := w.Key>>32 - uint64(w.Penalty)
	if r.weigher.IsAvoided(edge) {
		cost *= route.AvoidFactor
	}
	return newGauge(w.Key>>32, cost)
}

// excessOf is how far a path has come at a place before it begins: by its weight alone.
func (r *reach) excessOf(p *Place) gauge {
	return newGauge(r.weigher.Excess(p.Excess.Duration, p.Excess.Distance, p.IsLastResort).Key>>32, 0)
}

// seed visits the edges of places and starts after (for arrivals, before) them.
func (r *reach) seed(from []Place, visit func(edge uint32, start, end int64)) {
	for i := range from {
		p := &from[i]
		whole := int64(r.gaugeOf(p.Edge).cost())
		if r.isArrival {
			before := int64(r.partOf(p.Edge, p.Before).cost())
			visit(p.Edge, before, before-whole)
			continue
		}
		after := r.partOf(p.Edge, p.After)
		visit(p.Edge, int64(after.cost())-whole, int64(after.cost()))
		r.relaxOutEdges(p.Edge, after+r.excessOf(p))
	}
	if r.isArrival {
		q := query{graph: r.graph}
		q.visitEnds(from, func(edge uint32, place int) {
			p := &from[place]
			r.relaxInEdges(edge, r.partOf(edge, p.Before)+r.excessOf(p))
		})
	}
}

// edgesOf returns where the edges of a cell begin and end: numbers of edges, for arrivals places in Graph.In.
func (r *reach) edgesOf(cell uint32) (first, end uint32) {
	column := r.graph.FirstOut
	if r.isArrival {
		column = r.graph.FirstIn
	}
	return column[r.topology.FirstJunction[cell]], column[r.topology.FirstJunction[cell+1]]
}

// block returns the offset from the number of an edge (or place in Graph.In) to its label. It creates the labels of a cell if
// necessary.
func (r *reach) block(cell uint32) uint32 {
	if b := r.blocks[cell]; b.search == r.current {
		return b.first
	}
	return r.addBlock(cell)
}

// addBlock makes the labels of a cell.
func (r *reach) addBlock(cell uint32) uint32 {
	first, end := r.edgesOf(cell)
	b := block{search: r.current, first: uint32(len(r.labels)) - first}
	r.blocks[cell], r.cells = b, append(r.cells, cell)
	r.labels = slices.Grow(r.labels, int(end-first))
	for range end - first {
		r.labels = append(r.labels, unreached)
	}
	return b.first
}

// improve lowers a label to a better one, and puts its edge in the bucket of its weight. An entry for it in another bucket becomes
// stale.
func (r *reach) improve(edge, label uint32, to gauge) {
	if to >= farthest {
		return
	}
	if to.cost() <= r.limit {
		r.within++
	} else if r.isCostChoice {
		return
	}
	r.labels[label] = to
	r.wait(waiting{edge: edge, label: label, gauge: to})
}

// wait puts an edge in its bucket.
func (r *reach) wait(w waiting) {
	bucket := &r.buckets[min((w.gauge.choice()-r.base)/r.width, bucketCount)]
	w.next = *bucket
	if at := r.free; at >= 0 {
		r.free = r.waiting[at].next
		r.waiting[at], *bucket = w, at
		return
	}
	r.waiting = append(r.waiting, w)
	*bucket = int32(len(r.waiting) - 1)
}

// takeFirst takes the first edge out of a bucket, which is not empty.
func (r *reach) takeFirst(bucket *int32) waiting {
	place := &r.waiting[*bucket]
	w := *place
	place.next = r.free
	r.free, *bucket = *bucket, w.next
	return w
}

// search settles the edges of one bucket after the other, as long as one within the limit waits.
func (r *reach) search() error {
	for r.within > 0 {
		for b := 0; b < bucketCount && r.within > 0; b++ {
			if err := r.settleBucket(&r.buckets[b]); err != nil {
				return err
			}
		}
		r.advance()
	}
	return nil
}

// settleBucket settles the edges of a bucket.
func (r *reach) settleBucket(first *int32) error {
	for *first >= 0 {
		w := r.takeFirst(first)
		if w.gauge.cost() <= r.limit {
			r.within--
		}
		if r.labels[w.label] != w.gauge {
			continue
		}
		if err := r.budget.spend(); err != nil {
			return err
		}
		if at := w.gauge + r.gaugeOf(w.edge); r.isArrival {
			r.relaxInEdges(w.edge, at)
		} else {
			r.relaxOutEdges(w.edge, at)
		}
	}
	return nil
}

// advance moves the buckets, all of which but the last are empty, to the least choice in the last, and divides what waits there.
func (r *reach) advance() {
	beyond := r.buckets[bucketCount]
	r.buckets[bucketCount], r.base = -1, math.MaxUint32
	for i := beyond; i >= 0; i = r.waiting[i].next {
		r.base = min(r.base, r.waiting[i].gauge.choice())
	}
	for beyond >= 0 {
		r.wait(r.takeFirst(&beyond))
	}
}

// relaxOutEdges goes from the head of an edge, to which a path has come, to the edges that follow.
func (r *reach) relaxOutEdges(edge uint32, at gauge) {
	if r.isCostChoice && at.cost() > r.limit {
		return
	}
	g, j := r.graph, r.graph.Head[edge]
	out, end := g.OutEdges(j)
	turns := g.Turns[g.TurnTable[j]+uint32(g.InRank[edge])*(end-out):][:end-out]
	first := r.block(g.Cells.Of[j]) + out
	labels := r.labels[first:][:len(turns)]
	for i, turn := range turns {
		if to := at + r.turns[turn]; to < labels[i] && turn != graph.ForbiddenTurn {
			r.improve(out+uint32(i), first+uint32(i), to)
		}
	}
}

// relaxInEdges goes from the tail of an edge to the edges that lead there.
func (r *reach) relaxInEdges(edge uint32, at gauge) {
	if r.isCostChoice && at.cost() > r.limit {
		return
	}
	g, j := r.graph, r.graph.Tail[edge]
	out, end := g.OutEdges(j)
	turn := g.TurnTable[j] + edge - out
	block := r.block(g.Cells.Of[j])
	for i := g.FirstIn[j]; i < g.FirstIn[j+1]; i++ {
		if t := g.Turns[turn]; t != graph.ForbiddenTurn && at+r.turns[t] < r.labels[block+i] {
			r.improve(g.In[i], block+i, at+r.turns[t])
		}
		turn += end - out
	}
}

// labelWork is the approximate time of the visit of an edge.
const labelWork = 100 * time.Nanosecond

// visitLabels visits all edges that have labels within the limit.
func (r *reach) visitLabels(visit func(edge uint32, start, end int64)) error {
	for _, cell := range r.cells {
		block := r.block(cell)
		first, end := r.edgesOf(cell)
		for i := first; i < end; i++ {
			cost := r.labels[block+i].cost()
			switch {
			case r.labels[block+i] == unreached || cost > r.limit:
			case r.isArrival:
				visit(r.graph.In[i], int64(cost)+int64(r.gaugeOf(r.graph.In[i]).cost()), int64(cost))
			default:
				visit(i, int64(cost), int64(cost)+int64(r.gaugeOf(i).cost()))
			}
		}
		if err := worker.Yield(r.budget.ctx, time.Duration(end-first)*labelWork); err != nil {
			return err
		}
	}
	return nil
}
