package overlay

import (
	"lieudit/queries/route"
	"lieudit/queries/route/graph"
)

// Weight is what a search makes least, and what else is known of the same path: the primary cost in the upper half and the
// secondary in the lower. Weights add and compare as they are, so that of two paths of the same primary cost the one with less
// of the other is better, and both costs of a best path are the same for every exact algorithm.
type Weight uint64

// Unreachable is the weight of what no path leads to.
const Unreachable = ^Weight(0)

// Primary is what is made least: duration for the fastest path, distance for the shortest, in units of the graph; avoided roads
// count route.AvoidFactor times.
func (w Weight) Primary() uint32 { return uint32(w >> 32) }

// Secondary is the other of distance and duration.
func (w Weight) Secondary() uint32 { return uint32(w) }

func newWeight(primary, secondary uint32) Weight { return Weight(primary)<<32 | Weight(secondary) }

// turnScale turns the cost of a turn into units of duration.
const turnScale = graph.DurationUnit / graph.TurnUnit

// Weigher weighs the edges and turns of a graph for a profile.
type Weigher struct {
	g          *graph.Graph
	isShortest bool
	avoid      graph.Flags
}

// NewWeigher returns a weigher.
func NewWeigher(g *graph.Graph, p route.Profile) Weigher {
	return Weigher{g: g, isShortest: p.Optimization == route.Shortest, avoid: graph.Flags(p.Avoid)}
}

// Edge is the weight of a whole edge.
func (w *Weigher) Edge(e uint32) Weight { return w.Part(e, w.g.Duration[e], w.g.Distance[e]) }

// Part is the weight of a part of an edge.
func (w *Weigher) Part(e, duration, distance uint32) Weight {
	primary, secondary := duration, distance
	if w.isShortest {
		primary, secondary = distance, duration
	}
	if w.g.Flags[e]&w.avoid != 0 {
		primary *= route.AvoidFactor
	}
	return newWeight(primary, secondary)
}

// Turn is the weight of a turn that is not forbidden.
func (w *Weigher) Turn(cost uint8) Weight {
	if w.isShortest {
		return newWeight(0, uint32(cost)*turnScale)
	}
	return newWeight(uint32(cost)*turnScale, 0)
}
