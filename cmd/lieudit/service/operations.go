package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"lieudit/cmd/lieudit/ops"
	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
)

// components are what readiness is asked of.
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
		{Name: "connections", Check: s.checkConnections},
		{Name: "start", Required: true, Check: s.checkStarted},
	}
	if s.siteIndexer != nil {
		all = append(all, ops.Component{Name: "site search", Check: s.siteIndexer.Ready})
	}
	if s.addressIndex != nil {
		all = append(all, ops.Component{Name: "address index", Check: s.checkAddressIndex})
	}
	return all
}

// checkReadModels is nil while every read model goes on and none of them has stopped an account or passed over an empty commit.
func (s *service) checkReadModels(ctx context.Context) error {
	return errors.Join(s.projector.Ready(ctx), s.projector.Incidents(ctx))
}

// checkKeyRing is nil while the key ring is fresh. One that was a moment ago waits for a log that stalls.
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

// checkStarted is nil once the read models have caught up for the first time: before that an instance is not to be relied
// on, after it the API does without them when it must.
func (s *service) checkStarted(ctx context.Context) error {
	if s.hasCaughtUp.Load() {
		return nil
	}
	if err := s.projector.Ready(ctx); err != nil {
		return fmt.Errorf("the read models have not caught up yet: %w", err)
	}
	s.hasCaughtUp.Store(true)
	return nil
}

// registerMetrics are what can be asked of an instance at any moment.
func (s *service) registerMetrics() {
	gauge := func(name, help string, value func() float64) {
		s.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("lieudit_keyring_keys", "Credentials that are valid.", func() float64 {
		return float64(s.keyRing.Status(s.Now()).Keys)
	})
	gauge("lieudit_keyring_position", "Place in the log the key ring has reached.", func() float64 {
		return float64(s.keyRing.Status(s.Now()).Position)
	})
	gauge("lieudit_keyring_fresh", "1 while keyed requests are served, else 0.", func() float64 {
		if s.keyRing.IsFresh(s.Now()) {
			return 1
		}
		return 0
	})
	gauge("lieudit_requests_waiting", "Requests that wait for a silent event log.", func() float64 {
		return float64(s.waitLimiter.Waiting())
	})
	gauge("lieudit_addresses", "Addresses of the vintage that is served.", func() float64 {
		e, ok := s.atlas.Use()
		if !ok {
			return 0
		}
		defer e.Done()
		return float64(e.Meta.Addresses)
	})
	counter := func(name, help string, value func() int64) {
		s.metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(value()) }))
	}
	counter("lieudit_usage_events_total", "Events this instance wrote to count requests.", func() int64 {
		events, _ := s.ledger.Totals()
		return events
	})
	counter("lieudit_usage_requests_total", "Requests this instance counted.", func() int64 {
		_, requests := s.ledger.Totals()
		return requests
	})
	if s.siteIndexer != nil {
		s.registerSiteIndexerMetrics()
	}
	if s.addressIndex != nil {
		counter("lieudit_address_index_requests_total", "Requests for candidates of addresses.", func() int64 {
			requests, _ := s.addressIndex.Asked()
			return requests
		})
		counter("lieudit_address_index_searches_total", "Searches in those requests.", func() int64 {
			_, searches := s.addressIndex.Asked()
			return searches
		})
	}
	s.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// registerConnectionMetrics are about what those outside can use up: the budget of bodies, and the connections of the listeners.
func (s *service) registerConnectionMetrics() {
	register := func(name, help string, labels prometheus.Labels, isCounter bool, value func() float64) {
		if isCounter {
			s.metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, value))
			return
		}
		s.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
	}
	register("lieudit_body_bytes", "Bytes of the budget of large request bodies that are in use.", nil, false, func() float64 {
		return float64(s.bodyBudget.Status().Used)
	})
	register("lieudit_bodies_waiting", "Large request bodies that wait for their share of the budget.", nil, false, func() float64 {
		return float64(s.bodyBudget.Status().Waiting)
	})
	register("lieudit_bodies_overloaded_total", "Large request bodies that got no share of the budget.", nil, true, func() float64 {
		return float64(s.bodyBudget.Status().Overloaded)
	})
	for name, l := range map[string]*listener{"api": s.api, "area": s.area, "ops": s.ops} {
		labels := prometheus.Labels{"listener": name}
		register("lieudit_connections", "Connections that are open.", labels, false, func() float64 { return float64(l.socket.Status().Open) })
		register("lieudit_connections_limit", "Connections that may be open.", labels, false, func() float64 { return float64(l.socket.Status().Limit) })
		register("lieudit_connections_evicted_total", "Idle connections closed for new ones.", labels, true, func() float64 {
			return float64(l.socket.Status().Evicted)
		})
	}
}

// withMetrics counts and times the answers of a listener.
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

// statusRecorder is a ResponseWriter that remembers the status.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
