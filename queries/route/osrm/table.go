package osrm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
)

// mostInTable is how many origins, and how many destinations, one request has: the default limit of a server, and a path of 5 KB.
const mostInTable = 100

// Matrix answers as route.Router says. Cells without a way get one with fewer exclusions, as routes do.
func (r *Router) Matrix(ctx context.Context, q route.MatrixQuery) (route.Matrix, error) {
	s, err := r.serverFor(q.Mode)
	if err != nil {
		return route.Matrix{}, err
	}
	places, err := s.locate(ctx, slices.Concat(q.Origins, q.Destinations))
	if err != nil {
		return route.Matrix{}, err
	}
	t := newTable(s, places[:len(q.Origins)], places[len(q.Origins):])
	if len(t.Durations) == 0 || len(t.destinations) == 0 {
		return t.Matrix, nil
	}
	if err := s.checkTableWeight(ctx, q.Profile); err != nil {
		return route.Matrix{}, err
	}
	err = relax(q.Profile, func(excluded route.Avoid) error {
		if err := t.fill(ctx, excluded); err != nil {
			return err
		}
		if t.isFull() || excluded == 0 {
			return nil
		}
		return route.ErrNoRoute // for some, so ask for these with fewer exclusions
	})
	return t.Matrix, err
}

// checkTableWeight is checkWeight for a matrix, whose answer does not name the weight: that of the last route does, and where there
// was none, a route from a place to itself. The place is any, as no radius is given.
func (s *server) checkTableWeight(ctx context.Context, p route.Profile) error {
	if s.weight.Load() == nil {
		a, err := s.ask(ctx, "/route/v1/"+profileNames[s.mode]+"/0,0;0,0?overview=false", routeserver.RouteTimeout)
		if err != nil {
			return err
		}
		if len(a.Routes) == 0 {
			return &routeserver.BadAnswerError{Reason: "without a route"}
		}
		return s.checkWeight(p, a.Routes[0].WeightName)
	}
	return s.checkWeight(p, *s.weight.Load())
}

// Nearest answers as route.Router says, from a matrix of one row.
func (r *Router) Nearest(ctx context.Context, q route.NearestQuery) (route.Nearest, error) {
	if len(q.Destinations) == 0 {
		q.Destinations, q.Limit = []route.Bound{q.Origin}, 0 // so that the origin is looked for
	}
	m, err := r.Matrix(ctx, route.MatrixQuery{Profile: q.Profile, Origins: []route.Bound{q.Origin}, Destinations: q.Destinations})
	if err != nil {
		return route.Nearest{}, err
	}
	if m.OriginAccesses[0] == (route.Access{}) {
		return route.Nearest{}, &route.OffRoadError{Bound: 0}
	}
	n := route.Nearest{Access: m.OriginAccesses[0]}
	for i, duration := range m.Durations[0] {
		if duration != route.Unreachable {
			n.Found = append(n.Found, route.NearDestination{Index: i, Access: m.DestinationAccesses[i], Distance: m.Distances[0][i], Duration: duration})
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

// table is a matrix that is being filled.
type table struct {
	server                *server
	origins, destinations []place

	mu sync.Mutex
	route.Matrix
}

// newTable returns a matrix without any way.
func newTable(s *server, origins, destinations []place) *table {
	t := &table{server: s, origins: origins, destinations: destinations}
	t.OriginAccesses, t.DestinationAccesses = make([]route.Access, len(origins)), make([]route.Access, len(destinations))
	for range origins {
		t.Durations = append(t.Durations, slices.Repeat([]float64{route.Unreachable}, len(destinations)))
		t.Distances = append(t.Distances, slices.Repeat([]float64{route.Unreachable}, len(destinations)))
	}
	return t
}

func (t *table) isFull() bool {
	return !slices.ContainsFunc(t.Durations, func(row []float64) bool { return slices.Contains(row, route.Unreachable) })
}

// fill fills cells that have no way yet, by ways without the roads that are excluded.
func (t *table) fill(ctx context.Context, excluded route.Avoid) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for rows := range slices.Chunk(indexes(len(t.origins)), mostInTable) {
		for columns := range slices.Chunk(indexes(len(t.destinations)), mostInTable) {
			group.Go(func() error { return t.fillBlock(groupCtx, block{rows, columns}, excluded) })
		}
	}
	if err := group.Wait(); err != nil {
		return firstError(ctx, err)
	}
	return nil
}

func indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// block is a part of a table: some rows and some columns.
type block struct{ rows, columns []int }

// fillBlock fills a part of the table. What is too much for the server is asked for in halves.
func (t *table) fillBlock(ctx context.Context, b block, excluded route.Avoid) error {
	if len(b.rows) == 0 || len(b.columns) == 0 {
		return nil
	}
	a, err := t.askBlock(ctx, b, excluded)
	switch {
	case errors.Is(err, errOffRoad):
		return t.fillOnRoad(ctx, b, excluded)
	case errors.Is(err, errTooBig) && len(b.rows)+len(b.columns) > 2:
		first, second := b.halves()
		if err := t.fillBlock(ctx, first, excluded); err != nil {
			return err
		}
		return t.fillBlock(ctx, second, excluded)
	case err != nil:
		return err
	}
	return t.store(b, a)
}

// halves splits a block across its longer side.
func (b block) halves() (first, second block) {
	if n := len(b.rows) / 2; len(b.rows) >= len(b.columns) {
		return block{b.rows[:n], b.columns}, block{b.rows[n:], b.columns}
	}
	n := len(b.columns) / 2
	return block{b.rows, b.columns[:n]}, block{b.rows, b.columns[n:]}
}

// fillOnRoad fills a block without the places that are off the road: one of them makes the server refuse all.
func (t *table) fillOnRoad(ctx context.Context, b block, excluded route.Avoid) error {
	places := t.placesOf(b)
	near, err := t.server.nearestOf(ctx, places, excluded)
	if err != nil {
		return err
	}
	rows, columns := len(b.rows), len(b.columns)
	on := block{onRoad(b.rows, near[:rows]), onRoad(b.columns, near[rows:])}
	if len(on.rows) == rows && len(on.columns) == columns {
		return errContradiction
	}
	if len(on.rows) > 0 && len(on.columns) > 0 {
		return t.fillBlock(ctx, on, excluded)
	}
	t.mu.Lock() // there is no way, but there is a road
	defer t.mu.Unlock()
	return errors.Join(storeAccesses(t.OriginAccesses, t.origins, b.rows, near[:rows]), storeAccesses(t.DestinationAccesses, t.destinations, b.columns, near[rows:]))
}

// onRoad returns the indexes of the places that have a road near them.
func onRoad(indexes []int, near []waypoint) (on []int) {
	for i, index := range indexes {
		if near[i].Location != nil {
			on = append(on, index)
		}
	}
	return on
}

// placesOf returns the origins of a block and then its destinations.
func (t *table) placesOf(b block) []place {
	places := make([]place, 0, len(b.rows)+len(b.columns))
	for _, row := range b.rows {
		places = append(places, t.origins[row])
	}
	for _, column := range b.columns {
		places = append(places, t.destinations[column])
	}
	return places
}

func (t *table) askBlock(ctx context.Context, b block, excluded route.Avoid) (answer, error) {
	options := fmt.Sprintf("&annotations=duration,distance&sources=%s&destinations=%s", numberList(0, len(b.rows)), numberList(len(b.rows), len(b.columns)))
	path := t.server.requestPath("table", positions(t.placesOf(b)), options, excluded)
	return t.server.ask(ctx, path, routeserver.MatrixTimeout)
}

// numberList lists n numbers from first on.
func numberList(first, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(first + i)
	}
	return strings.Join(list, ";")
}

// store checks the answer for a block and copies its cells to those that have no way yet.
func (t *table) store(b block, a answer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(a.Sources) != len(b.rows) || len(a.Destinations) != len(b.columns) || len(a.Durations) != len(b.rows) || len(a.Distances) != len(b.rows) {
		return &routeserver.BadAnswerError{Reason: "with another number of rows"}
	}
	if err := storeAccesses(t.OriginAccesses, t.origins, b.rows, a.Sources); err != nil {
		return err
	}
	if err := storeAccesses(t.DestinationAccesses, t.destinations, b.columns, a.Destinations); err != nil {
		return err
	}
	for i, row := range b.rows {
		if len(a.Durations[i]) != len(b.columns) || len(a.Distances[i]) != len(b.columns) {
			return &routeserver.BadAnswerError{Reason: "with another number of columns"}
		}
		for j, column := range b.columns {
			duration, distance := a.Durations[i][j], a.Distances[i][j]
			if duration == nil || distance == nil || t.Durations[row][column] != route.Unreachable {
				continue
			}
			if err := routeserver.CheckCosts(*duration, *distance); err != nil {
				return err
			}
			t.Durations[row][column], t.Distances[row][column] = *duration, *distance
		}
	}
	return nil
}

// storeAccesses stores where places meet the network, for those that do and of which it is not known yet.
func storeAccesses(accesses []route.Access, places []place, at []int, waypoints []waypoint) error {
	for i, index := range at {
		if waypoints[i].Location == nil {
			continue
		}
		access, err := places[index].access(waypoints[i])
		if err != nil {
			return err
		}
		if accesses[index] == (route.Access{}) {
			accesses[index] = access
		}
	}
	return nil
}
