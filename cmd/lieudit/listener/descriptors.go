package listener

import (
	"fmt"
	"log/slog"
	"os"
)

const (
	// opsConnections is the cap of the ops listener: probes, a scraper and people.
	opsConnections = 64
	// minConnections is the smallest useful cap of a listener.
	minConnections = 8
	// minDescriptorReserve and maxDescriptorReserve bound the file descriptors reserved for what is opened later: the
	// log's next segments (two each), databases, vintages, connections to servers.
	minDescriptorReserve, maxDescriptorReserve = 96, 1024
)

// Limits are how many connections each listener takes.
type Limits struct{ API, Area, Ops int }

// DivideDescriptors lowers the caps of the listeners to what the file descriptors of the process allow, so that idle
// connections never keep the log from opening a file. If the number of descriptors is not known, the caps stay as wanted.
// It must run after the log and the databases are open, since it counts their descriptors.
func DivideDescriptors(wanted int, log *slog.Logger) (Limits, error) {
	descriptors, known := maxDescriptors()
	if !known {
		return Limits{wanted, wanted, opsConnections}, nil
	}
	limits, err := divideDescriptors(wanted, descriptors, countOpenDescriptors())
	if err == nil && limits.API < wanted {
		log.Warn("fewer connections than asked for: file descriptors are few", "descriptors", descriptors, "connections", limits.API)
	}
	return limits, err
}

// countOpenDescriptors counts the open file descriptors of the process, those of the log and the databases among them.
// If /proc does not list them it returns an estimate.
func countOpenDescriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return minDescriptorReserve
	}
	return len(open)
}

// divideDescriptors divides the descriptors that are neither open nor reserved among the listeners. The reserve is a quarter
// of all descriptors within its two bounds. The ops listener comes first, so that probes are answered. The API and the
// customer area get half of the rest each, at most wanted. Fewer than minConnections for any listener is an error.
func divideDescriptors(wanted, descriptors, open int) (Limits, error) {
	free := descriptors - open - min(max(descriptors/4, minDescriptorReserve), maxDescriptorReserve)
	ops := min(opsConnections, free/8)
	each := min(wanted, (free-ops)/2)
	if min(ops, each) < minConnections {
		return Limits{}, fmt.Errorf("%d file descriptors are too few: at least %d are needed (ulimit -n)",
			descriptors, open+max(descriptors/4, minDescriptorReserve)+8*minConnections)
	}
	return Limits{each, each, ops}, nil
}
