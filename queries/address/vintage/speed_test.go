package vintage

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"lieudit/queries/address/ban"
)

// BenchmarkBuild builds a vintage of the file LIEUDIT_TEST_ROWS, plain CSV in the official format, or of Bondy's.
func BenchmarkBuild(b *testing.B) {
	path := os.Getenv("LIEUDIT_TEST_ROWS")
	for b.Loop() {
		from := each(official(b, "adresses-93010-bondy.csv.gz"))
		if path != "" {
			file, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close()
			from = ban.Read(file, path, &ban.Report{})
		}
		s, err := Build(context.Background(), filepath.Join(b.TempDir(), "vintage"), from, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(s.Bytes)/float64(s.Addresses), "bytes/address")
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(usage.Maxrss)/1024, "MB-at-most")
}
