package valhalla

import (
	"context"
	"errors"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
)

// The server's default limit is 2,500 pairs.
const mostRows, mostColumns = 50, 50

// matrixQuestion is a request for a matrix.
type matrixQuestion struct {
	costing
	Sources []location `json:"sources"`
	Targets []location `json:"targets"`
	Units   string     `json:"units"`
	Verbose bool       `json:"verbose"`
}

// matrixAnswer is a matrix: seconds and kilometres, null if there is no way.
type matrixAnswer struct {
	Cells struct {
		Durations [][]*float64 `json:"durations"`
		Distances [][]*float64 `json:"distances"`
	} `json:"sources_to_targets"`
}

// Matrix implements route.Router.
func (r *Router) Matrix(ctx context.Context, q route.MatrixQuery) (route.Matrix, error) {
	c, err := costingOf(q.Profile)
	if err != nil {
		return route.Matrix{}, err
	}
	places, err := r.locate(ctx, c, slices.Concat(q.Origins, q.Destinations))
	if err != nil {
		return route.Matrix{}, err
	}
	t := &table{router: r, costing: c, origins: places[:len(q.Origins)], destinations: places[len(q.Origins):],
		Matrix: routeserver.NewMatrix(len(q.Origins), len(q.Destinations))}
	rows, columns := storeAccesses(t.OriginAccesses, t.origins), storeAccesses(t.DestinationAccesses, t.destinations)
	for _, b := range routeserver.Blocks(rows, columns, mostRows, mostColumns) {
		if err := t.fill(ctx, b); err != nil {
			return route.Matrix{}, err
		}
	}
	return t.Matrix, nil
}

// Nearest implements route.Router, with a matrix of one row.
func (r *Router) Nearest(ctx context.Context, q route.NearestQuery) (route.Nearest, error) {
	return routeserver.FindNearest(ctx, q, r.Matrix)
}

// table is a matrix that is being filled.
type table struct {
	router                *Router
	costing               costing
	origins, destinations []place

	route.Matrix
}

// storeAccesses copies the accesses of places and returns the indexes of those that are on the road.
func storeAccesses(accesses []route.Access, places []place) (onRoad []int) {
	for i, p := range places {
		if p.isOnRoad {
			accesses[i] = p.access
			onRoad = append(onRoad, i)
		}
	}
	return onRoad
}

// fill fills a part of the table. A place that is too far from the others, or not connected with them, makes the server refuse the
// whole request, and so do too many: then it asks for the halves.
func (t *table) fill(ctx context.Context, b routeserver.Block) error {
	question := matrixQuestion{costing: t.costing, Units: "kilometers"}
	for _, row := range b.Rows {
		question.Sources = append(question.Sources, locationOf(t.origins[row].access.Point))
	}
	for _, column := range b.Columns {
		question.Targets = append(question.Targets, locationOf(t.destinations[column].access.Point))
	}
	var answer matrixAnswer
	err := t.router.ask(ctx, "/sources_to_targets", question, t.router.http.Matrix, &answer)
	isRefused := errors.Is(err, route.ErrNoRoute) || errors.Is(err, errOffRoad)
	switch {
	case err == nil:
		return t.store(b, answer)
	case isRefused && b.Cells() == 1:
		return nil
	case !isRefused && !errors.Is(err, errTooBig) || b.Cells() == 1:
		return err
	}
	first, second := b.Halves()
	if err := t.fill(ctx, first); err != nil {
		return err
	}
	return t.fill(ctx, second)
}

// store checks the answer for a block and copies its cells.
func (t *table) store(b routeserver.Block, a matrixAnswer) error {
	durations, distances := a.Cells.Durations, a.Cells.Distances
	if len(durations) != len(b.Rows) || len(distances) != len(b.Rows) {
		return &routeserver.BadAnswerError{Reason: "with another number of rows"}
	}
	for i, row := range b.Rows {
		if len(durations[i]) != len(b.Columns) || len(distances[i]) != len(b.Columns) {
			return &routeserver.BadAnswerError{Reason: "with another number of columns"}
		}
		for j, column := range b.Columns {
			if durations[i][j] == nil || distances[i][j] == nil {
				continue
			}
			duration, distance := *durations[i][j], *distances[i][j]*metresPerKilometre
			if err := routeserver.CheckCosts(duration, distance); err != nil {
				return err
			}
			t.Durations[row][column], t.Distances[row][column] = duration, distance
		}
	}
	return nil
}
