package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
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
	s.area = s.newListener("customer area", s.AreaListen, limits.Area, s.newAreaHostCheck().Handler(http.HandlerFunc(s.serveArea)))
	s.ops = s.newListener("ops", s.OpsListen, limits.Ops, s.newOpsHostCheck().Handler(ops.NewHandler(s.components(), s.metrics)))
	s.registerConnectionMetrics()
	if err := errors.Join(s.area.Open(), s.ops.Open()); err != nil {
		return err
	}
	if hasUnusableLinks(s.area.Addr(), s.AreaURL) {
		s.Log.Warn("links to the customer area work on this machine alone until --area-url names the address that browsers open", "links", s.areaURL())
	}
	return nil
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

// areaURL returns the URL at which browsers reach the customer area. By default that is localhost, which all browsers trust with
// cookies as they trust https, and some with more than 127.0.0.1. It may resolve to ::1 as well, where nothing listens: browsers then
// try 127.0.0.1.
func (s *service) areaURL() *url.URL {
	if s.AreaURL != nil {
		return s.AreaURL
	}
	_, port, _ := net.SplitHostPort(s.area.Addr().String()) // it has a port: it listens
	return &url.URL{Scheme: "http", Host: net.JoinHostPort("localhost", port)}
}

// apiURL returns the URL at which customers reach the API, as the pages show it: that of its listener, unless one is set.
func (s *service) apiURL() *url.URL {
	if s.APIURL != nil {
		return s.APIURL
	}
	host := s.Listen
	if s.api.IsOpen() {
		host = s.api.Addr().String()
	}
	return &url.URL{Scheme: "http", Host: host}
}

// hasUnusableLinks reports whether the customer area listens for other machines while its links lead to localhost, because no URL is set.
func hasUnusableLinks(listening net.Addr, areaURL *url.URL) bool {
	tcp, ok := listening.(*net.TCPAddr)
	return areaURL == nil && ok && !tcp.IP.IsLoopback()
}

// newAreaHostCheck makes the check of Host for the customer area. It accepts the host of its URL, and those by which other instances
// and programs address it.
func (s *service) newAreaHostCheck() *hostcheck.Checker {
	names := []string{s.AreaListen, machineName()}
	if peer, err := url.Parse(s.PeerURL); err == nil {
		names = append(names, peer.Host)
	}
	if s.AreaURL != nil {
		names = append(names, s.AreaURL.Host)
	}
	return hostcheck.New(s.Log, "--area-url names the customer area", names...)
}

// newOpsHostCheck makes the check of Host for the ops listener. It accepts the host that the listener listens on, the machine's name and
// the names of the setting. All paths are checked, also those for probes, which address an instance by its IP address.
func (s *service) newOpsHostCheck() *hostcheck.Checker {
	return hostcheck.New(s.Log, "--ops-hosts allows names", append(slices.Clone(s.OpsHosts), machineName(), s.OpsListen)...)
}

// machineName returns the machine's name, "" if it has none: the other names still work.
func machineName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
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
