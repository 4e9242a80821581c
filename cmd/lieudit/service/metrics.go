package service

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"lieudit/projections/searchindex"
)

// registerMetrics registers the metrics of the parts that openService has opened. Each value is read from its part when the
// metrics are scraped; nothing is kept here. Names, labels and help texts are part of the operator's interface.
func (s *service) registerMetrics() {
	s.registerKeyRingMetrics()
	s.registerUsageMetrics()
	s.registerAddressMetrics()
	s.registerRoadMetrics()
	if s.siteIndexer != nil {
		s.registerSiteIndexerMetrics()
	}
	s.metrics.MustRegister(&readModelCollector{s.projector.Status, s.Now})
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

func (s *service) registerKeyRingMetrics() {
	s.registerGauge("lieudit_keyring_keys", "Credentials that are valid.", nil, func() float64 {
		return float64(s.keyRing.Status(s.Now()).Keys)
	})
	s.registerGauge("lieudit_keyring_position", "Place in the log the key ring has reached.", nil, func() float64 {
		return float64(s.keyRing.Status(s.Now()).Position)
	})
	s.registerGauge("lieudit_keyring_age_seconds", "Time since the last successful look of the key ring at the log began; NaN before the first.", nil, func() float64 {
		now := s.Now()
		status := s.keyRing.Status(now)
		if status.LastPollStart.IsZero() {
			return math.NaN()
		}
		return now.Sub(status.LastPollStart).Seconds()
	})
	s.registerGauge("lieudit_keyring_fresh", "1 while keyed requests are served, else 0.", nil, func() float64 {
		if s.keyRing.IsFresh(s.Now()) {
			return 1
		}
		return 0
	})
}

func (s *service) registerUsageMetrics() {
	s.registerGauge("lieudit_requests_waiting", "Requests that wait for a silent event log.", nil, func() float64 {
		return float64(s.waitLimiter.Waiting())
	})
	s.registerCounter("lieudit_usage_events_total", "Events this instance wrote to count requests.", nil, func() float64 {
		events, _ := s.ledger.Totals()
		return float64(events)
	})
	s.registerCounter("lieudit_usage_requests_total", "Requests this instance counted.", nil, func() float64 {
		_, requests := s.ledger.Totals()
		return float64(requests)
	})
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

// registerSiteIndexerMetrics registers the backlog of the search index: changes of sites that are in the outbox and not yet
// in the index. The outbox is a table that all instances share, so each of them reports all of it. A backlog that cannot
// be read within a second is NaN.
func (s *service) registerSiteIndexerMetrics() {
	backlog := func(count func(searchindex.Backlog) int) func() float64 {
		return func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			b, err := s.siteIndexer.Backlog(ctx)
			if err != nil {
				return math.NaN()
			}
			return float64(count(b))
		}
	}
	s.registerGauge("lieudit_outbox_waiting", "Sites that the search is still to be told of.", nil, backlog(func(b searchindex.Backlog) int { return b.Pending }))
	s.registerGauge("lieudit_outbox_aside", "Sites that the search refused.", nil, backlog(func(b searchindex.Backlog) int { return b.Refused }))
}

// registerConnectionMetrics registers what clients can exhaust: the budget of bodies and the connections of the listeners.
func (s *service) registerConnectionMetrics() {
	s.registerGauge("lieudit_body_bytes", "Bytes of the budget of large request bodies that are in use.", nil, func() float64 {
		return float64(s.bodyBudget.Status().Used)
	})
	s.registerGauge("lieudit_bodies_waiting", "Large request bodies that wait for their share of the budget.", nil, func() float64 {
		return float64(s.bodyBudget.Status().Waiting)
	})
	s.registerCounter("lieudit_bodies_overloaded_total", "Large request bodies that got no share of the budget.", nil, func() float64 {
		return float64(s.bodyBudget.Status().Overloaded)
	})
	s.registerGauge("lieudit_uploads", "Files of clients that are on disk while they are answered.", nil, func() float64 {
		return float64(s.uploadBudget.Status().Used)
	})
	s.registerGauge("lieudit_uploads_waiting", "Files that wait for their turn to be read.", nil, func() float64 {
		return float64(s.uploadBudget.Status().Waiting)
	})
	for name, l := range map[string]*listener{"api": s.api, "area": s.area, "ops": s.ops} {
		labels := prometheus.Labels{"listener": name}
		s.registerGauge("lieudit_connections", "Connections that are open.", labels, func() float64 { return float64(l.status().Open) })
		s.registerGauge("lieudit_connections_limit", "Connections that may be open.", labels, func() float64 { return float64(l.status().Limit) })
		s.registerCounter("lieudit_connections_evicted_total", "Idle connections closed for new ones.", labels, func() float64 {
			return float64(l.status().Evicted)
		})
	}
}
