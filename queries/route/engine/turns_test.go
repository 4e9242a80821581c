package engine

import (
	"context"
	"math/rand/v2"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/osmpbf/osmtest"
	"lieudit/queries/worker/workertest"
)

func TestCostlyQuestionsTakeTurns(t *testing.T) {
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
		to := route.Bound{Point: route.Point{Lon: from.Lon + 0.01, Lat: from.Lat + 0.01}}
		if workertest.NeedsWorker(t, func(ctx context.Context) error {
			_, err := e.Route(ctx, route.Query{Profile: route.Profile{Mode: route.Car, Optimization: route.Fastest}, Bounds: []route.Bound{from, to}, Geometry: true})
			return err
		}) {
			t.Errorf("the route from %v to %v needs a worker", from.Point, to.Point)
		}
	}
}
