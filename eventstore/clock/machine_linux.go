package clock

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sleptTime is how long the machine has slept since its boot: CLOCK_MONOTONIC, with which package time measures elapsed time,
// stops meanwhile, and CLOCK_BOOTTIME does not.
func sleptTime() time.Duration { return readDifference(unix.CLOCK_BOOTTIME, unix.CLOCK_MONOTONIC) }

// currentBoot returns an id of the last boot of the machine, and how long ago it was.
func currentBoot() (id string, age time.Duration) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if age = readClock(unix.CLOCK_BOOTTIME); err != nil || age == 0 {
		return "", 0
	}
	return strings.TrimSpace(string(text)), age
}
