package service

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"lieudit/cmd/lieudit/ops"
	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/projections/searchindex"
)

// components are the parts that readiness reports, checked one after the other. While a required one fails, the instance
// answers 503 on /readyz: then it cannot check keys, count requests or seal personal fields. The other parts are
// reported and leave the instance ready, since a part of the requests can be served without them.
func (s *service) components() []ops.Component {
	health := func(store eventstore.Store) func(context.Context) error {
		return func(context.Context) error { return store.Health() }
	}
	all := []ops.Component{
		{Name: "log", Required: true, Check: health(s.logs.core)},
		{Name: "usage log", Required: true, Check: health(s.logs.usage)},
		{Name: "key ring", Required: true, Check: s.checkKeyRing},
		{Name: "vault", Required: true, Check: s.vault.Ready},
		{Name: "data keys", Check: s.vault.Reachable},
		{Name: "read models", Check: s.checkReadModels},
		{Name: "addresses", Check: s.checkAddresses},
		{Name: "routes", Check: s.checkRoads},
		{Name: "connections", Check: s.checkConnections},
		{Name: "proxies", Check: s.clients.Check},
		{Name: "start", Required: true, Check: s.checkStarted},
		{Name: "stop", Required: true, Check: s.checkStopping},
	}
	if s.siteIndexer != nil {
		all = append(all, ops.Component{Name: "site search", Check: s.siteIndexer.Ready})
	}
	if s.addressIndex != nil {
		all = append(all, ops.Component{Name: "address index", Check: s.checkAddressIndex})
	}
	return all
}

// isReady says what /readyz answers now.
func (s *service) isReady(ctx context.Context) bool { return ops.Check(ctx, s.components()).Ready }

// checkReadModels returns nil while every read model advances and none has stopped an account or passed over an empty
// commit, which is a sync's last event without the id of the sync.
func (s *service) checkReadModels(ctx context.Context) error {
	return errors.Join(s.checkUsageLoss(ctx), s.projector.Ready(ctx), s.projector.Incidents(ctx))
}

// checkKeyRing returns nil while the key ring is fresh: it holds every event up to a moment ago. For a ring whose last
// successful poll began less than waitlimit.MaxSilence ago it returns an *eventstore.StallError, which does not make the
// instance unready: the log is silent, and requests wait for it.
func (s *service) checkKeyRing(context.Context) error {
	now := s.Now()
	status := s.keyRing.Status(now)
	reason := errors.New(status.Reason)
	switch silence := now.Sub(status.LastPollStart); {
	case status.Fresh:
		return nil
	case s.keyRing.FreshUntil().IsZero() || silence >= waitlimit.MaxSilence:
		return reason
	default:
		return &eventstore.StallError{Duration: silence, Err: reason}
	}
}

// checkStarted returns nil once the socket of the API is open and the read models have caught up for the first time. Before that an instance would answer from
// old rows; after it a read model that stops leaves the instance ready, since authentication, metering and addresses do
// not need one.
func (s *service) checkStarted(ctx context.Context) error {
	if s.hasCaughtUp.Load() {
		return nil
	}
	if !s.api.isOpen() {
		return errAPINotOpen
	}
	if err := s.projector.Ready(ctx); err != nil {
		return fmt.Errorf("the read models have not caught up yet: %w", err)
	}
	s.hasCaughtUp.Store(true)
	return nil
}

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

// withMetrics counts and times the answers of a listener, those of handlers that panic too. It has a recorder of its own
// because the label is "status": promhttp's instrumentation only has "code".
func (s *service) withMetrics(name string, next http.Handler) http.Handler {
	labels := prometheus.Labels{"listener": name}
	responses := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lieudit_http_answers_total", Help: "Answers sent.", ConstLabels: labels}, []string{"status"})
	durations := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "lieudit_http_answer_seconds", Help: "Time from a request's headers to its answer.", ConstLabels: labels,
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}})
	s.metrics.MustRegister(responses, durations)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		startedAt := time.Now()
		recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			durations.Observe(time.Since(startedAt).Seconds())
			responses.WithLabelValues(strconv.Itoa(recorder.status)).Inc()
		}()
		next.ServeHTTP(recorder, r)
	})
}

// statusRecorder is a ResponseWriter that keeps the status, 200 where the handler sets none.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
