package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/osmpbf/osmtest"
	"lieudit/queries/route/search"
	"lieudit/queries/worker/workertest"
	"lieudit/schemas/geo"
)

// TestEachPartOfACostlyQuestionTakesTurns does each part alone, so that its turns are not those of another.
func TestEachPartOfACostlyQuestionTakesTurns(t *testing.T) {
	t.Parallel()
	e := open(t, osmtest.Path(t, "monaco"))
	m, r := e.modes[route.Car], rand.New(rand.NewPCG(5, 1))
	bounds := make([]route.Bound, 2_000)
	for i := range bounds {
		bounds[i] = m.drawBound(r)
	}
	snaps, err := m.snapAll(t.Context(), bounds)
	if err != nil {
		t.Fatal(err)
	}
	var places [][]search.Place
	for _, s := range snaps {
		places = append(places, s.from)
	}
	p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
	path, err := m.searcher.Route(t.Context(), p, places[0], places[1])
	if err != nil {
		t.Fatal(err)
	}
	const hour = 36_000 // in graph.DurationUnit parts
	for name, part := range map[string]struct {
		least int
		work  func(context.Context) error
	}{
		"snaps": {3, func(ctx context.Context) error {
			_, err := New(e.network).modes[route.Car].snapAll(ctx, bounds)
			return err
		}},
		"known snaps": {1, func(ctx context.Context) error {
			_, err := m.snapAll(ctx, bounds)
			return err
		}},
		"matrix": {3, func(ctx context.Context) error {
			_, err := m.searcher.Matrix(ctx, p, places[:100], places[100:300])
			return err
		}},
		"nearest": {1, func(ctx context.Context) error {
			_, err := m.searcher.Nearest(ctx, p, places[0], places, len(places))
			return err
		}},
		"reach": {6, func(ctx context.Context) error {
			for range 50 {
				if err := m.searcher.Reach(ctx, p, places[0], hour, false, func(uint32, int64, int64) {}); err != nil {
					return err
				}
			}
			return nil
		}},
		"legs": {6, func(ctx context.Context) error {
			q := route.Query{Bounds: bounds[:201], Geometry: true, Steps: true}
			_, err := m.newRoute(ctx, q, slices.Repeat([]search.Path{path}, 200))
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			workertest.CheckTurns(t, part.least, part.work)
		})
	}
}

func TestCostlyQuestionsEndWithoutAWorker(t *testing.T) {
	t.Parallel()
	e := open(t, osmtest.Path(t, "monaco"))
	r := rand.New(rand.NewPCG(5, 1))
	bounds := make([]route.Bound, 300)
	for i := range bounds {
		bounds[i] = e.modes[route.Car].drawBound(r)
	}
	p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
	for name, ask := range map[string]func(context.Context, *Engine) error{
		"route": func(ctx context.Context, e *Engine) error {
			_, err := e.Route(ctx, route.Query{Profile: p, Bounds: bounds[:50], Geometry: true, Steps: true})
			return err
		},
		"alternatives": func(ctx context.Context, e *Engine) error {
			_, err := e.Route(ctx, route.Query{Profile: p, Bounds: bounds[5:7], Alternatives: 2, Geometry: true, Steps: true})
			return err
		},
		"matrix": func(ctx context.Context, e *Engine) error {
			_, err := e.Matrix(ctx, route.MatrixQuery{Profile: p, Origins: bounds[:100], Destinations: bounds[:200]})
			return err
		},
		"nearest": func(ctx context.Context, e *Engine) error {
			_, err := e.Nearest(ctx, route.NearestQuery{Profile: p, Origin: bounds[0], Destinations: bounds, Limit: 300})
			return err
		},
		"isochrone": func(ctx context.Context, e *Engine) error {
			_, err := e.Isochrone(ctx, route.IsochroneQuery{Profile: p, Center: bounds[0], Cost: route.ByDuration, Limits: []float64{900, 1800, 2700, 3600}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A new engine does not know the bounds yet.
			workertest.CheckTurns(t, 1, func(ctx context.Context) error { return ask(ctx, New(e.network)) })
		})
	}
}

// TestACommonRouteNeedsNoWorker asks for routes of some kilometres, as most are.
func TestACommonRouteNeedsNoWorker(t *testing.T) {
	t.Parallel()
	e := open(t, osmtest.Path(t, "monaco"))
	r := rand.New(rand.NewPCG(6, 1))
	for range 200 {
		from := e.modes[route.Car].drawBound(r)
		to := route.Bound{Point: geo.Point{Lon: from.Lon + 0.01, Lat: from.Lat + 0.01}}
		if workertest.NeedsWorker(t, func(ctx context.Context) error {
			_, err := e.Route(ctx, route.Query{Profile: route.Profile{Mode: route.Car, Optimization: route.Fastest}, Bounds: []route.Bound{from, to}, Geometry: true})
			return err
		}) {
			t.Errorf("the route from %v to %v needs a worker", from.Point, to.Point)
		}
	}
}
