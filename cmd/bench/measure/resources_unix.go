//go:build unix

package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime is the processor time of the process so far, of all its threads. So the work of the garbage collector counts too.
func ProcessorTime() time.Duration {
	usage := ownUsage()
	return time.Duration(unix.TimevalToNsec(usage.Utime) + unix.TimevalToNsec(usage.Stime))
}

// PeakMemory is the most memory that this process has had at once, in MiB.
func PeakMemory() float64 {
	return float64(ownUsage().Maxrss) / 1024 // Linux counts KiB
}

// ownUsage is what this process has used; nothing where the system does not tell.
func ownUsage() (usage unix.Rusage) {
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return unix.Rusage{}
	}
	return usage
}
