package synthetic

import (
	"io"
	"testing"
)

// BenchmarkGenerate invents a region.
func BenchmarkGenerate(b *testing.B) {
	table := load(b)
	for b.Loop() {
		s, err := Generate(b.Context(), io.Discard, table, Options{Segments: 500_000, Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(s.Nodes), "nodes")
	}
}
