// Package route measures the router on a real or an invented road network: how long the import takes, whether its answers are those of
// Dijkstra's algorithm, how fast they are, and how they compare with real servers of OSRM and Valhalla that answer the same questions in the
// same run. All routers get the same questions, between positions on roads.
//
//	FILE.osm.pbf ─┬─ network.Build ──► engine.Engine ────────────────────┐
//	              └─ routerprocess ──► servers ──► osrm, valhalla ───────┴─ route.Router ──► compareRouters ──► measure.Figure
//
// The engine is called in this process, the servers over HTTP on one kept connection. A question that a server cannot answer is counted and
// does not end the run; one that our own engine cannot answer does.
//
// ComparePairs compares single routes instead, and explains their differences. The roads that a route uses are read from the map's tags along
// its geometry (mapRoads), in the same way for all engines. Here our own engine is also timed as a service over HTTP.
//
//	pairs ── askPair (all routers) ──► answeredPair ── verdict ──► judge.explain ──► kinds and the worst pairs
//	                                        └── those that all route ── httpServer.takeTurn ──► times of servers and of parts
package route

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/route"
	"lieudit/queries/route/engine"
	"lieudit/queries/route/network"
	"lieudit/schemas/geo"
)

// Options configure Run.
type Options struct {
	File           string        // the map, as PBF
	OSRM, Valhalla string        // URLs of servers on the same map
	Programs       string        // folder with the programs of OSRM and Valhalla, which serve if no URL is given; "" measures without them
	Pairs          int           // pairs of positions whose answers are compared
	Sites          int           // sites in the search for the nearest
	FigureDuration time.Duration // for each figure
	Seed           uint64
}

// Run measures one network.
func Run(ctx context.Context, dir string, o Options, out measure.Output) (err error) {
	path := filepath.Join(dir, "bench.network")
	if err := importNetwork(ctx, path, o, out); err != nil {
		return err
	}
	n, err := network.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if err := n.Prefault(); err != nil {
		return err
	}
	layer := n.Layer(route.Car)
	q := &questions{layer: layer, random: rand.New(rand.NewPCG(o.Seed, 21))}
	if err := checkExactness(ctx, layer, q, o, out); err != nil {
		return err
	}
	p, err := openPeers(ctx, dir, o, out)
	defer func() { err = errors.Join(err, p.stop()) }()
	if err != nil {
		return err
	}
	return compareRouters(ctx, append([]namedRouter{{"own", engine.New(n), false}}, p.routers...), q, o, out)
}

// compareRouters asks all routers the same questions. The first router is our own.
func compareRouters(ctx context.Context, routers []namedRouter, q *questions, o Options, out measure.Output) error {
	if err := measureSpeed(ctx, routers, q, o, out); err != nil {
		return err
	}
	if err := compareAnswers(ctx, routers, q, o, out); err != nil {
		return err
	}
	if err := compareAlternatives(ctx, routers, q, o, out); err != nil {
		return err
	}
	return compareAreas(ctx, routers, q, out)
}

// importNetwork builds the network and reports how long it takes and how large it is.
func importNetwork(ctx context.Context, path string, o Options, out measure.Output) error {
	began := time.Now()
	summary, err := network.Build(ctx, path, o.File, network.Options{Progress: func(stage string, done, total int64) {
		out.Progress("import: "+stage, int(done), int(total))
	}})
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	car := summary.Modes[0]
	return out.Report(measure.Figure{
		Labels: []measure.Label{{Name: "what", Value: "import"}, {Name: "router", Value: "own"}}, Value: seconds, Unit: "s", Bytes: info.Size(),
		Extra: map[string]float64{"car edges": float64(car.Edges), "restrictions": float64(car.Restrictions), "peak MiB": measure.PeakMemory()},
	})
}

// questions draws positions on the roads of a network.
type questions struct {
	layer  *network.Layer
	random *rand.Rand
}

// bound returns a position on a random road of the largest connected part.
func (q *questions) bound() route.Bound {
	edge := q.edge()
	s := q.layer.Graph.Segment[edge]
	points := q.layer.AppendGeometry(nil, s>>1, s&1 == 1)
	i := q.random.IntN(len(points) - 1)
	a, b, share := points[i], points[i+1], q.random.Float64()
	return route.Bound{Point: geo.Point{Lon: a.Lon + share*(b.Lon-a.Lon), Lat: a.Lat + share*(b.Lat-a.Lat)}}
}

// edge returns a random edge of the largest connected part.
func (q *questions) edge() uint32 {
	for {
		if e := uint32(q.random.IntN(q.layer.Graph.Edges())); q.layer.Graph.IsMain(e) {
			return e
		}
	}
}

func (q *questions) bounds(n int) []route.Bound {
	all := make([]route.Bound, n)
	for i := range all {
		all[i] = q.bound()
	}
	return all
}
