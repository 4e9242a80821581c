package service

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"lieudit/cmd/lieudit/ops"
	"lieudit/cmd/lieudit/peers"
)

// registerMetrics registers the metrics of the parts that openService has opened; those of the instance are there already. Each value
// is read from its part when the metrics are scraped; nothing is kept here. Names, labels and help texts are part of the operator's interface.
func (s *service) registerMetrics() {
	s.registerAddressMetrics()
	s.registerRoadMetrics()
	s.registerReleaseMetrics()
	s.metrics.MustRegister(ops.NewReadinessCollector(s.components()))
	s.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// registerGauge registers a value that may rise and fall. Labels may be nil.
func (s *service) registerGauge(name, help string, labels prometheus.Labels, value func() float64) {
	s.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
}

// registerCounter registers a value that only rises. Labels may be nil.
func (s *service) registerCounter(name, help string, labels prometheus.Labels, value func() float64) {
	s.metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, value))
}

func (s *service) registerAddressMetrics() {
	s.registerGauge("lieudit_addresses", "Addresses of the vintage that is served.", nil, func() float64 {
		e, ok := s.liveVintage.Acquire()
		if !ok {
			return 0
		}
		defer e.Release()
		return float64(e.Meta.Addresses)
	})
	s.metrics.MustRegister(newReleaseCollector("vintage", "millesime", s.servedVintage, s.Now), newReleaseCollector("road_network", "date", s.servedRoadNetwork, s.Now))
	if s.addressIndex == nil {
		return
	}
	s.registerCounter("lieudit_address_index_requests_total", "Requests for candidates of addresses.", nil, func() float64 {
		requests, _ := s.addressIndex.RequestCounts()
		return float64(requests)
	})
	s.registerCounter("lieudit_address_index_searches_total", "Searches in those requests.", nil, func() float64 {
		_, searches := s.addressIndex.RequestCounts()
		return float64(searches)
	})
}

// registerRoadMetrics registers the size of the own road network; 0 where none is served.
func (s *service) registerRoadMetrics() {
	s.registerGauge("lieudit_roads", "Pieces of road, between junctions, of the road network that is served.", nil, func() float64 {
		if served := s.servedNetwork.Load(); served != nil {
			return float64(served.Roads)
		}
		return 0
	})
}

// registerReleaseMetrics registers whether the instance serves what all instances are to serve.
func (s *service) registerReleaseMetrics() {
	for _, kind := range []string{peers.VintageKind, peers.NetworkKind} {
		s.registerGauge("lieudit_release_served", "1 while the last release is served, or there is none, else 0.", prometheus.Labels{"kind": kind}, func() float64 {
			if s.peers.ServesLast(kind) {
				return 1
			}
			return 0
		})
	}
}

// registerConnectionMetrics registers the connections of the listeners, which clients can exhaust.
func (s *service) registerConnectionMetrics() {
	for name, l := range map[string]*listener{"api": s.api, "area": s.area, "ops": s.ops} {
		labels := prometheus.Labels{"listener": name}
		s.registerGauge("lieudit_connections", "Connections that are open.", labels, func() float64 { return float64(l.status().Open) })
		s.registerGauge("lieudit_connections_limit", "Connections that may be open.", labels, func() float64 { return float64(l.status().Limit) })
		s.registerCounter("lieudit_connections_evicted_total", "Idle connections closed for new ones.", labels, func() float64 {
			return float64(l.status().Evicted)
		})
		s.registerCounter("lieudit_slow_readers_total", "Connections closed because their clients read too slowly.", labels, func() float64 {
			return float64(l.status().SlowReaders)
		})
	}
}
