// Package search finds paths on a road graph: between two places, between many, all within reach. Every answer equals that of
// Dijkstra's algorithm, in both costs of a path and to the last unit; the tests check this.
//
//	[]Place ── Route, Alternatives ──► query: two searches that meet on the overlay ── unpack ──► Path
//	        ── Through ──► the same for each leg, with one access at each stop
//	        ── Matrix  ──► a search in the own cells of each destination fills buckets; one from each origin scans them
//	        ── Nearest ──► one search that opens the cells that hold destinations
//	        ── Reach   ──► one search on the edges
//
// The states of a search are edges, as package overlay says. A query opens the cells that hold its ends, on all levels: in an open
// cell of level 1 it moves from edge to edge; elsewhere it crosses the largest closed cell by its matrix. The labels of a query lie
// in blocks, one for each cell that it has seen, so its memory grows with its work, not with the graph.
//
// An end of a path is a list of places, of which the search takes the best pair. A place may weigh more than another by its Excess,
// which helps to decide between places but is not part of a path's cost. Between places in one area of restricted roads a path that
// stays in it comes before all others (area.go), except in Reach, which has an end on one side only.
//
//	seed      a state from which a search begins, with its first weight
//	label     the best weight known of a state, and the state before it on that path
//	settle    to take the state with the least weight from the queue: its label is final
//	relax     to improve the labels of the states that follow a settled one
//	frontier  one search, forward from origins or backward from destinations
//	bucket    what Matrix keeps for a cell: the ends in it, with their weights at the edges that enter it
package search

import (
	"context"
	"sync"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
	"lieudit/queries/worker"
)

// Cost is what a path costs, in graph.DurationUnit and graph.DistanceUnit parts. Turns are part of the duration. Penalties affect
// which path is chosen but are not part of a Cost.
type Cost struct{ Duration, Distance uint32 }

// Unreachable stands for the cost of a path that does not exist.
var Unreachable = Cost{graph.None, graph.None}

// Place is a point on an edge: it divides the edge's cost into the parts before and after it. A path may start on the edge, not on
// its copies, and may end on the edge and all its copies.
type Place struct {
	Edge          uint32
	Before, After Cost

	// Access is the number of the access that the place belongs to: the point of the network where a path begins or ends, with a
	// place for each edge and direction. A path through a stop leaves from the access where it arrived.
	Access uint32
	// Excess counts in the choice among places as extra duration and distance, and is never part of a Cost.
	Excess Cost
	// IsLastResort excludes the place from the choice as long as other places lead to a path.
	IsLastResort bool
}

// PlaceOn is the point at a fraction of an edge, from 0 at its tail to 1 at its head. Fractions outside this range are clamped.
func PlaceOn(g *graph.Graph, edge uint32, fraction float64) Place {
	fraction = min(max(fraction, 0), 1)
	whole := Cost{g.Duration[edge], g.Distance[edge]}
	before := Cost{part(whole.Duration, fraction), part(whole.Distance, fraction)}
	return Place{Edge: edge, Before: before, After: Cost{whole.Duration - before.Duration, whole.Distance - before.Distance}}
}

// part is a fraction of a cost, rounded.
func part(whole uint32, fraction float64) uint32 { return uint32(float64(whole)*fraction + 0.5) }

// Path is a list of edges, each of which begins where the previous one ends. It starts at Start on the first and ends at End on the
// last, which may be a copy of End.Edge.
type Path struct {
	Edges      []uint32
	Start, End Place
	Cost       Cost
}

// Metrics finds the metric of a profile; it returns false if the profile has no metric. It must be safe for concurrent use.
type Metrics interface {
	Metric(route.Profile) (*overlay.Metric, bool)
}

// Budgets are how many states one call of each method may settle before it fails with route.ErrTooMuchWork. Alternatives counts as
// Route, once for itself and once for each route that it uses to check a candidate.
type Budgets struct{ Route, Matrix, Nearest, Reach int }

// DefaultBudgets are enough for a country: a route settles some thousand states, a matrix cell fewer, an hour of reach a million.
func DefaultBudgets() Budgets {
	return Budgets{Route: 2_000_000, Matrix: 20_000_000, Nearest: 8_000_000, Reach: 4_000_000}
}

// Searcher finds paths on the graph of one mode. It is safe for concurrent use. Its methods end with ctx's error when ctx ends,
// with route.ErrTooMuchWork when a budget is spent and with route.ErrUnsupported if the profile has no metric.
type Searcher struct {
	Budgets Budgets // may be changed before the first call

	graph    *graph.Graph
	topology *overlay.Topology
	metrics  Metrics
	pool     sync.Pool // of *query
	reaches  sync.Pool // of *reach
}

// New returns a searcher with DefaultBudgets. The topology and the metrics must be those of the graph.
func New(g *graph.Graph, t *overlay.Topology, metrics Metrics) *Searcher {
	return &Searcher{Budgets: DefaultBudgets(), graph: g, topology: t, metrics: metrics}
}

// query is the state of one call. A pool keeps it for later calls, because its columns over all cells are costly to make. One goroutine
// uses it at a time.
type query struct {
	graph    *graph.Graph
	topology *overlay.Topology
	weigher  *overlay.Weigher
	metric   *overlay.Metric
	budget   budget
	end      func() // of worker.BeginSearch

	// A cell is open if its element of open equals the current opening, so that the next opening closes all cells in one step.
	open    []uint32 // of each cell
	opening uint32

	forward  frontier
	backward frontier
	unpacker unpacker
	ends     endTable // for Nearest
}

// begin takes a query from the pool, for a call that may settle a number of states. release gives it back.
func (s *Searcher) begin(ctx context.Context, p route.Profile, steps int) (*query, error) {
	metric, ok := s.metrics.Metric(p)
	if !ok {
		return nil, route.ErrUnsupported
	}
	end, err := worker.BeginSearch(ctx)
	if err != nil {
		return nil, err
	}
	q, ok := s.pool.Get().(*query)
	if !ok {
		q = &query{graph: s.graph, topology: s.topology, open: make([]uint32, s.topology.Cells())}
		for _, f := range []*frontier{&q.forward, &q.backward, &q.unpacker.frontier} {
			f.query, f.blocks = q, make([]block, s.topology.Cells()+int(s.topology.LevelFirst[1]))
		}
		q.backward.isBackward, q.unpacker.query = true, q
	}
	q.weigher, q.metric, q.budget = overlay.NewWeigher(s.graph, p), metric, budget{ctx: ctx, left: steps}
	q.end = end
	q.closeAll()
	return q, nil
}

// release gives a query back to the pool. It drops the data of the call, so that the pool does not retain a context.
func (s *Searcher) release(q *query) {
	q.budget.end()
	end := q.end
	q.budget.ctx, q.metric, q.end = nil, nil, nil
	s.pool.Put(q)
	end()
}

// budget counts the steps of a call.
type budget struct {
	ctx       context.Context
	left      int
	unyielded int // steps since the last look at the context
}

const (
	// stepsToYield is how many steps are taken between two looks at the context, and stepWork about how long they take.
	stepsToYield = 1024
	stepWork     = 180 * time.Microsecond
)

// spend counts one step. Every stepsToYield steps it looks at the context and gives way to other requests.
func (b *budget) spend() error {
	b.left--
	if b.left < 0 {
		return route.ErrTooMuchWork
	}
	if b.unyielded++; b.unyielded < stepsToYield {
		return nil
	}
	b.unyielded = 0
	return worker.Yield(b.ctx, stepWork)
}

// end counts the steps since the last look.
func (b *budget) end() {
	worker.Count(b.ctx, time.Duration(b.unyielded)*stepWork/stepsToYield)
}

// closeAll closes all cells.
func (q *query) closeAll() {
	q.opening++
	if q.opening == 0 {
		clear(q.open)
		q.opening = 1
	}
}

// openAt opens the cells that hold a junction. If its cell of level 1 is open, all are.
func (q *query) openAt(junction uint32) {
	cell := q.graph.Cells.Of[junction]
	if q.open[cell] == q.opening {
		return
	}
	for _, over := range q.topology.AncestorsOf(cell) {
		q.open[over] = q.opening
	}
}

// closed returns the largest cell over a cell of level 1 that is not open, and its level; level 0 if all are open.
func (q *query) closed(cell uint32) (closed uint32, level int) {
	over := q.topology.AncestorsOf(cell)
	for l := len(over) - 1; l >= 0; l-- {
		if q.open[over[l]] != q.opening {
			return over[l], l + 1
		}
	}
	return 0, 0
}

// cost is the duration and the distance of a weight.
func (q *query) cost(of overlay.Weight) Cost {
	duration, distance := q.weigher.Cost(of)
	return Cost{duration, distance}
}

// part is the weight of a part of an edge.
func (q *query) part(edge uint32, c Cost) overlay.Weight {
	return q.weigher.Part(edge, c.Duration, c.Distance)
}

// startWeight is what a path weighs from a place to the head of its edge.
func (q *query) startWeight(p *Place) overlay.Weight {
	return q.part(p.Edge, p.After).Plus(q.excess(p))
}

// endWeight is what a path weighs from the tail of an edge to a place on it, or on an edge of which it is a copy.
func (q *query) endWeight(edge uint32, p *Place) overlay.Weight {
	return q.part(edge, p.Before).Plus(q.excess(p))
}

// excess is the weight of choosing a place.
func (q *query) excess(p *Place) overlay.Weight {
	return q.weigher.Excess(p.Excess.Duration, p.Excess.Distance, p.IsLastResort)
}
