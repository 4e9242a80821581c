package engine

import (
	"context"
	"math"
	"sync"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/network"
	"lieudit/queries/route/profile"
	"lieudit/queries/route/search"
	"lieudit/queries/route/streetname"
	"lieudit/queries/worker"
)

// snap is a bound after it was moved onto a road.
type snap struct {
	access    route.Access
	places    []search.Place // of the segment's edges, one for each direction that is open
	component uint32         // the larger one of those of its edges
	cost      float64        // metres to the access, and its penalties
}

// candidates are the two ways to move a bound onto the network: onto the road that costs least, and onto the one that costs least
// of those in the largest component. They are often the same. Both are nil where no road is near enough.
type candidates struct{ nearest, main *snap }

// snapAll moves bounds onto the network for one route through all of them; nil stands for a bound that is too far from any road.
// They stay in a small component, an island, where the nearest roads of all of them lie in it. Otherwise each one that can
// is moved to the largest component: the access of a fenced yard is on the street outside the fence.
func (m *modeEngine) snapAll(ctx context.Context, bounds []route.Bound) ([]*snap, error) {
	found, err := m.findAllCandidates(ctx, bounds)
	if err != nil {
		return nil, err
	}
	all, isShared := make([]*snap, len(bounds)), shareComponent(found)
	for i, c := range found {
		all[i] = c.choose(isShared)
	}
	return all, nil
}

// How long it takes, about, to find the candidates of a bound: from the cache, and on the network.
const (
	cachedSnapWork = 300 * time.Nanosecond
	snapWork       = 12 * time.Microsecond
)

// findAllCandidates returns the candidates of each bound.
func (m *modeEngine) findAllCandidates(ctx context.Context, bounds []route.Bound) ([]candidates, error) {
	const boundsToYield = 16
	all, work := make([]candidates, len(bounds)), time.Duration(0)
	for i, b := range bounds {
		if i%boundsToYield == 0 {
			if err := worker.Yield(ctx, work); err != nil {
				return nil, err
			}
			work = 0
		}
		c, isCached := m.findCandidates(b)
		all[i] = c
		if work += cachedSnapWork; !isCached {
			work += snapWork
		}
	}
	worker.Count(ctx, work)
	return all, nil
}

// choose is the snap of a bound: the nearest road where all bounds of the route share a component, else the main one.
func (c candidates) choose(isShared bool) *snap {
	if isShared || c.main == nil {
		return c.nearest
	}
	return c.main
}

// shareComponent reports whether the nearest roads of all bounds lie in one component.
func shareComponent(all []candidates) bool {
	for _, c := range all {
		if c.nearest == nil || c.nearest.component != all[0].nearest.component {
			return false
		}
	}
	return true
}

// findCandidates returns the candidates of a bound, from the cache if it was asked for before.
func (m *modeEngine) findCandidates(b route.Bound) (c candidates, isCached bool) {
	if c, ok := m.snaps.get(b); ok {
		return c, true
	}
	c = m.searchCandidates(b)
	m.snaps.put(b, c)
	return c, false
}

// searchCandidates looks at the roads around a bound, the nearest first. A road costs its distance and its penalties. The search ends
// when both candidates cost no more than the distance of the next road: no road farther away can cost less.
func (m *modeEngine) searchCandidates(b route.Bound) (c candidates) {
	street := streetname.Fold(b.Street)
	m.layer.Near(b.Point, route.MaxAccessDistance, func(h network.Hit) bool {
		if c.main != nil && h.Distance >= c.main.cost && h.Distance >= c.nearest.cost {
			return false
		}
		road := m.layer.Road(h.Segment)
		isOwn := street != "" && streetname.Fold(road.Name) == street
		cost := h.Distance + penaltyOf(road, street != "" && !isOwn)
		isBetter := c.nearest == nil || cost < c.nearest.cost || c.main == nil || cost < c.main.cost
		if !isBetter {
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

// penaltyOf is what a road costs as an access beside its distance, in metres. No address lies on a motorway, a ramp, a tunnel or
// a bridge, and a road of another name is rarely the one of the address.
func penaltyOf(r network.Road, hasOtherName bool) (penalty float64) {
	if hasOtherName {
		penalty += route.OtherNameCost
	}
	if r.Class == profile.Motorway || r.IsLink || r.IsTunnel || r.IsBridge {
		penalty += route.ThroughCost
	}
	return penalty
}

// newSnap is the snap of a bound to a segment. Without an open edge it has no places.
func (m *modeEngine) newSnap(h network.Hit, r network.Road, cost float64, isOwn bool) *snap {
	s := &snap{cost: cost, access: route.Access{Point: h.Point, Distance: h.Distance, Street: r.Name, IsOnOwn: isOwn}}
	forward, backward := m.layer.SegmentEdges(h.Segment)
	s.component = math.MaxUint32
	for _, direction := range [...]struct {
		edge     uint32
		fraction float64
	}{{forward, h.Fraction}, {backward, 1 - h.Fraction}} {
		if direction.edge == graph.None {
			continue
		}
		s.places = append(s.places, search.PlaceOn(m.graph, direction.edge, direction.fraction))
		s.component = min(s.component, m.graph.Component[direction.edge])
	}
	return s
}

// snapCacheSize is how many bounds a cache holds: the sites of a customer are asked for again and again.
const snapCacheSize = 1 << 16

// snapCache keeps the candidates of bounds. It has two generations of half its size. New and used bounds go to the young one; when that
// is full it becomes the old one, and the old one is dropped. So a bound in use stays, and a read of the young generation needs
// only a shared lock; an LRU list is written on every read. It is safe for concurrent use.
type snapCache struct {
	mu         sync.RWMutex
	young, old map[route.Bound]candidates // candidates are shared by queries, which must not change them
}

// newSnapCache returns an empty cache.
func newSnapCache() *snapCache { return &snapCache{young: map[route.Bound]candidates{}} }

// get returns the candidates of a bound. Those of the old generation move to the young one.
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

// put adds a bound to the young generation.
func (s *snapCache) put(b route.Bound, c candidates) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.young) >= snapCacheSize/2 {
		s.old, s.young = s.young, map[route.Bound]candidates{}
	}
	s.young[b] = c
}
