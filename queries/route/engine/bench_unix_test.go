//go:build unix

package engine

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/network"
	"lieudit/queries/route/osmpbf/osmtest"
	"lieudit/schemas/geo"
)

// BenchmarkQuestions measures each kind of question on the map LIEUDIT_TEST_MAP, on the imported one LIEUDIT_TEST_NETWORK, or on Monaco's. The bounds are snapped before. The
// processor time is that of all threads, the garbage collector's too: it can be compared on a machine that does other work besides.
func BenchmarkQuestions(b *testing.B) {
	e := openBenchmark(b)
	m, r := e.modes[route.Car], rand.New(rand.NewPCG(21, 2))
	p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
	bounds, sites := m.drawBounds(r, 500), m.drawBounds(r, 10_000)
	if _, err := m.snapAll(b.Context(), append(bounds, sites...)); err != nil {
		b.Fatal(err)
	}
	next := 0
	take := func(n int) []route.Bound {
		if next+n > len(bounds) {
			next = 0
		}
		next += n
		return bounds[next-n : next]
	}
	isochrone := func(p route.Profile, cost route.CostType, limits ...float64) func() error {
		return func() error {
			_, err := e.Isochrone(b.Context(), route.IsochroneQuery{Profile: p, Center: take(1)[0], Cost: cost, Limits: limits})
			return err
		}
	}
	for _, q := range []struct {
		name string
		ask  func() error
	}{
		{"compute", func() error {
			_, err := e.Route(b.Context(), route.Query{Profile: p, Bounds: take(2)})
			return err
		}},
		{"matrix 25 x 25", func() error {
			_, err := e.Matrix(b.Context(), route.MatrixQuery{Profile: p, Origins: take(25), Destinations: take(25)})
			return err
		}},
		{"nearest 20 of 10000", func() error {
			_, err := e.Nearest(b.Context(), route.NearestQuery{Profile: p, Origin: take(1)[0], Destinations: sites, Limit: 20})
			return err
		}},
		{"isochrone 10 min", isochrone(p, route.ByDuration, 600)},
		{"isochrone 30 min", isochrone(p, route.ByDuration, 1800)},
		{"isochrone 10, 20, 30 min", isochrone(p, route.ByDuration, 600, 1200, 1800)},
		{"isochrone 10 km", isochrone(p, route.ByDistance, 10_000)},
	} {
		b.Run(q.name, func(b *testing.B) {
			b.ReportAllocs()
			next = 0
			begun := processorTime(b)
			for b.Loop() {
				if err := q.ask(); err != nil && err != route.ErrNoRoute {
					b.Fatal(err)
				}
			}
			b.ReportMetric((processorTime(b)-begun)/float64(b.N)*1000, "cpu-ms/op")
		})
	}
}

// openBenchmark opens the network that is measured.
func openBenchmark(b *testing.B) *Engine {
	b.Helper()
	if path := os.Getenv("LIEUDIT_TEST_NETWORK"); path != "" {
		n, err := network.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { n.Close() })
		return New(n)
	}
	if source := os.Getenv("LIEUDIT_TEST_MAP"); source != "" {
		return open(b, source)
	}
	return open(b, osmtest.Path(b, "monaco"))
}

// drawBounds are positions on random roads of the largest component.
func (m *modeEngine) drawBounds(r *rand.Rand, n int) []route.Bound {
	var all []route.Bound
	for len(all) < n {
		edge := r.Uint32N(uint32(m.graph.Edges()))
		if s := m.graph.Segment[edge]; m.graph.IsMain(edge) {
			points := m.layer.AppendGeometry(nil, s>>1, s&1 == 1)
			i, share := r.IntN(len(points)-1), r.Float64()
			from, to := points[i], points[i+1]
			all = append(all, route.Bound{Point: geo.Point{Lon: from.Lon + share*(to.Lon-from.Lon), Lat: from.Lat + share*(to.Lat-from.Lat)}})
		}
	}
	return all
}

// processorTime is that of this process so far, in seconds.
func processorTime(b *testing.B) float64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
