package route

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/route"
	"lieudit/queries/route/osrm"
	"lieudit/queries/route/valhalla"
)

// peers are the servers that are measured beside the own engine.
func peers(o Options) (all []namedRouter) {
	if o.OSRM != "" {
		all = append(all, namedRouter{"OSRM", osrm.New(map[route.Mode]string{route.Car: o.OSRM}, time.Now)})
	}
	if o.Valhalla != "" {
		all = append(all, namedRouter{"Valhalla", valhalla.New(o.Valhalla, time.Now)})
	}
	return all
}

// compareAnswers reports how the answers of each peer agree with the own ones: the quantiles of the ratio of durations, own to
// theirs, and the share of pairs whose distances are within a tenth of each other.
func compareAnswers(ctx context.Context, routers []namedRouter, q *questions, o Options, out measure.Output) error {
	for _, peer := range routers[1:] {
		var ratios []float64
		near, onlyOne := 0, 0
		for i := range o.Pairs {
			out.Progress("compare with "+peer.name, i, o.Pairs)
			query := route.Query{Profile: car, Bounds: q.bounds(2)}
			own, ownErr := routers[0].Route(ctx, query)
			theirs, theirErr := peer.Route(ctx, query)
			if err := errors.Join(otherThanNoRoute(ownErr), otherThanNoRoute(theirErr)); err != nil {
				return fmt.Errorf("%s: %w", peer.name, err)
			}
			switch {
			case (ownErr == nil) != (theirErr == nil):
				onlyOne++
			case ownErr == nil && theirs.Routes[0].Duration > 0:
				ratios = append(ratios, own.Routes[0].Duration/theirs.Routes[0].Duration)
				if math.Abs(own.Routes[0].Distance-theirs.Routes[0].Distance) <= 0.1*theirs.Routes[0].Distance {
					near++
				}
			}
		}
		if len(ratios) == 0 {
			continue
		}
		slices.Sort(ratios)
		quantile := func(share float64) float64 { return ratios[int(share*float64(len(ratios)-1))] }
		if err := out.Report(measure.Figure{
			Labels: []measure.Label{{Name: "compared with", Value: peer.name}}, Value: quantile(0.5), Unit: "median duration, own / theirs",
			Extra: map[string]float64{
				"p5": quantile(0.05), "p95": quantile(0.95), "distance within 10 %": 100 * float64(near) / float64(len(ratios)),
				"pairs": float64(len(ratios)), "only one has a route": float64(onlyOne),
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// otherThanNoRoute is an error that is no answer.
func otherThanNoRoute(err error) error {
	if _, ok := errors.AsType[*route.OffRoadError](err); ok || errors.Is(err, route.ErrNoRoute) {
		return nil
	}
	return err
}
