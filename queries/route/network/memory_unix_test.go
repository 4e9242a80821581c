//go:build unix

package network

import (
	"syscall"
	"testing"
)

// reportPeakMemory reports the most memory that this process has had at once.
func reportPeakMemory(b *testing.B) {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(usage.Maxrss)/1024, "MB-at-most")
}
