//go:build linux || darwin

package clock

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A kernel that lacks a clock reports no sleep: continuing time would look like a sleep that goes back.
func TestAClockThatTheKernelLacksMakesNoSleep(t *testing.T) {
	t.Parallel()
	const lacking = 1 << 10
	for _, x := range [][2]int32{{lacking, unix.CLOCK_MONOTONIC}, {unix.CLOCK_MONOTONIC, lacking}} {
		if got := readDifference(x[0], x[1]); got != 0 {
			t.Errorf("clock %d is %v ahead of %d", x[0], got, x[1])
		}
	}
}
