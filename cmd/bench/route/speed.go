package route

import (
	"context"
	"errors"
	"time"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/route"
	"lieudit/queries/route/tour"
)

// car is the profile of every comparison.
var car = route.Profile{Mode: route.Car, Optimization: route.Fastest}

// task is one kind of question. ask asks it once.
type task struct {
	name string
	ask  func(context.Context, route.Router) error
}

// maxErrors is the number of a peer's errors after which a figure is no longer measured: a server that has died fails at once.
const maxErrors = 20

// measureSpeed reports how long each router needs for each kind of question, one at a time. The routers take turns.
func measureSpeed(ctx context.Context, routers []namedRouter, q *questions, o Options, out measure.Output) error {
	for _, t := range tasks(q, o) {
		for _, r := range routers {
			out.Progress(t.name+", "+r.name, 0, 0)
			f, err := t.measure(ctx, r, o.FigureDuration)
			if errors.Is(err, route.ErrUnsupported) {
				continue
			}
			if err != nil {
				return err
			}
			f = f.With(measure.Label{Name: "what", Value: t.name}, measure.Label{Name: "router", Value: r.name})
			if err := out.Report(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure repeats the task until the duration has passed, and at least once. The figure has the answers a second and their latencies; questions
// without an answer are its errors.
func (t task) measure(ctx context.Context, r namedRouter, duration time.Duration) (measure.Figure, error) {
	answers, failed := measure.NewLatencies(), 0
	began := time.Now()
	for last := began; failed < maxErrors; {
		err := t.ask(ctx, r)
		now := time.Now()
		if errors.Is(err, route.ErrUnsupported) {
			return measure.Figure{}, err
		}
		if err == nil {
			answers.Record(now.Sub(last))
		} else if err := r.countError(ctx, err, &failed); err != nil {
			return measure.Figure{}, err
		}
		if last = now; last.Sub(began) >= duration {
			break
		}
	}
	f := answers.Figure()
	f.Value, f.Unit = float64(f.Samples)/time.Since(began).Seconds(), "/s"
	f.Extra = map[string]float64{"errors": float64(failed)}
	return f, nil
}

// tasks returns the kinds of questions. Each question is about new positions.
func tasks(q *questions, o Options) []task {
	sites := q.bounds(o.Sites)
	return []task{
		{"compute, no geometry", q.compute(route.Query{Profile: car})},
		{"compute, geometry and steps", q.compute(route.Query{Profile: car, Geometry: true, Steps: true})},
		{"compute, 2 alternatives", q.compute(route.Query{Profile: car, Alternatives: 2})},
		{"matrix 25 × 25", q.matrix(25)},
		{"matrix 100 × 100", q.matrix(100)},
		{"isochrone 10 min", q.isochrone(600)},
		{"isochrone 30 min", q.isochrone(1800)},
		{"nearest 20 of the sites", func(ctx context.Context, r route.Router) error {
			_, err := r.Nearest(ctx, route.NearestQuery{Profile: car, Origin: q.bound(), Destinations: sites, Limit: 20})
			return err
		}},
		{"optimize 48 stops", q.optimize(48)},
	}
}

// compute asks for a route between two new positions. That there is no route is an answer too.
func (q *questions) compute(query route.Query) func(context.Context, route.Router) error {
	return func(ctx context.Context, r route.Router) error {
		query := query
		query.Bounds = q.bounds(2)
		_, err := r.Route(ctx, query)
		if errors.Is(err, route.ErrNoRoute) {
			return nil
		}
		return err
	}
}

func (q *questions) matrix(size int) func(context.Context, route.Router) error {
	return func(ctx context.Context, r route.Router) error {
		_, err := r.Matrix(ctx, route.MatrixQuery{Profile: car, Origins: q.bounds(size), Destinations: q.bounds(size)})
		return err
	}
}

func (q *questions) isochrone(limit float64) func(context.Context, route.Router) error {
	return func(ctx context.Context, r route.Router) error {
		_, err := r.Isochrone(ctx, route.IsochroneQuery{Profile: car, Center: q.bound(), Cost: route.ByDuration, Limits: []float64{limit}})
		return err
	}
}

// optimize asks for the matrix between stops and orders them.
func (q *questions) optimize(stops int) func(context.Context, route.Router) error {
	return func(ctx context.Context, r route.Router) error {
		bounds := q.bounds(stops)
		m, err := r.Matrix(ctx, route.MatrixQuery{Profile: car, Origins: bounds, Destinations: bounds})
		if err != nil {
			return err
		}
		_, _, err = tour.Solve(m.Durations, tour.Options{RoundTrip: true}, func(time.Duration) error { return ctx.Err() })
		return err
	}
}
