package network

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"lieudit/queries/route/osmpbf/osmtest"
)

// BenchmarkBuild builds the network of the map LIEUDIT_TEST_MAP, or of Monaco's, and reports the time of each stage.
func BenchmarkBuild(b *testing.B) {
	source := os.Getenv("LIEUDIT_TEST_MAP")
	if source == "" {
		source = osmtest.Path(b, "monaco")
	}
	spent := map[string]time.Duration{}
	for b.Loop() {
		stage, begun := "", time.Now()
		_, err := Build(b.Context(), filepath.Join(b.TempDir(), "network"), source, Options{Progress: func(now string, _, _ int64) {
			if now != stage {
				spent[stage] += time.Since(begun)
				stage, begun = now, time.Now()
			}
		}})
		if err != nil {
			b.Fatal(err)
		}
		spent[stage] += time.Since(begun)
	}
	for stage, d := range spent {
		if stage != "" {
			b.ReportMetric(d.Seconds()/float64(b.N)*1000, "ms-"+stage)
		}
	}
}
