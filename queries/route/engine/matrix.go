package engine

import (
	"context"

	"lieudit/queries/route"
	"lieudit/queries/route/search"
)

// Matrix implements route.Router.
func (e *Engine) Matrix(ctx context.Context, q route.MatrixQuery) (a route.Matrix, err error) {
	m, err := e.mode(ctx, q.Mode)
	if err != nil {
		return a, err
	}
	origins, err := m.snapAll(ctx, q.Origins)
	if err != nil {
		return a, err
	}
	destinations, err := m.snapAll(ctx, q.Destinations)
	if err != nil {
		return a, err
	}
	a = route.Matrix{
		OriginAccesses: bestAccesses(origins), DestinationAccesses: bestAccesses(destinations),
		Durations: newRows(len(origins), len(destinations)), Distances: newRows(len(origins), len(destinations)),
	}
	return a, m.fillCells(ctx, q.Profile, &a, pickOnRoad(origins), pickOnRoad(destinations))
}

// bestAccesses are the best accesses of bounds. A bound that is too far from any road has the zero Access.
func bestAccesses(all []*snap) []route.Access {
	out := make([]route.Access, len(all))
	for i, s := range all {
		if s != nil {
			out[i] = s.best()
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

// picked is a selection of the bounds of a matrix, by index, with their places.
type picked struct {
	indexes  []int
	from, to [][]search.Place
}

// pickOnRoad are all bounds that are near enough to a road.
func pickOnRoad(all []*snap) picked {
	n := len(all)
	p := picked{make([]int, 0, n), make([][]search.Place, 0, n), make([][]search.Place, 0, n)}
	for i, s := range all {
		if s != nil {
			p.indexes = append(p.indexes, i)
			p.from, p.to = append(p.from, s.from), append(p.to, s.to)
		}
	}
	return p
}

// fillCells fills in the cells of each picked origin and each picked destination. The cell of a pair without a route keeps its
// value.
func (m *modeEngine) fillCells(ctx context.Context, p route.Profile, a *route.Matrix, origins, destinations picked) error {
	if len(origins.indexes) == 0 || len(destinations.indexes) == 0 {
		return nil
	}
	costs, err := m.searcher.Matrix(ctx, p, origins.from, destinations.to)
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

// Nearest implements route.Router.
func (e *Engine) Nearest(ctx context.Context, q route.NearestQuery) (a route.Nearest, err error) {
	m, err := e.mode(ctx, q.Mode)
	if err != nil {
		return a, err
	}
	origin, _ := m.snap(q.Origin)
	snaps, err := m.snapAll(ctx, q.Destinations)
	if err != nil {
		return a, err
	}
	if origin == nil {
		return a, &route.OffRoadError{}
	}
	a.Access = origin.best()
	targets := pickOnRoad(snaps)
	found, err := m.searcher.Nearest(ctx, q.Profile, origin.from, targets.to, q.Limit)
	for _, f := range found {
		index := targets.indexes[f.Index]
		a.Found = append(a.Found, route.NearDestination{
			Index: index, Access: snaps[index].best(), Distance: metres(f.Cost.Distance), Duration: seconds(f.Cost.Duration),
		})
	}
	return a, err
}
