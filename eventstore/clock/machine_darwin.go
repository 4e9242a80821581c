package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleptTime is how long the machine has slept since its boot: package time measures elapsed time with a clock that stops
// meanwhile.
func sleptTime() time.Duration {
	return readDifference(unix.CLOCK_MONOTONIC_RAW, unix.CLOCK_UPTIME_RAW)
}

// currentBoot returns no id: after a restart, the program believes the wall clock.
func currentBoot() (id string, age time.Duration) { return "", 0 }
