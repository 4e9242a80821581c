package search

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/overlay"
)

// Leg is a part of a journey through stops: the places where it may begin and those where it may end.
type Leg struct{ From, To []Place }

// Through finds the best paths of legs that follow each other, such that each leg leaves from the access where the previous leg
// arrived. It fails with route.ErrNoRoute if no such paths exist.
//
// If the best paths of the single legs agree at every stop, as they mostly do, they are the answer. Otherwise the weights between
// all accesses of each leg decide, which are a small matrix.
func (s *Searcher) Through(ctx context.Context, p route.Profile, legs []Leg) ([]Path, error) {
	paths := make([]Path, len(legs))
	agree := true
	for i, leg := range legs {
		path, err := s.Route(ctx, p, leg.From, leg.To)
		if err != nil {
			return nil, err
		}
		paths[i] = path
		agree = agree && (i == 0 || paths[i-1].End.Access == path.Start.Access)
	}
	if agree {
		return paths, nil
	}
	accesses, err := s.chooseAccesses(ctx, p, legs)
	if err != nil {
		return nil, err
	}
	for i, leg := range legs {
		from, to := accesses[i], accesses[i+1]
		if paths[i].Start.Access == from && paths[i].End.Access == to {
			continue
		}
		if paths[i], err = s.Route(ctx, p, PlacesOf(leg.From, from), PlacesOf(leg.To, to)); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// PlacesOf returns those places that belong to an access.
func PlacesOf(places []Place, access uint32) (own []Place) {
	for _, p := range places {
		if p.Access == access {
			own = append(own, p)
		}
	}
	return own
}

// chooseAccesses returns the access of each stop, and of both ends, that minimise the total weight of the legs.
func (s *Searcher) chooseAccesses(ctx context.Context, p route.Profile, legs []Leg) ([]uint32, error) {
	q, err := s.begin(ctx, p, s.Budgets.Matrix)
	if err != nil {
		return nil, err
	}
	defer s.release(q)
	j := journey{weights: map[uint32]uint64{}}
	for _, access := range accessesOf(legs[0].From) {
		j.weights[access] = 0
	}
	for _, leg := range legs {
		from, to := accessesOf(leg.From), accessesOf(leg.To)
		starts, ends := groupByAccess(leg.From, from), groupByAccess(leg.To, to)
		m := newMatrix(q, starts, ends)
		if err := m.fill(); err != nil {
			return nil, err
		}
		if err := (areaSearch{q}).keepInside(starts, ends, m.weights); err != nil {
			return nil, err
		}
		j.extend(from, to, m.weights)
	}
	return j.accesses()
}

// journey holds the best ways through the stops so far, one for each access of the last.
type journey struct {
	weights  map[uint32]uint64   // by access, the primary weights of all legs: their sum may be more than a path may weigh
	cameFrom []map[uint32]uint32 // by leg: maps the access where it ends to the one where it begins
}

// extend adds a leg, given the weights between the accesses where it may begin and end. The first of equal ways wins.
func (j *journey) extend(from, to []uint32, weights [][]overlay.Weight) {
	next, cameFrom := map[uint32]uint64{}, map[uint32]uint32{}
	for row, start := range from {
		soFar, ok := j.weights[start]
		for column, end := range to {
			weight := weights[row][column]
			if !ok || weight.Key >= overlay.NoPath {
				continue
			}
			sum := soFar + weight.Key>>32
			if best, isKnown := next[end]; !isKnown || sum < best {
				next[end], cameFrom[end] = sum, start
			}
		}
	}
	j.weights, j.cameFrom = next, append(j.cameFrom, cameFrom)
}

// accesses returns the accesses of the best way. It fails with route.ErrNoRoute if no way exists.
func (j *journey) accesses() ([]uint32, error) {
	if len(j.weights) == 0 {
		return nil, route.ErrNoRoute
	}
	last := slices.MinFunc(slices.Sorted(maps.Keys(j.weights)), func(a, b uint32) int { return cmp.Compare(j.weights[a], j.weights[b]) })
	all := []uint32{last}
	for _, cameFrom := range slices.Backward(j.cameFrom) {
		all = append(all, cameFrom[all[len(all)-1]])
	}
	slices.Reverse(all)
	return all, nil
}

// accessesOf lists the accesses of places, in their order.
func accessesOf(places []Place) (accesses []uint32) {
	for _, p := range places {
		if !slices.Contains(accesses, p.Access) {
			accesses = append(accesses, p.Access)
		}
	}
	return accesses
}

// groupByAccess returns the places of each access.
func groupByAccess(places []Place, accesses []uint32) [][]Place {
	groups := make([][]Place, len(accesses))
	for i, access := range accesses {
		groups[i] = PlacesOf(places, access)
	}
	return groups
}
