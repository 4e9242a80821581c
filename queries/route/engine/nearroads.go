package engine

import (
	"math"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/network"
	"lieudit/queries/route/profile"
	"lieudit/queries/route/streetname"
)

const (
	// accessRange is how much farther than the best access of an address another may be, in metres, with its penalties, on a road
	// that meets the road of an access at a junction as near: a house at a corner can be left by either street. So can a position
	// near a corner, but the nearer it is to one road, the more certainly it belongs there: the other may be at most twice as far.
	accessRange = 25
	// likeRange is how much farther a road may always be, whether or not it meets the other, because positions are wrong by a few
	// metres. It is small: nobody chooses between a street and the one behind the houses, or below the cliff.
	likeRange = 5
	// apartRange is the same for two roads that are apart, whether or not they meet.
	apartRange = 3
	// levelRange is the same for a bridge or a tunnel and a road on the ground: they are near each other where one passes above the
	// other, and nobody can change between them there.
	levelRange = 1
	// junctionRange is the distance along the road, in metres, within which an access counts as being at a junction: positions are
	// rounded.
	junctionRange = 1
)

// noJunction is the junction of an access that is not at a junction.
const noJunction = graph.None

// backward is the index of the edge that goes against the geometry of its segment.
const backward = 1

// nearRoad is a road near a bound: where a route could begin or end on it.
type nearRoad struct {
	access    route.Access
	cost      float64   // metres to the access, and its penalties
	edges     [2]uint32 // forward and backward; graph.None where closed
	fraction  float64   // of the segment, up to the access
	ends      [2]end    // of the segment
	junction  uint32    // where the access is, or noJunction
	isMain    bool      // the main part of the network can be reached from it, and it from there
	isThrough bool
	level     level
}

// level is where a road lies.
type level uint8

const (
	onGround level = iota
	onBridge
	inTunnel
)

func levelOf(r network.Road) level {
	switch {
	case r.IsTunnel:
		return inTunnel
	case r.IsBridge:
		return onBridge
	}
	return onGround
}

// end is a junction where a road ends, and how far along the road it is from the access, in metres.
type end struct {
	junction uint32
	distance float64
}

func (r *nearRoad) isTwoWay() bool { return r.edges[0] != graph.None && r.edges[1] != graph.None }

// nearRoads are the roads near a bound, the best first, and the least cost of all and of those that belong to the main part:
// infinite if there are no such roads.
type nearRoads struct {
	roads            []nearRoad
	least, leastMain float64
	isAddress        bool
}

// findRoads looks at the roads around a bound, the nearest first. A road costs its distance and its penalties. The search ends when no
// road farther away can be an access, neither among all roads nor among those of the main part.
func (m *modeEngine) findRoads(b route.Bound) nearRoads {
	street := streetname.Fold(b.Street)
	found := nearRoads{least: math.Inf(1), leastMain: math.Inf(1), isAddress: b.IsAddress}
	m.layer.Near(b.Point, route.MaxAccessDistance, func(h network.Hit) bool {
		if h.Distance > max(found.least, found.leastMain)+accessRange {
			return false
		}
		road := m.layer.Road(h.Segment)
		if road.IsFerry {
			return true
		}
		isOwn := street != "" && streetname.Fold(road.Name) == street
		cost := h.Distance
		if b.IsAddress {
			cost += penaltyOf(road, street != "" && !isOwn)
		}
		if cost > max(found.least, found.leastMain)+accessRange {
			return true
		}
		access := route.Access{Point: h.Point, Distance: h.Distance, Street: road.Name, IsOnOwn: isOwn}
		if r := m.newNearRoad(h, access); r.edges != [2]uint32{graph.None, graph.None} {
			r.cost, r.isThrough, r.level = cost, isThrough(road), levelOf(road)
			found.add(r)
		}
		return true
	})
	return found
}

// add inserts a road in the order of costs, after those of the same cost.
func (f *nearRoads) add(r nearRoad) {
	at := len(f.roads)
	for at > 0 && f.roads[at-1].cost > r.cost {
		at--
	}
	f.roads = slices.Insert(f.roads, at, r)
	f.least = min(f.least, r.cost)
	if r.isMain {
		f.leastMain = min(f.leastMain, r.cost)
	}
}

// ofMain returns the roads of the main part.
func (f *nearRoads) ofMain() *nearRoads {
	main := &nearRoads{isAddress: f.isAddress}
	for _, r := range f.roads {
		if r.isMain {
			main.roads = append(main.roads, r)
		}
	}
	return main
}

// within returns the roads that may serve the bound as well as the cheapest one.
func (f *nearRoads) within(least float64) (near []nearRoad) {
	for i := range f.roads {
		r, most := &f.roads[i], least+likeRange
		switch {
		case f.roads[0].level != r.level:
			most = least + levelRange
		case f.roads[0].isApartFrom(r):
			most = least + apartRange
		case slices.ContainsFunc(near, r.meets):
			most = least + f.cornerRange(least)
		}
		if r.cost <= most {
			near = append(near, *r)
		}
	}
	return near
}

// cornerRange is how much farther than the best access one on a road that meets its road may be.
func (f *nearRoads) cornerRange(least float64) float64 {
	if f.isAddress {
		return accessRange
	}
	return min(max(least, likeRange), accessRange)
}

// meets reports whether two roads meet at a junction that is as near to both accesses as accesses are to each other.
func (r *nearRoad) meets(other nearRoad) bool {
	for _, a := range r.ends {
		for _, b := range other.ends {
			if a.junction == b.junction && max(a.distance, b.distance) <= accessRange {
				return true
			}
		}
	}
	return false
}

// isApartFrom reports whether nobody steps from one road onto the other: from a motorway, a ramp, a bridge or out of a tunnel onto the
// road next to, above or below, or from one carriageway of a road to the other.
func (r *nearRoad) isApartFrom(other *nearRoad) bool {
	areCarriageways := !r.isTwoWay() && !other.isTwoWay() && r.access.Street == other.access.Street
	return r.isThrough || other.isThrough || areCarriageways
}

// isThrough reports whether a road only carries traffic: nobody lives on it, or steps onto it from the side.
func isThrough(r network.Road) bool {
	return r.Class == profile.Motorway || r.IsLink || r.IsTunnel || r.IsBridge
}

// penaltyOf is what a road costs as an access of an address besides its distance, in metres. No address lies on a motorway, a ramp, a
// tunnel or a bridge, and a road of another name is rarely the one of the address.
func penaltyOf(r network.Road, hasOtherName bool) (penalty float64) {
	if hasOtherName {
		penalty += route.OtherNameCost
	}
	if isThrough(r) {
		penalty += route.ThroughCost
	}
	return penalty
}

// newNearRoad is a road that may be entered where a bound is nearest to it.
func (m *modeEngine) newNearRoad(h network.Hit, access route.Access) nearRoad {
	r := nearRoad{access: access, fraction: h.Fraction, junction: noJunction}
	r.edges[0], r.edges[1] = m.layer.SegmentEdges(h.Segment)
	connection := graph.Connection(0)
	for direction, edge := range r.edges {
		if edge == graph.None {
			continue
		}
		connection |= m.graph.Connection[edge]
		r.ends = m.endsOf(edge, h.Fraction, direction == backward)
	}
	for _, e := range r.ends {
		if e.distance <= junctionRange && r.junction == noJunction {
			r.junction = e.junction
			m.moveToEnd(&r, h)
		}
	}
	r.isMain = connection == graph.ReachesMain|graph.IsReachedFromMain
	return r
}

// endsOf are the ends of a segment around a fraction of it, the nearer one first. An edge of the segment is given.
func (m *modeEngine) endsOf(edge uint32, fraction float64, isBackward bool) [2]end {
	junctions, length := [2]uint32{m.graph.Tail[edge], m.graph.Head[edge]}, metres(m.graph.Distance[edge])
	if isBackward {
		junctions[0], junctions[1] = junctions[1], junctions[0]
	}
	ends := [2]end{{junctions[0], fraction * length}, {junctions[1], (1 - fraction) * length}}
	if ends[1].distance < ends[0].distance {
		ends[0], ends[1] = ends[1], ends[0]
	}
	return ends
}

// moveToEnd moves an access that is next to a junction there.
func (m *modeEngine) moveToEnd(r *nearRoad, h network.Hit) {
	if h.Fraction == 0 || h.Fraction == 1 {
		return
	}
	points := m.layer.AppendGeometry(nil, h.Segment, false)
	end := points[0]
	if h.Fraction >= 0.5 {
		end = points[len(points)-1]
	}
	r.access.Point = end
}
