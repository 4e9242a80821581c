// Package search finds paths on a road graph: between two places, between many, everything within reach. Its one constraint:
// every answer is that of Dijkstra's algorithm, in both costs of a path and to the last unit, however it was found; the tests
// hold it to that.
//
//	[]Place ── Route ──► two searches that meet, on the overlay ── unpack ──► Path
//	        ── Matrix ──► from each origin once; destinations wait in buckets on the way into their cells
//	        ── Reach, Nearest ──► one search on the graph itself, outwards
//
// The states of a search are edges, as package overlay says: a label belongs to the head of its edge. Which level of cells a
// search crosses at a junction is decided by the level query: the highest one whose cell there holds neither end of the path.
package search

import (
	"sync"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/overlay"
)

// Cost is what a path costs, in the units of the graph.
type Cost struct{ Duration, Distance uint32 }

// Unreachable stands for the cost of what no path leads to.
var Unreachable = Cost{^uint32(0), ^uint32(0)}

// Place is a point on an edge: what of the edge lies before it, and what behind it.
type Place struct {
	Edge          uint32
	Before, After Cost
}

// PlaceOn is the point at a fraction of an edge.
func PlaceOn(g *graph.Graph, edge uint32, fraction float64) Place {
	fraction = min(max(fraction, 0), 1)
	before := Cost{part(g.Duration[edge], fraction), part(g.Distance[edge], fraction)}
	return Place{edge, before, Cost{g.Duration[edge] - before.Duration, g.Distance[edge] - before.Distance}}
}

// part is a fraction of a whole, rounded.
func part(whole uint32, fraction float64) uint32 { return uint32(float64(whole)*fraction + 0.5) }

// Path is a list of edges, each of which begins where the one before ends. It begins at Start, on the first, and ends at End, on the
// last or on the edge that the last is a copy of.
type Path struct {
	Edges      []uint32
	Start, End Place
	Cost       Cost
}

// Metrics finds the metric of a profile.
type Metrics interface {
	Metric(route.Profile) (*overlay.Metric, bool)
}

// Searcher finds paths on one graph. It is safe for concurrent use.
type Searcher struct {
	g       *graph.Graph
	t       *overlay.Topology
	metrics Metrics
	work    sync.Pool // *workspace
}

// New returns a searcher.
func New(g *graph.Graph, t *overlay.Topology, metrics Metrics) *Searcher {
	return &Searcher{g: g, t: t, metrics: metrics, work: sync.Pool{New: func() any { return new(workspace) }}}
}

// workspace is the memory of one question: it grows with the work, not with the graph.
type workspace struct {
	forward, backward, within frontier
}

// costOf is the cost that a label stands for.
func costOf(l overlay.Label, p route.Profile) Cost {
	if l.Weight == overlay.Unreachable {
		return Unreachable
	}
	primary := l.Weight.Primary()
	if p.Avoid != 0 {
		primary = l.Real
	}
	if p.Optimization == route.Shortest {
		return Cost{Duration: l.Weight.Secondary(), Distance: primary}
	}
	return Cost{Duration: primary, Distance: l.Weight.Secondary()}
}
