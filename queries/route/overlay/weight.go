package overlay

import (
	"lieudit/queries/route"
	"lieudit/queries/route/graph"
)

// Weight is the cost of a path in the form that searches compare and add. The upper half of Key is the primary cost, which searches
// minimise, and the lower half the secondary: duration and distance, or the other way round for the shortest path. The primary
// includes penalties, because not only time makes a path the better choice: the Penalty of an edge in graph.Graph, the factor
// route.AvoidFactor of an avoided road, and the excess of the places where a path begins and ends. Penalty is their sum, so that
// Weigher.Cost can subtract them and return the real cost of the chosen path. Between paths with the same primary the smaller
// secondary wins. The order is total over all three numbers, so every exact search finds the same costs. Costs are in the units of
// package graph.
type Weight struct {
	Key     uint64
	Penalty uint32
}

// A weight whose key is NoPath or more means that no path exists. The sum of two such keys does not overflow.
const NoPath = uint64(1) << 63

// IsLess orders weights.
func (w Weight) IsLess(other Weight) bool {
	return w.Key < other.Key || w.Key == other.Key && w.Penalty < other.Penalty
}

// Plus is the weight of one path after another.
func (w Weight) Plus(other Weight) Weight {
	return Weight{w.Key + other.Key, w.Penalty + other.Penalty}
}

// Minus is the weight of a path without its last part, which weighs end.
func (w Weight) Minus(end Weight) Weight { return Weight{w.Key - end.Key, w.Penalty - end.Penalty} }

// lastResort is the excess of a place that is chosen only if there is no other path, in units of the primary cost: more than any
// path weighs in practice, and two of them are less than NoPath.
const lastResort = 200_000_000

// Plain is a weight without its penalties, except for last resorts, which still weigh more than anything else.
func (w Weight) Plain() Weight {
	return Weight{Key: w.Key - uint64(w.Penalty%lastResort)<<32}
}

// turnScale turns the cost of a turn into units of duration.
const turnScale = graph.DurationUnit / graph.TurnUnit

// Weigher weighs the edges and turns of a graph for a profile. It is safe for concurrent use.
type Weigher struct {
	IsShortest bool
	turn       uint64 // key of a turn of cost 1
	avoid      graph.Flags
	flags      []graph.Flags
	duration   []uint32
	distance   []uint32
	penalty    []uint32 // nil if the profile ignores penalties
}

// NewWeigher returns the weigher of a profile. The graph must be that of the profile's mode.
func NewWeigher(g *graph.Graph, p route.Profile) *Weigher {
	w := &Weigher{turn: turnScale << 32, avoid: graph.Flags(p.Avoid), flags: g.Flags, duration: g.Duration, distance: g.Distance}
	if p.Optimization == route.Shortest {
		w.IsShortest, w.turn = true, turnScale
	} else if len(g.Penalty) > 0 {
		w.penalty = g.Penalty
	}
	return w
}

// Edge is the weight of an edge.
func (w *Weigher) Edge(e uint32) Weight {
	penalty := uint32(0)
	if w.penalty != nil {
		penalty = w.penalty[e]
	}
	return w.weigh(e, w.duration[e], w.distance[e], penalty)
}

// Primary is the primary cost of an edge and its penalty, without the factor of an avoided one.
func (w *Weigher) Primary(e uint32) (primary, penalty uint32) {
	if w.IsShortest {
		return w.distance[e], 0
	}
	if w.penalty == nil {
		return w.duration[e], 0
	}
	return w.duration[e], w.penalty[e]
}

// Part is the weight of a part of an edge that has this duration and distance, in units of the graph. The penalty of the edge is spread
// over its duration.
func (w *Weigher) Part(e, duration, distance uint32) Weight {
	penalty := uint32(0)
	if w.penalty != nil && w.duration[e] > 0 {
		penalty = uint32(uint64(w.penalty[e]) * uint64(duration) / uint64(w.duration[e]))
	}
	return w.weigh(e, duration, distance, penalty)
}

// weigh makes the weight of an edge or a part of it. Only here does the avoid factor come in.
func (w *Weigher) weigh(e, duration, distance, penalty uint32) Weight {
	primary, secondary := duration, distance
	if w.IsShortest {
		primary, secondary = distance, duration
	}
	chosen := primary + penalty
	if w.IsAvoided(e) {
		chosen *= route.AvoidFactor
	}
	return Weight{uint64(chosen)<<32 | uint64(secondary), chosen - primary}
}

// Excess is a weight that counts when paths are compared but is not part of the cost, like a penalty. It is given in the units of
// the graph.
func (w *Weigher) Excess(duration, distance uint32, isLastResort bool) Weight {
	excess := duration
	if w.IsShortest {
		excess = distance
	}
	if isLastResort {
		excess += lastResort
	}
	return Weight{Key: uint64(excess) << 32, Penalty: excess}
}

// Turn is the key of a turn that is not forbidden, given its cost in graph.TurnUnit parts of a second.
func (w *Weigher) Turn(cost uint8) uint64 { return uint64(cost) * w.turn }

// IsAvoided reports whether an edge is to be avoided.
func (w *Weigher) IsAvoided(e uint32) bool { return w.flags[e]&w.avoid != 0 }

// HasAvoided reports whether an edge may be avoided.
func (w *Weigher) HasAvoided() bool { return w.avoid != 0 }

// HasPenalties reports whether a weight may hold a penalty.
func (w *Weigher) HasPenalties() bool { return w.avoid != 0 || w.penalty != nil }

// Cost returns the cost of a weight without penalties: duration and distance in units of the graph.
func (w *Weigher) Cost(of Weight) (duration, distance uint32) {
	primary := uint32(of.Key>>32) - of.Penalty
	if w.IsShortest {
		return uint32(of.Key), primary
	}
	return primary, uint32(of.Key)
}
