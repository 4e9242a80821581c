package overlay

import (
	"lieudit/queries/route"
	"lieudit/queries/route/graph"
)

// Weight is what a path costs, as searches compare and add it. Key has the primary cost in its upper half, which is made least,
// and the secondary in the lower: duration and distance, or the other way round for the shortest path. An avoided road counts
// route.AvoidFactor times in the primary; Avoided is the plain primary cost of avoided roads alone, from which Weigher.Cost takes
// the factor out again; an excess, which decides where a path begins or ends and is not told, hides in both. Of two paths with the same primary the one with the smaller secondary is better. The order is total over
// all three numbers, so every exact search finds the same costs. Costs are in the units of package graph.
type Weight struct {
	Key     uint64
	Avoided uint32
}

// NoPath is the key from which on a weight means that there is no path. The sum of two such keys does not overflow.
const NoPath = uint64(1) << 63

// IsLess orders weights.
func (w Weight) IsLess(other Weight) bool {
	return w.Key < other.Key || w.Key == other.Key && w.Avoided < other.Avoided
}

// Plus is the weight of one path after another.
func (w Weight) Plus(other Weight) Weight {
	return Weight{w.Key + other.Key, w.Avoided + other.Avoided}
}

// Minus is the weight of a path without its last part, which weighs end.
func (w Weight) Minus(end Weight) Weight { return Weight{w.Key - end.Key, w.Avoided - end.Avoided} }

// ExcessUnit is what an excess is rounded to, in units of the primary cost: half a second, or five metres.
const ExcessUnit = route.AvoidFactor - 1

// lastResort is the excess of what is chosen only if nothing else leads to a path, in parts of ExcessUnit: more than any path
// weighs in practice, and two of them are less than NoPath.
const lastResort = 1 << 22

// turnScale turns the cost of a turn into units of duration.
const turnScale = graph.DurationUnit / graph.TurnUnit

// Weigher weighs the edges and turns of a graph for a profile. It is safe for concurrent use.
type Weigher struct {
	IsShortest bool
	turn       uint64 // key of a turn of cost 1
	avoid      graph.Flags
	flags      []graph.Flags
	primary    []uint32
	secondary  []uint32
}

// NewWeigher returns the weigher of a profile. The graph must be that of the profile's mode.
func NewWeigher(g *graph.Graph, p route.Profile) *Weigher {
	w := &Weigher{turn: turnScale << 32, avoid: graph.Flags(p.Avoid), flags: g.Flags, primary: g.Duration, secondary: g.Distance}
	if p.Optimization == route.Shortest {
		w.IsShortest, w.turn = true, turnScale
		w.primary, w.secondary = g.Distance, g.Duration
	}
	return w
}

// Edge is the weight of an edge.
func (w *Weigher) Edge(e uint32) Weight {
	return w.weigh(e, w.primary[e], w.secondary[e])
}

// Part is the weight of a part of an edge that has this duration and distance, in units of the graph.
func (w *Weigher) Part(e, duration, distance uint32) Weight {
	if w.IsShortest {
		return w.weigh(e, distance, duration)
	}
	return w.weigh(e, duration, distance)
}

// weigh makes the weight of an edge or a part of it. Only here does the avoid factor come in.
func (w *Weigher) weigh(e, primary, secondary uint32) Weight {
	if w.flags[e]&w.avoid != 0 {
		return Weight{uint64(primary)*(route.AvoidFactor<<32) | uint64(secondary), primary}
	}
	return Weight{Key: uint64(primary)<<32 | uint64(secondary)}
}

// Excess is a weight that counts when paths are compared and is not told: Cost takes it out again, as it takes out the factor of
// avoided roads. It is given in the units of the graph and rounded to ExcessUnit.
func (w *Weigher) Excess(duration, distance uint32, isLastResort bool) Weight {
	primary := duration
	if w.IsShortest {
		primary = distance
	}
	parts := (primary + ExcessUnit/2) / ExcessUnit
	if isLastResort {
		parts += lastResort
	}
	return Weight{Key: uint64(parts) * ExcessUnit << 32, Avoided: parts}
}

// Turn is the key of a turn that is not forbidden, given its cost in graph.TurnUnit parts of a second.
func (w *Weigher) Turn(cost uint8) uint64 { return uint64(cost) * w.turn }

// Avoids says whether some edges are to be avoided.
func (w *Weigher) Avoids() bool { return w.avoid != 0 }

// Cost returns what a weight is made of: duration and distance in units of the graph, each avoided road counted once.
func (w *Weigher) Cost(of Weight) (duration, distance uint32) {
	primary := uint32(of.Key>>32) - (route.AvoidFactor-1)*of.Avoided
	if w.IsShortest {
		return uint32(of.Key), primary
	}
	return primary, uint32(of.Key)
}
