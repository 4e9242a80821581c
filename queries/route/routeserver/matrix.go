package routeserver

import (
	"cmp"
	"context"
	"slices"

	"lieudit/queries/route"
)

// NewMatrix returns a matrix without any way and without accesses.
func NewMatrix(origins, destinations int) route.Matrix {
	m := route.Matrix{OriginAccesses: make([]route.Access, origins), DestinationAccesses: make([]route.Access, destinations)}
	for range origins {
		m.Durations = append(m.Durations, slices.Repeat([]float64{route.Unreachable}, destinations))
		m.Distances = append(m.Distances, slices.Repeat([]float64{route.Unreachable}, destinations))
	}
	return m
}

// FindNearest answers a question for the nearest with a matrix of one row. It fails with the errors of matrix, and with a
// *route.OffRoadError if the origin has no access.
func FindNearest(
	ctx context.Context, q route.NearestQuery, matrix func(context.Context, route.MatrixQuery) (route.Matrix, error),
) (route.Nearest, error) {
	m, err := matrix(ctx, route.MatrixQuery{Profile: q.Profile, Origins: []route.Bound{q.Origin}, Destinations: q.Destinations})
	if err != nil {
		return route.Nearest{}, err
	}
	return nearestOf(q, m)
}

// nearestOf picks the nearest from the matrix of one row from the origin to the destinations.
func nearestOf(q route.NearestQuery, m route.Matrix) (route.Nearest, error) {
	n := route.Nearest{Access: m.OriginAccesses[0]}
	if n.Access == (route.Access{}) {
		return n, &route.OffRoadError{Bound: 0}
	}
	for i, duration := range m.Durations[0] {
		if duration != route.Unreachable {
			found := route.NearDestination{Index: i, Access: m.DestinationAccesses[i], Distance: m.Distances[0][i], Duration: duration}
			n.Found = append(n.Found, found)
		}
	}
	slices.SortStableFunc(n.Found, func(a, b route.NearDestination) int {
		if q.Optimization == route.Shortest {
			return cmp.Compare(a.Distance, b.Distance)
		}
		return cmp.Compare(a.Duration, b.Duration)
	})
	n.Found = n.Found[:min(len(n.Found), max(0, q.Limit))]
	return n, nil
}

// Block is a part of a matrix that one request fills: the indexes of some origins and of some destinations.
type Block struct{ Rows, Columns []int }

// Blocks splits a matrix into blocks of at most mostRows origins and mostColumns destinations.
func Blocks(rows, columns []int, mostRows, mostColumns int) (blocks []Block) {
	for r := range slices.Chunk(rows, mostRows) {
		for c := range slices.Chunk(columns, mostColumns) {
			blocks = append(blocks, Block{r, c})
		}
	}
	return blocks
}

// Halves splits a block across its longer side.
func (b Block) Halves() (first, second Block) {
	if n := len(b.Rows) / 2; len(b.Rows) >= len(b.Columns) {
		return Block{b.Rows[:n], b.Columns}, Block{b.Rows[n:], b.Columns}
	}
	n := len(b.Columns) / 2
	return Block{b.Rows, b.Columns[:n]}, Block{b.Rows, b.Columns[n:]}
}

// Cells is the number of cells of a block.
func (b Block) Cells() int { return len(b.Rows) * len(b.Columns) }

// Indexes returns the numbers from 0 up to n.
func Indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
