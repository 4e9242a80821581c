package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTimeOf is the processor time of another process so far, of all its threads; 0 where there is no such process.
func ProcessorTimeOf(pid int) time.Duration {
	if pid <= 0 {
		return 0
	}
	const schedulerClock = 2 // CPUCLOCK_SCHED of the kernel: running time in nanoseconds
	var t unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|schedulerClock), &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
