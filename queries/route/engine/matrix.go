package engine

import (
	"context"

	"lieudit/queries/route"
	"lieudit/queries/route/search"
)

// Matrix implements route.Router. A pair of bounds whose nearest roads lie in one small component is routed within it, as
// Route does; all other pairs are routed from and to the largest component. So the pairs of each small component are a matrix of
// their own, which overwrites their cells in the matrix of all.
func (e *Engine) Matrix(ctx context.Context, q route.MatrixQuery) (a route.Matrix, err error) {
	m, err := e.mode(ctx, q.Mode)
	if err != nil {
		return a, err
	}
	origins, err := m.findAllCandidates(ctx, q.Origins)
	if err != nil {
		return a, err
	}
	destinations, err := m.findAllCandidates(ctx, q.Destinations)
	if err != nil {
		return a, err
	}
	a = route.Matrix{
		OriginAccesses: accesses(origins), DestinationAccesses: accesses(destinations),
		Durations: newRows(len(origins), len(destinations)), Distances: newRows(len(origins), len(destinations)),
	}
	if err := m.fillCells(ctx, q.Profile, &a, pickPreferred(origins), pickPreferred(destinations)); err != nil {
		return a, err
	}
	for _, component := range smallComponents(origins) {
		if err := m.fillCells(ctx, q.Profile, &a, pickWithin(origins, component), pickWithin(destinations, component)); err != nil {
			return a, err
		}
	}
	return a, nil
}

// accesses are the accesses of bounds, in the largest component where they have one there. A bound that is too far from any road has
// the zero Access.
func accesses(all []candidates) []route.Access {
	out := make([]route.Access, len(all))
	for i, c := range all {
		if s := c.choose(false); s != nil {
			out[i] = s.access
		}
	}
	return out
}

// newRows are the rows of a matrix, with Unreachable in every cell.
func newRows(rows, columns int) [][]float64 {
	all := make([][]float64, rows)
	for i := range all {
		all[i] = make([]float64, columns)
		for j := range all[i] {
			all[i][j] = route.Unreachable
		}
	}
	return all
}

// picked are some of the bounds of a matrix by their indexes, with their places.
type picked struct {
	indexes []int
	places  [][]search.Place
}

// add picks a bound with one of its candidates.
func (p *picked) add(index int, s *snap) {
	p.indexes = append(p.indexes, index)
	p.places = append(p.places, s.places)
}

// pickPreferred are all bounds that are near enough to a road, in the largest component where that is near enough.
func pickPreferred(all []candidates) (p picked) {
	for i, c := range all {
		if s := c.choose(false); s != nil {
			p.add(i, s)
		}
	}
	return p
}

// pickWithin are the bounds whose nearest road lies in a component.
func pickWithin(all []candidates, component uint32) (p picked) {
	for i, c := range all {
		if c.nearest != nil && c.nearest.component == component {
			p.add(i, c.nearest)
		}
	}
	return p
}

// smallComponents are the components, other than the largest, in which the nearest roads of some bounds lie.
func smallComponents(all []candidates) (components []uint32) {
	seen := map[uint32]bool{0: true}
	for _, c := range all {
		if c.nearest != nil && !seen[c.nearest.component] {
			seen[c.nearest.component] = true
			components = append(components, c.nearest.component)
		}
	}
	return components
}

// fillCells fills in the cells of each picked origin and each picked destination. A pair without a route keeps what its cell says.
func (m *modeEngine) fillCells(ctx context.Context, p route.Profile, a *route.Matrix, origins, destinations picked) error {
	if len(origins.indexes) == 0 || len(destinations.indexes) == 0 {
		return nil
	}
	costs, err := m.searcher.Matrix(ctx, p, origins.places, destinations.places)
	if err != nil {
		return err
	}
	for i, o := range origins.indexes {
		for j, d := range destinations.indexes {
			if cost := costs[i][j]; cost != search.Unreachable {
				a.Durations[o][d], a.Distances[o][d] = seconds(cost.Duration), metres(cost.Distance)
			}
		}
	}
	return nil
}

// Nearest implements route.Router. It searches the largest component. Where the nearest road of the origin lies in a small component
// that has destinations too, it searches that one: from an island the destinations of the island are the nearest.
func (e *Engine) Nearest(ctx context.Context, q route.NearestQuery) (a route.Nearest, err error) {
	m, err := e.mode(ctx, q.Mode)
	if err != nil {
		return a, err
	}
	origin, _ := m.findCandidates(q.Origin)
	destinations, err := m.findAllCandidates(ctx, q.Destinations)
	if err != nil {
		return a, err
	}
	start, targets := origin.choose(false), pickPreferred(destinations)
	if own := origin.nearest; own != nil && own.component != 0 {
		if within := pickWithin(destinations, own.component); len(within.indexes) > 0 {
			start, targets = own, within
		}
	}
	if start == nil {
		return a, &route.OffRoadError{}
	}
	a.Access = start.access
	found, err := m.searcher.Nearest(ctx, q.Profile, start.places, targets.places, q.Limit)
	for _, f := range found {
		index := targets.indexes[f.Index]
		a.Found = append(a.Found, route.NearDestination{
			Index: index, Access: destinations[index].choose(start == origin.nearest && start != origin.main).access,
			Distance: metres(f.Cost.Distance), Duration: seconds(f.Cost.Duration),
		})
	}
	return a, err
}
