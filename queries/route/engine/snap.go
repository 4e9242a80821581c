package engine

import (
	"math"
	"sync"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/network"
	"lieudit/queries/route/profile"
	"lieudit/queries/route/search"
	"lieudit/queries/route/streetname"
)

// snap is a bound on the network.
type snap struct {
	access    route.Access
	places    []search.Place // of the segment's edges, one for each direction that is open
	component uint32
	cost      float64
}

// candidates are the two ways to move a bound onto the network: onto the road that costs least, and onto the one that costs least
// of those in the largest connected part. They are often the same. Both are nil where no road is near enough.
type candidates struct{ nearest, main *snap }

// snapAll moves bounds onto the network for one route through all of them; nil stands for a bound that is too far from any road.
// They stay in a small connected part, an island, where the nearest roads of all of them lie in it. Otherwise each one that can
// is moved to the largest part: a fenced yard is left for the street behind it.
func (m *modeEngine) snapAll(bounds []route.Bound) []*snap {
	found := make([]candidates, len(bounds))
	for i, b := range bounds {
		found[i] = m.findCandidates(b)
	}
	all := make([]*snap, len(bounds))
	for i, c := range found {
		all[i] = c.choose(shareComponent(found))
	}
	return all
}

// choose is the snap of a bound: the nearest road where all bounds of the route share a connected part, else the main one.
func (c candidates) choose(isShared bool) *snap {
	if isShared || c.main == nil {
		return c.nearest
	}
	return c.main
}

// shareComponent reports whether the nearest roads of all bounds lie in one connected part.
func shareComponent(all []candidates) bool {
	for _, c := range all {
		if c.nearest == nil || c.nearest.component != all[0].nearest.component {
			return false
		}
	}
	return true
}

// findCandidates moves a bound onto the network, or finds in the cache how it was moved before.
func (m *modeEngine) findCandidates(b route.Bound) candidates {
	if c, ok := m.snaps.get(b); ok {
		return c
	}
	c := m.searchCandidates(b)
	m.snaps.put(b, c)
	return c
}

// searchCandidates looks at the roads around a bound, the nearest first. It ends when no road that is farther away can cost
// less than those found.
func (m *modeEngine) searchCandidates(b route.Bound) (c candidates) {
	street := streetname.Fold(b.Street)
	m.layer.Near(b.Point, route.MaxAccessDistance, func(h network.Hit) bool {
		if c.main != nil && h.Distance >= c.main.cost && h.Distance >= c.nearest.cost {
			return false
		}
		road := m.layer.Road(h.Segment)
		isOwn := street != "" && streetname.Fold(road.Name) == street
		cost := h.Distance + penaltyOf(road, street != "" && !isOwn)
		needed := c.nearest == nil || cost < c.nearest.cost || c.main == nil || cost < c.main.cost
		if !needed {
			return true
		}
		s := m.newSnap(h, road, cost, isOwn)
		if len(s.places) == 0 {
			return true
		}
		if c.nearest == nil || cost < c.nearest.cost {
			c.nearest = s
		}
		if s.component == 0 && (c.main == nil || cost < c.main.cost) {
			c.main = s
		}
		return true
	})
	return c
}

// penaltyOf is what a road costs as an access beside its distance.
func penaltyOf(r network.Road, hasOtherName bool) (penalty float64) {
	if hasOtherName {
		penalty += route.OtherNameCost
	}
	if r.Class == profile.Motorway || r.IsLink || r.IsTunnel || r.IsBridge {
		penalty += route.ThroughCost
	}
	return penalty
}

// newSnap is the access of a bound to a segment.
func (m *modeEngine) newSnap(h network.Hit, r network.Road, cost float64, isOwn bool) *snap {
	s := &snap{cost: cost, access: route.Access{Point: h.Point, Distance: h.Distance, Street: r.Name, IsOnOwn: isOwn}}
	forward, backward := m.layer.SegmentEdges(h.Segment)
	s.component = math.MaxUint32
	for _, side := range [...]struct {
		edge     uint32
		fraction float64
	}{{forward, h.Fraction}, {backward, 1 - h.Fraction}} {
		if side.edge == graph.None {
			continue
		}
		s.places = append(s.places, search.PlaceOn(m.graph, side.edge, side.fraction))
		s.component = min(s.component, m.graph.Component[side.edge])
	}
	return s
}

// snapCacheSize bounds the bounds of a cache: the sites of a customer are asked for again and again.
const snapCacheSize = 1 << 16

// snapCache keeps how bounds were moved onto the network. When it is full it forgets what was not asked for since it was half full:
// an LRU library would need a lock for a read too, and a list.
type snapCache struct {
	mu         sync.RWMutex
	young, old map[route.Bound]candidates
}

func newSnapCache() *snapCache { return &snapCache{young: map[route.Bound]candidates{}} }

func (s *snapCache) get(b route.Bound) (candidates, bool) {
	s.mu.RLock()
	c, ok := s.young[b]
	if ok {
		s.mu.RUnlock()
		return c, true
	}
	c, ok = s.old[b]
	s.mu.RUnlock()
	if ok {
		s.put(b, c)
	}
	return c, ok
}

func (s *snapCache) put(b route.Bound, c candidates) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.young) >= snapCacheSize/2 {
		s.old, s.young = s.young, map[route.Bound]candidates{}
	}
	s.young[b] = c
}
