//go:build linux || darwin

package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// readDifference reads how far one of the kernel's clocks is ahead of another. It reads again if much time has passed between the two. It
// is 0 if the kernel lacks one of them.
func readDifference(ahead, behind int32) time.Duration {
	for {
		before, difference := readClock(behind), readClock(ahead)
		if before == 0 || difference == 0 {
			return 0
		}
		if after := readClock(behind); after-before < followStep/10 {
			return difference - before
		}
	}
}

// readClock reads one of the kernel's clocks. It is 0 if the kernel has none of that kind.
func readClock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
