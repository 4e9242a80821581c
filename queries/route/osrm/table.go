package osrm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
)

// mostInTable is how many origins, and how many destinations, one request has: the default limit of a server, and a path of 5 KB.
const mostInTable = 100

// Matrix implements route.Router. Cells without a way get one with fewer exclusions, as routes do.
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
		return route.ErrNoRoute // for some cells: ask for these with fewer exclusions
	})
	return t.Matrix, err
}

// checkTableWeight is checkWeight for a matrix, whose answer does not name the weight. The last route named it; if there was none
// yet, a route from a place to itself does. Any place will do, because no radius is given.
func (s *server) checkTableWeight(ctx context.Context, p route.Profile) error {
	if s.weight.Load() == nil {
		a, err := s.ask(ctx, "/route/v1/"+profileNames[s.mode]+"/0,0;0,0?overview=false", s.http.Route)
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

// Nearest implements route.Router, with a matrix of one row.
func (r *Router) Nearest(ctx context.Context, q route.NearestQuery) (route.Nearest, error) {
	if len(q.Destinations) == 0 {
		q.Destinations, q.Limit = []route.Bound{q.Origin}, 0 // so that the origin is located
	}
	return routeserver.FindNearest(ctx, q, r.Matrix)
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
	return &table{server: s, origins: origins, destinations: destinations, Matrix: routeserver.NewMatrix(len(origins), len(destinations))}
}

func (t *table) isFull() bool {
	return !slices.ContainsFunc(t.Durations, func(row []float64) bool { return slices.Contains(row, route.Unreachable) })
}

// fill fills cells that have no way yet, by ways without the roads that are excluded.
func (t *table) fill(ctx context.Context, excluded route.Avoid) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	rows, columns := routeserver.Indexes(len(t.origins)), routeserver.Indexes(len(t.destinations))
	for _, b := range routeserver.Blocks(rows, columns, mostInTable, mostInTable) {
		group.Go(func() error { return t.fillBlock(groupCtx, b, excluded) })
	}
	if err := group.Wait(); err != nil {
		return firstError(ctx, err)
	}
	return nil
}

// fillBlock fills a part of the table. If it is too much for the server, it asks for the halves.
func (t *table) fillBlock(ctx context.Context, b routeserver.Block, excluded route.Avoid) error {
	if b.Cells() == 0 {
		return nil
	}
	a, err := t.askBlock(ctx, b, excluded)
	switch {
	case errors.Is(err, errOffRoad):
		return t.fillOnRoad(ctx, b, excluded)
	case errors.Is(err, errTooBig) && b.Cells() > 1:
		first, second := b.Halves()
		if err := t.fillBlock(ctx, first, excluded); err != nil {
			return err
		}
		return t.fillBlock(ctx, second, excluded)
	case err != nil:
		return err
	}
	return t.store(b, a)
}

// fillOnRoad fills a block without the places that are off the road: a single one makes the server refuse the whole request.
func (t *table) fillOnRoad(ctx context.Context, b routeserver.Block, excluded route.Avoid) error {
	places := t.placesOf(b)
	near, err := t.server.nearestOf(ctx, places, excluded)
	if err != nil {
		return err
	}
	rows, columns := len(b.Rows), len(b.Columns)
	on := routeserver.Block{Rows: onRoad(b.Rows, near[:rows]), Columns: onRoad(b.Columns, near[rows:])}
	if len(on.Rows) == rows && len(on.Columns) == columns {
		return errContradiction
	}
	if on.Cells() > 0 {
		return t.fillBlock(ctx, on, excluded)
	}
	t.mu.Lock() // an access without a way
	defer t.mu.Unlock()
	return errors.Join(storeAccesses(t.OriginAccesses, t.origins, b.Rows, near[:rows]),
		storeAccesses(t.DestinationAccesses, t.destinations, b.Columns, near[rows:]))
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
func (t *table) placesOf(b routeserver.Block) []place {
	places := make([]place, 0, len(b.Rows)+len(b.Columns))
	for _, row := range b.Rows {
		places = append(places, t.origins[row])
	}
	for _, column := range b.Columns {
		places = append(places, t.destinations[column])
	}
	return places
}

func (t *table) askBlock(ctx context.Context, b routeserver.Block, excluded route.Avoid) (answer, error) {
	rows, columns := len(b.Rows), len(b.Columns)
	options := fmt.Sprintf("&annotations=duration,distance&sources=%s&destinations=%s", numberList(0, rows), numberList(rows, columns))
	path := t.server.requestPath("table", positions(t.placesOf(b)), options, excluded)
	return t.server.ask(ctx, path, t.server.http.Matrix)
}

// numberList lists n numbers, beginning with first.
func numberList(first, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(first + i)
	}
	return strings.Join(list, ";")
}

// store checks the answer for a block and copies its cells to those that have no way yet.
func (t *table) store(b routeserver.Block, a answer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows, columns := len(b.Rows), len(b.Columns)
	if len(a.Sources) != rows || len(a.Destinations) != columns || len(a.Durations) != rows || len(a.Distances) != rows {
		return &routeserver.BadAnswerError{Reason: "with another number of rows"}
	}
	if err := storeAccesses(t.OriginAccesses, t.origins, b.Rows, a.Sources); err != nil {
		return err
	}
	if err := storeAccesses(t.DestinationAccesses, t.destinations, b.Columns, a.Destinations); err != nil {
		return err
	}
	for i, row := range b.Rows {
		if len(a.Durations[i]) != columns || len(a.Distances[i]) != columns {
			return &routeserver.BadAnswerError{Reason: "with another number of columns"}
		}
		for j, column := range b.Columns {
			duration, distance := a.Durations[i][j], a.Distances[i][j]
			if duration == nil || distance == nil || t.Durations[row][column] != route.Unreachable {
				continue
			}
			seconds, metres := fixCosts(*duration, *distance)
			if err := routeserver.CheckCosts(seconds, metres); err != nil {
				return err
			}
			t.Durations[row][column], t.Distances[row][column] = seconds, metres
		}
	}
	return nil
}

// How far below 0 the costs of a cell may be. A tenth of a second at 130 km/h is 4 m.
const (
	mostNegativeDuration = -1  // seconds
	mostNegativeDistance = -10 // metres
)

// fixCosts corrects the costs of a cell that are slightly negative. A server weighs by tenths of a second. If two places on one
// road are closer than that, it takes the second to lie ahead of the first even if it lies behind, and a table then has a negative
// distance and duration. A route has the positive distance, and no duration. Lower costs are left unchanged.
func fixCosts(duration, distance float64) (seconds, metres float64) {
	if duration < mostNegativeDuration || distance < mostNegativeDistance {
		return duration, distance
	}
	return max(0, duration), math.Abs(distance)
}

// storeAccesses stores where places meet the network, for places whose access is found and not known yet.
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
