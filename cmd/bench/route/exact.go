package route

import (
	"context"
	"errors"
	"time"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/route"
	"lieudit/queries/route/network"
	"lieudit/queries/route/search"
)

// checkedProfiles are the profiles whose answers are compared with Dijkstra's algorithm.
var checkedProfiles = []route.Profile{
	{Mode: route.Car, Optimization: route.Fastest},
	{Mode: route.Car, Optimization: route.Shortest},
	{Mode: route.Car, Optimization: route.Fastest, Avoid: route.Tolls | route.Motorways | route.Ferries},
}

// checkExactness compares durations and distances of random pairs with Dijkstra's algorithm on the same network.
func checkExactness(ctx context.Context, layer *network.Layer, q *questions, o Options, out measure.Output) error {
	searcher := search.New(layer.Graph, layer.Topology, layer)
	for _, p := range checkedProfiles {
		different := 0
		own, plain := measure.NewLatencies(), measure.NewLatencies()
		for i := range o.Pairs {
			out.Progress("compare with Dijkstra", i, o.Pairs)
			from := []search.Place{search.PlaceOn(layer.Graph, q.edge(), q.random.Float64())}
			to := []search.Place{search.PlaceOn(layer.Graph, q.edge(), q.random.Float64())}
			began := time.Now()
			path, err := searcher.Route(ctx, p, from, to)
			own.Record(time.Since(began))
			if err != nil && !errors.Is(err, route.ErrNoRoute) {
				return err
			}
			began = time.Now()
			want, found := search.Dijkstra(layer.Graph, p, from, to)
			plain.Record(time.Since(began))
			if found != (err == nil) || found && want != path.Cost {
				different++
			}
		}
		f := own.Figure(measure.Label{Name: "what", Value: "exact: " + describeProfile(p)})
		f.Extra = map[string]float64{"different": float64(different), "Dijkstra p50 ms": plain.Quantile(0.5)}
		if err := out.Report(f); err != nil {
			return err
		}
	}
	return nil
}

// describeProfile names a profile in a table.
func describeProfile(p route.Profile) string {
	text := string(p.Mode) + " " + string(p.Optimization)
	if p.Avoid != 0 {
		text += ", all avoided"
	}
	return text
}
