package routertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"lieudit/queries/route"
)

// matrixRules are the rules about many places at once.
func matrixRules() []rule {
	return []rule{
		{"a cell of a matrix is the route", func(ctx context.Context, s *suite) error { return s.checkCells(ctx, byCar) }},
		{"a cell of a matrix is the route on foot", func(ctx context.Context, s *suite) error {
			return s.checkCells(ctx, route.Profile{Mode: route.Foot, Optimization: route.Fastest})
		}},
		{"a cell of a matrix is the route that avoids tolls", func(ctx context.Context, s *suite) error {
			return s.checkCells(ctx, route.Profile{Mode: route.Car, Optimization: route.Fastest, Avoid: route.Tolls})
		}},
		{"a place that cannot be reached leaves its cells empty", checkUnreachableCells},
		{"nearest orders by duration", checkNearest},
		{"nearest leaves out what cannot be reached", checkNearestUnreachable},
		{"nearest names an origin that is far from any road", checkNearestOffRoad},
		{"a matrix of many rows has them all", checkLargeMatrix},
	}
}

// spread are places all over the town.
func (s *suite) spread() (bounds []route.Bound, err error) {
	for _, p := range [...][2]string{
		{"oneway", "0A"}, {"oneway", "AB"}, {"restricted", "DA"}, {"ferry", "BC"}, {"toll", "BE"}, {"toll", "DC"}, {"deadend", "AB"}, {"contraflow", "BE"},
	} {
		b, err := s.bounds(p[0], p[1])
		if err != nil {
			return nil, err
		}
		bounds = append(bounds, b...)
	}
	return bounds, nil
}

// checkCells compares each cell with the route between its places.
func (s *suite) checkCells(ctx context.Context, p route.Profile) error {
	bounds, err := s.spread()
	if err != nil {
		return err
	}
	return s.compareCells(ctx, p, bounds, bounds[2:])
}

// compareCells compares each cell of a matrix with the route between its bounds.
func (s *suite) compareCells(ctx context.Context, p route.Profile, origins, destinations []route.Bound) error {
	m, err := s.router.Matrix(ctx, route.MatrixQuery{Profile: p, Origins: origins, Destinations: destinations})
	if err != nil {
		return err
	}
	rows, columns := len(origins), len(destinations)
	if len(m.Durations) != rows || len(m.Distances) != rows || len(m.OriginAccesses) != rows || len(m.DestinationAccesses) != columns {
		return fmt.Errorf("%d rows for %d origins", len(m.Durations), rows)
	}
	for i, from := range origins {
		for j, to := range destinations {
			a, err := s.router.Route(ctx, route.Query{Profile: p, Bounds: []route.Bound{from, to}})
			if err != nil {
				return fmt.Errorf("from %d to %d: %w", i, j, err)
			}
			r, duration, distance := a.Routes[0], m.Durations[i][j], m.Distances[i][j]
			if !s.isCell(duration, r.Duration) || !s.isCell(distance, r.Distance) {
				return fmt.Errorf("from %d to %d: %.2f s, %.2f m in the matrix, %.2f s, %.2f m by route", i, j, duration, distance, r.Duration, r.Distance)
			}
		}
	}
	return nil
}

// isCell reports whether a cell is what a route has. Foreign engines round both.
func (s *suite) isCell(cell, want float64) bool {
	if s.MatrixTolerance == 0 {
		return cell == want
	}
	return math.Abs(cell-want) <= 2+want*s.MatrixTolerance
}

func checkUnreachableCells(ctx context.Context, s *suite) error {
	on, err := s.bounds("oneway", "0A BE")
	island, err2 := s.bounds("island", "AB")
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	sea := route.Bound{Point: atSea}
	q := route.MatrixQuery{Profile: byCar, Origins: []route.Bound{on[0], sea}, Destinations: []route.Bound{sea, on[1], island[0]}}
	m, err := s.router.Matrix(ctx, q)
	if err != nil {
		return err
	}
	for i, row := range m.Durations {
		for j, duration := range row {
			isReached, distance := i == 0 && j == 1, m.Distances[i][j]
			if isReached != (duration >= 0) || isReached != (distance >= 0) || duration < 0 && duration != route.Unreachable {
				return fmt.Errorf("cell %d, %d is %v, %v", i, j, duration, distance)
			}
		}
	}
	none := route.Access{}
	if m.OriginAccesses[1] != none || m.DestinationAccesses[0] != none || m.OriginAccesses[0] == none || m.DestinationAccesses[1] == none {
		return fmt.Errorf("accesses %v and %v", m.OriginAccesses, m.DestinationAccesses)
	}
	return nil
}

func checkNearest(ctx context.Context, s *suite) error {
	origin, err := s.bounds("oneway", "BE")
	destinations, err2 := s.bounds("oneway", "0A@10 BC AB@80 0A@90 BC")
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	for limit, want := range map[int][]int{1: {1}, 3: {1, 4, 3}, 9: {1, 4, 3, 0, 2}} {
		n, err := s.router.Nearest(ctx, route.NearestQuery{Profile: byCar, Origin: origin[0], Destinations: destinations, Limit: limit})
		if err != nil {
			return err
		}
		got := make([]int, 0, len(n.Found))
		for _, f := range n.Found {
			got = append(got, f.Index)
		}
		isSorted := slices.IsSortedFunc(n.Found, func(a, b route.NearDestination) int { return cmp.Compare(a.Duration, b.Duration) })
		if !slices.Equal(got, want) || !isSorted {
			return fmt.Errorf("limit %d: got %v, want %v: %+v", limit, got, want, n.Found)
		}
	}
	return nil
}

func checkNearestUnreachable(ctx context.Context, s *suite) error {
	on, err := s.bounds("oneway", "0A BE")
	island, err2 := s.bounds("island", "AB")
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	q := route.NearestQuery{Profile: byCar, Origin: on[0], Destinations: []route.Bound{{Point: atSea}, island[0], on[1]}, Limit: 3}
	n, err := s.router.Nearest(ctx, q)
	if err != nil {
		return err
	}
	if len(n.Found) != 1 || n.Found[0].Index != 2 || n.Found[0].Access == (route.Access{}) || n.Access == (route.Access{}) {
		return fmt.Errorf("got %+v", n)
	}
	q.Destinations = q.Destinations[:1]
	n, err = s.router.Nearest(ctx, q)
	return errors.Join(err, unless(len(n.Found) == 0 && n.Access != (route.Access{}), fmt.Sprintf("got %+v", n)))
}

func checkNearestOffRoad(ctx context.Context, s *suite) error {
	on, err := s.bounds("oneway", "0A")
	if err != nil {
		return err
	}
	_, err = s.router.Nearest(ctx, route.NearestQuery{Profile: byCar, Origin: route.Bound{Point: atSea}, Destinations: on, Limit: 1})
	var off *route.OffRoadError
	if !errors.As(err, &off) || off.Bound != 0 {
		return fmt.Errorf("got %v", err)
	}
	return nil
}

func checkLargeMatrix(ctx context.Context, s *suite) error {
	const n = 130
	var destinations []route.Bound
	for i := range n {
		b, err := s.bounds("toll", fmt.Sprintf("DC@%d", i%50))
		if err != nil {
			return err
		}
		destinations = append(destinations, b...)
	}
	origin, err := s.bounds("toll", "0A")
	if err != nil {
		return err
	}
	m, err := s.router.Matrix(ctx, route.MatrixQuery{Profile: byCar, Origins: origin, Destinations: destinations})
	if err != nil {
		return err
	}
	if len(m.Distances) != 1 || len(m.Distances[0]) != n {
		return fmt.Errorf("%d rows", len(m.Distances))
	}
	for i, d := range m.Distances[0] {
		if want := m.Distances[0][i%50]; d < 0 || i%50 > 0 && d < m.Distances[0][i-1] || d != want {
			return fmt.Errorf("destination %d is at %.1f m", i, d)
		}
	}
	return nil
}
