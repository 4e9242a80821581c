package engine

import (
	"context"
	"math"
	"sync"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/search"
	"lieudit/queries/worker"
)

// snap is a bound that was moved onto the network: the accesses where a route from it or to it may begin or end. A search takes the
// best. Every question uses the same places, so that a cell of a matrix is the route between its two bounds.
type snap struct {
	accesses []route.Access // the best first; their indexes are the numbers search.Place.Access
	from, to []search.Place
}

// best is the access that an answer reports if it does not report which one a route takes.
func (s *snap) best() route.Access { return s.accesses[0] }

// The approximate times to snap a bound: from the cache, and on the network.
const (
	cachedSnapWork = 300 * time.Nanosecond
	snapWork       = 25 * time.Microsecond
)

// snapAll snaps bounds; nil stands for a bound that is too far from any road.
func (m *modeEngine) snapAll(ctx context.Context, bounds []route.Bound) ([]*snap, error) {
	const boundsToYield = 16
	all, work := make([]*snap, len(bounds)), time.Duration(0)
	for i, b := range bounds {
		if i%boundsToYield == 0 {
			if err := worker.Yield(ctx, work); err != nil {
				return nil, err
			}
			work = 0
		}
		s, isCached := m.snap(b)
		all[i] = s
		if work += cachedSnapWork; !isCached {
			work += snapWork
		}
	}
	worker.Count(ctx, work)
	return all, nil
}

// snap snaps a bound, from the cache if it was asked for before.
func (m *modeEngine) snap(b route.Bound) (s *snap, isCached bool) {
	if s, ok := m.snaps.get(b); ok {
		return s, true
	}
	s = m.newSnap(m.findRoads(b))
	m.snaps.put(b, s)
	return s, false
}

// excessPace is the time in seconds that each metre weighs by which an access is farther than the best one: accessRange metres
// weigh ten seconds.
const excessPace = 0.4

// newSnap makes the accesses of the roads near a bound; nil if no road is near.
//
// All roads that are about as near as the nearest one are accesses. They may lie on an island, or in a part of the network that can
// only be entered or only be left, so that they lead to some bounds and not to others. For the others the nearest roads of the main
// part are accesses too: a last resort, which a search takes only if there is no other path.
func (m *modeEngine) newSnap(roads nearRoads) *snap {
	b := snapBuilder{modeEngine: m, snap: &snap{}}
	b.add(roads.within(roads.least), false)
	if !b.hasMain && !math.IsInf(roads.leastMain, 1) {
		b.add(roads.ofMain().within(roads.leastMain), true)
	}
	if len(b.accesses) == 0 {
		return nil
	}
	return b.snap
}

// maxAccesses is the number of accesses that a group of roads may have: enough for the streets around a square.
const maxAccesses = 8

// snapBuilder makes the places of accesses.
type snapBuilder struct {
	*modeEngine
	*snap
	hasMain bool // an access belongs to the main part

	// covered are the junctions to and from which the roads of an access lead: a road that is nearest there does not become a
	// separate access.
	covered map[uint32]bool
	at      map[uint32]uint32 // accesses by the junctions at which they are
}

// add makes accesses of roads, the best first. Roads that meet at a junction next to the bound are one access.
func (b *snapBuilder) add(roads []nearRoad, isLastResort bool) {
	b.covered, b.at = map[uint32]bool{}, map[uint32]uint32{}
	first := len(b.accesses)
	for i := range roads {
		r := &roads[i]
		isAtJunction := r.junction != noJunction
		access, isKnown := b.at[r.junction]
		if isAtJunction && !isKnown && b.covered[r.junction] {
			b.cover(r)
			continue
		}
		if !isAtJunction || !isKnown {
			if len(b.accesses)-first == maxAccesses {
				continue
			}
			access = uint32(len(b.accesses))
			b.accesses = append(b.accesses, r.access)
			if isAtJunction {
				b.at[r.junction] = access
			}
		}
		b.hasMain = b.hasMain || r.isMain
		b.cover(r)
		place := search.Place{Access: access, IsLastResort: isLastResort, Excess: excessOf(r.cost - roads[0].cost)}
		b.addEdges(r, place)
	}
}

// cover notes the junctions at the ends of a road that is open in both directions.
func (b *snapBuilder) cover(r *nearRoad) {
	if r.isTwoWay() {
		b.covered[b.graph.Tail[r.edges[0]]], b.covered[b.graph.Head[r.edges[0]]] = true, true
	}
}

// excessOf is the excess of an access that is some metres farther than the best.
func excessOf(metres float64) search.Cost {
	return search.Cost{
		Duration: uint32(math.Round(metres * excessPace * graph.DurationUnit)), Distance: uint32(math.Round(metres * graph.DistanceUnit)),
	}
}

// addEdges adds the places of a road. At a junction a route begins on the edges that leave it and ends on those that arrive. The
// other edges weigh a little more: they are used if both ends are the same junction, and where the network ends.
func (b *snapBuilder) addEdges(r *nearRoad, like search.Place) {
	for direction, edge := range r.edges {
		if edge == graph.None {
			continue
		}
		if r.junction == noJunction {
			fraction := r.fraction
			if direction == backward {
				fraction = 1 - fraction
			}
			p := b.placeOn(edge, fraction, like)
			b.from, b.to = append(b.from, p), append(b.to, p)
			continue
		}
		if b.graph.Tail[edge] == r.junction {
			p := b.placeOn(edge, 0, like)
			b.from, b.to = append(b.from, p), append(b.to, moreExcess(p))
		}
		if b.graph.Head[edge] == r.junction {
			p := b.placeOn(edge, 1, like)
			b.from, b.to = append(b.from, moreExcess(p)), append(b.to, p)
		}
	}
}

// placeOn is the place at a fraction of an edge, with the other fields of another place.
func (b *snapBuilder) placeOn(edge uint32, fraction float64, like search.Place) search.Place {
	p := search.PlaceOn(b.graph, edge, fraction)
	p.Access, p.Excess, p.IsLastResort = like.Access, like.Excess, like.IsLastResort
	return p
}

// moreExcess is a place that weighs the least bit more.
func moreExcess(p search.Place) search.Place {
	p.Excess.Duration++
	p.Excess.Distance++
	return p
}

// snapCacheSize is how many bounds a cache holds: the sites of a customer are asked for again and again.
const snapCacheSize = 1 << 16

// snapCache keeps the snaps of bounds. It has two generations of half its size. New and used bounds go to the young one; when that
// is full it becomes the old one, and the old one is dropped. So a bound in use stays, and a read of the young generation needs
// only a shared lock; an LRU list is written on every read. It is safe for concurrent use.
type snapCache struct {
	mu         sync.RWMutex
	young, old map[route.Bound]*snap // snaps are shared by queries, which must not change them
}

// newSnapCache returns an empty cache.
func newSnapCache() *snapCache { return &snapCache{young: map[route.Bound]*snap{}} }

// get returns the snap of a bound. Those of the old generation move to the young one.
func (s *snapCache) get(b route.Bound) (*snap, bool) {
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
func (s *snapCache) put(b route.Bound, c *snap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.young) >= snapCacheSize/2 {
		s.old, s.young = s.young, map[route.Bound]*snap{}
	}
	s.young[b] = c
}
