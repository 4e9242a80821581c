package network

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/osmpbf/osmtest"
	"lieudit/schemas/geo"
)

// benchmarkMap is the map LIEUDIT_TEST_MAP, or Monaco's.
func benchmarkMap(b *testing.B) string {
	if source := os.Getenv("LIEUDIT_TEST_MAP"); source != "" {
		return source
	}
	return osmtest.Path(b, "monaco")
}

// BenchmarkBuild builds a network and reports the time of each stage.
func BenchmarkBuild(b *testing.B) {
	source := benchmarkMap(b)
	spent := map[string]time.Duration{}
	for b.Loop() {
		stage, begun := "", time.Now()
		s, err := Build(b.Context(), filepath.Join(b.TempDir(), "network"), source, Options{Progress: func(now string, _, _ int64) {
			if now != stage {
				spent[stage] += time.Since(begun)
				stage, begun = now, time.Now()
			}
		}})
		if err != nil {
			b.Fatal(err)
		}
		spent[stage] += time.Since(begun)
		b.ReportMetric(float64(s.Bytes)/(1<<20), "MB-file")
	}
	reportPeakMemory(b)
	for stage, d := range spent {
		if stage != "" {
			b.ReportMetric(d.Seconds()/float64(b.N)*1000, "ms-"+stage)
		}
	}
}

// BenchmarkNear finds the nearest road of random positions: what moving a bound onto the network costs.
func BenchmarkNear(b *testing.B) {
	n, _ := buildOpen(b, benchmarkMap(b), Options{})
	rng, box := rand.New(rand.NewPCG(1, 1)), n.Meta.Box
	for b.Loop() {
		p := geo.Point{Lon: box.West + rng.Float64()*(box.East-box.West), Lat: box.South + rng.Float64()*(box.North-box.South)}
		visited := 0
		n.Layer(route.Car).Near(p, route.MaxAccessDistance, func(Hit) bool { visited++; return visited < 10 })
	}
}

// BenchmarkGeometry reads the points of all segments.
func BenchmarkGeometry(b *testing.B) {
	n, _ := buildOpen(b, benchmarkMap(b), Options{})
	l := n.Layer(route.Car)
	b.Run("degrees", func(b *testing.B) {
		var points []geo.Point
		for b.Loop() {
			points = points[:0]
			for s := range uint32(l.Segments()) {
				points = l.AppendGeometry(points, s, false)
			}
		}
		b.ReportMetric(float64(len(points)), "points")
	})
	b.Run("fixed", func(b *testing.B) {
		var points []route.FixedPoint
		for b.Loop() {
			points = points[:0]
			for s := range uint32(l.Segments()) {
				points = l.AppendFixed(points, s)
			}
		}
		b.ReportMetric(float64(len(points)), "points")
	})
}

// BenchmarkOpen opens a network.
func BenchmarkOpen(b *testing.B) {
	path, _ := buildFile(b, benchmarkMap(b), Options{})
	for b.Loop() {
		n, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		n.Close()
	}
}
