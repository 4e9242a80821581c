package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	"lieudit/cmd/lieudit/metrics"
	"lieudit/cmd/lieudit/ops"
	"lieudit/http/hostcheck"
)

// openListeners makes the three listeners, and opens the sockets of the customer area and of ops. A connection made before serve
// runs waits in the system's queue. serveAPI opens the socket of the API.
func (s *service) openListeners(context.Context) error {
	limits, err := s.limitConnections()
	if err != nil {
		return err
	}
	s.api = s.newListener("API", s.Listen, limits.api, s.instance.API())
	s.area = s.newListener("customer area", s.AreaListen, limits.area, http.HandlerFunc(s.serveArea))
	s.ops = s.newListener("ops", s.OpsListen, limits.ops, s.newOpsHostCheck().Handler(ops.NewHandler(s.components(), s.metrics)))
	s.registerConnectionMetrics()
	return errors.Join(s.area.open(), s.ops.open())
}

// serveArea answers the customer area and, on paths of their own, the other instances.
func (s *service) serveArea(w http.ResponseWriter, r *http.Request) {
	s.peers.Handler(s.instance.Area()).ServeHTTP(w, r)
}

// newOpsHostCheck makes the check of Host for the ops listener: it answers by the host that it listens on, by the machine's name, and by
// the names of the setting. All its paths are checked, also those for probes, which address an instance by its IP address.
func (s *service) newOpsHostCheck() *hostcheck.Checker {
	machine, err := os.Hostname()
	if err != nil { // then it is addressed by one of the others
		machine = ""
	}
	return hostcheck.New(s.Log, "--ops-hosts allows names", append(slices.Clone(s.OpsHosts), machine, s.OpsListen)...)
}

const (
	// opsConnections is the cap of the ops listener: probes, a scraper and people.
	opsConnections = 64
	// minConnections is the smallest cap with which a listener is of use.
	minConnections = 8
	// minDescriptorReserve and maxDescriptorReserve bound the file descriptors reserved for what is opened later: the
	// log's next segments (two each), databases, vintages, connections to servers.
	minDescriptorReserve, maxDescriptorReserve = 96, 1024
)

// connectionLimits is how many connections each listener takes.
type connectionLimits struct{ api, area, ops int }

// limitConnections lowers the caps of the listeners to what the file descriptors of the process allow, so that idle
// connections never keep the log from opening a file. Where the number of descriptors is not known, the caps stay as
// configured. It must run after the log and the databases are open, since it counts their descriptors.
func (s *service) limitConnections() (connectionLimits, error) {
	wanted := cmp.Or(s.MaxConnections, DefaultMaxConnections)
	descriptors, known := maxDescriptors()
	if !known {
		return connectionLimits{wanted, wanted, opsConnections}, nil
	}
	limits, err := divideDescriptors(wanted, descriptors, countOpenDescriptors())
	if err == nil && limits.api < wanted {
		s.Log.Warn("fewer connections than asked for: file descriptors are few", "descriptors", descriptors, "connections", limits.api)
	}
	return limits, err
}

// countOpenDescriptors counts the open file descriptors of the process, those of the log and the databases among them.
// Where /proc does not list them it returns an estimate.
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
func divideDescriptors(wanted, descriptors, open int) (connectionLimits, error) {
	free := descriptors - open - min(max(descriptors/4, minDescriptorReserve), maxDescriptorReserve)
	ops := min(opsConnections, free/8)
	each := min(wanted, (free-ops)/2)
	if min(ops, each) < minConnections {
		return connectionLimits{}, fmt.Errorf("%d file descriptors are too few: at least %d are needed (ulimit -n)",
			descriptors, open+max(descriptors/4, minDescriptorReserve)+8*minConnections)
	}
	return connectionLimits{each, each, ops}, nil
}

// checkConnections returns an error that names the listeners that are at their cap and have no idle connection to close,
// nil when there are none.
func (s *service) checkConnections(context.Context) error {
	var full []error
	for _, l := range []*listener{s.api, s.area} {
		if status := l.status(); status.Full {
			full = append(full, fmt.Errorf("%s: all %d connections are at work", l.name, status.Limit))
		}
	}
	return errors.Join(full...)
}

// registerConnectionMetrics registers the connections of the listeners, which clients can exhaust.
func (s *service) registerConnectionMetrics() {
	for name, l := range map[string]*listener{"api": s.api, "area": s.area, "ops": s.ops} {
		metrics.Register(s.metrics, "lieudit_connections", func() float64 { return float64(l.status().Open) }, name)
		metrics.Register(s.metrics, "lieudit_connections_limit", func() float64 { return float64(l.status().Limit) }, name)
		metrics.Register(s.metrics, "lieudit_connections_evicted_total", func() float64 { return float64(l.status().Evicted) }, name)
		metrics.Register(s.metrics, "lieudit_slow_readers_total", func() float64 { return float64(l.status().SlowReaders) }, name)
	}
}
