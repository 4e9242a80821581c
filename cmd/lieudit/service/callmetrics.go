package service

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/meiliclient"
)

// callMetrics times the calls of this instance on its logs, databases and Meilisearch. The packages of these know nothing of
// metrics: they call functions that are made here.
type callMetrics struct {
	appends, syncs     *prometheus.HistogramVec // by log
	appendFailures     *prometheus.CounterVec   // by log and reason
	database           *prometheus.HistogramVec // by operation
	databaseFailures   *prometheus.CounterVec
	meilisearch        prometheus.Histogram
	meilisearchFailure prometheus.Counter
}

// newCallMetrics makes the metrics and registers those of what the configuration uses.
func newCallMetrics(c Config, registry *prometheus.Registry) *callMetrics {
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help,
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	meilisearch := histogram("lieudit_meilisearch_call_seconds", "Time of calls on Meilisearch.")
	meilisearchFailures := counter("lieudit_meilisearch_call_failures_total", "Calls on Meilisearch without an answer, or with a status from 500 on.")
	m := &callMetrics{
		appends:            histogram("lieudit_log_append_seconds", "Time from an append to the log until it is durable, or has failed.", "log"),
		syncs:              histogram("lieudit_log_sync_seconds", "Time in which the journal of this instance makes written events durable.", "log"),
		appendFailures:     counter("lieudit_log_append_failures_total", "Appends that the log did not take, or of which it is not known.", "log", "reason"),
		database:           histogram("lieudit_database_operation_seconds", "Time of statements and transactions on the read models.", "operation"),
		databaseFailures:   counter("lieudit_database_operation_failures_total", "Statements and transactions on the read models that failed.", "operation"),
		meilisearch:        meilisearch.WithLabelValues().(prometheus.Histogram),
		meilisearchFailure: meilisearchFailures.WithLabelValues(),
	}
	for _, operation := range []string{sqldb.OperationRead, sqldb.OperationWrite, sqldb.OperationTransaction} {
		m.databaseFailures.WithLabelValues(operation) // a rate needs the value before the first failure
	}
	registry.MustRegister(m.appends, m.appendFailures, m.database, m.databaseFailures)
	if c.EventStore == "" {
		registry.MustRegister(m.syncs)
	}
	if c.Meilisearch != "" {
		registry.MustRegister(meilisearch, meilisearchFailures)
	}
	return m
}

// observeSync returns what a journal tells of its syncs.
func (m *callMetrics) observeSync(log string) func(time.Duration) {
	syncs := m.syncs.WithLabelValues(log)
	return func(took time.Duration) { syncs.Observe(took.Seconds()) }
}

// observeDatabase is what the registry of read models tells of each operation. A caller that went away is not a failure.
func (m *callMetrics) observeDatabase(operation string, took time.Duration, err error) {
	m.database.WithLabelValues(operation).Observe(took.Seconds())
	if err != nil && !errors.Is(err, context.Canceled) {
		m.databaseFailures.WithLabelValues(operation).Inc()
	}
}

// newMeilisearchTransport returns a transport for a client of Meilisearch whose calls are timed.
func (m *callMetrics) newMeilisearchTransport() http.RoundTripper {
	return timedTransport{meiliclient.NewTransport(), m}
}

// timedTransport times the calls of an HTTP client. A call ends here with the header of its answer.
type timedTransport struct {
	http.RoundTripper
	metrics *callMetrics
}

func (t timedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	startedAt := time.Now()
	response, err := t.RoundTripper.RoundTrip(r)
	t.metrics.meilisearch.Observe(time.Since(startedAt).Seconds())
	if err != nil && r.Context().Err() == nil || err == nil && response.StatusCode >= http.StatusInternalServerError {
		t.metrics.meilisearchFailure.Inc()
	}
	return response, err
}

// timedLog is a log whose appends are timed.
type timedLog struct {
	eventstore.Store
	appends              prometheus.Observer
	unavailable, unknown prometheus.Counter
}

// timeAppends returns a log with the same events, whose appends are timed.
func (m *callMetrics) timeAppends(name string, log eventstore.Store) eventstore.Store {
	return timedLog{log, m.appends.WithLabelValues(name),
		m.appendFailures.WithLabelValues(name, "unavailable"), m.appendFailures.WithLabelValues(name, "unknown")}
}

// Append implements eventstore.Store.
func (l timedLog) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	startedAt := time.Now()
	result, err := l.Store.Append(ctx, stream, expected, events)
	l.appends.Observe(time.Since(startedAt).Seconds())
	switch {
	case errors.Is(err, eventstore.ErrUnavailable):
		l.unavailable.Inc()
	case errors.Is(err, eventstore.ErrUnknown):
		l.unknown.Inc()
	}
	return result, err
}
