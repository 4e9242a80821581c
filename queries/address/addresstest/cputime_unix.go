//go:build unix

package addresstest

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime is the processor time of the calling thread. Other load on the machine does not count in it.
func CPUTime(t testing.TB) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
