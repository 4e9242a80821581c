package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	"lieudit/cmd/lieudit/listener"
	"lieudit/cmd/lieudit/metrics"
	"lieudit/cmd/lieudit/ops"
	"lieudit/http/hostcheck"
)

// openListeners makes the three listeners, and opens the sockets of the customer area and of ops. A connection made before serve
// runs waits in the system's queue. serveAPI opens the socket of the API.
func (s *service) openListeners(context.Context) error {
	limits, err := listener.DivideDescriptors(cmp.Or(s.MaxConnections, DefaultMaxConnections), s.Log)
	if err != nil {
		return err
	}
	s.api = s.newListener("API", s.Listen, limits.API, s.instance.API())
	s.area = s.newListener("customer area", s.AreaListen, limits.Area, http.HandlerFunc(s.serveArea))
	s.ops = s.newListener("ops", s.OpsListen, limits.Ops, s.newOpsHostCheck().Handler(ops.NewHandler(s.components(), s.metrics)))
	s.registerConnectionMetrics()
	return errors.Join(s.area.Open(), s.ops.Open())
}

// newListener makes a listener whose socket is closed with the service.
func (s *service) newListener(name, address string, connections int, handler http.Handler) *listener.Listener {
	l := listener.New(name, address, connections, handler, s.isStopping.Load, s.Log)
	s.onClose(l.Close)
	return l
}

// serveArea answers the customer area and, on paths of their own, the other instances.
func (s *service) serveArea(w http.ResponseWriter, r *http.Request) {
	s.peers.Handler(s.instance.Area()).ServeHTTP(w, r)
}

// newOpsHostCheck makes the check of Host for the ops listener. It accepts the host that the listener listens on, the machine's name and
// the names of the setting. All paths are checked, also those for probes, which address an instance by its IP address.
func (s *service) newOpsHostCheck() *hostcheck.Checker {
	machine, err := os.Hostname()
	if err != nil { // the other names still work
		machine = ""
	}
	return hostcheck.New(s.Log, "--ops-hosts allows names", append(slices.Clone(s.OpsHosts), machine, s.OpsListen)...)
}

// checkConnections returns an error that names the listeners that are at their cap and have no idle connection to close,
// nil if there are none.
func (s *service) checkConnections(context.Context) error {
	var full []error
	for _, l := range []*listener.Listener{s.api, s.area} {
		if status := l.Status(); status.Full {
			full = append(full, fmt.Errorf("%s: all %d connections are at work", l.Name(), status.Limit))
		}
	}
	return errors.Join(full...)
}

// registerConnectionMetrics registers the metrics of the listeners' connections, which clients can exhaust.
func (s *service) registerConnectionMetrics() {
	for name, l := range map[string]*listener.Listener{"api": s.api, "area": s.area, "ops": s.ops} {
		metrics.Register(s.metrics, "lieudit_connections", func() float64 { return float64(l.Status().Open) }, name)
		metrics.Register(s.metrics, "lieudit_connections_limit", func() float64 { return float64(l.Status().Limit) }, name)
		metrics.Register(s.metrics, "lieudit_connections_evicted_total", func() float64 { return float64(l.Status().Evicted) }, name)
		metrics.Register(s.metrics, "lieudit_slow_readers_total", func() float64 { return float64(l.Status().SlowReaders) }, name)
	}
}
