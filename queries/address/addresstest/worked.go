package addresstest

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Worked is how long the thread has had the processor: what else runs on the machine does not count.
func Worked(t testing.TB) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
