package metrics

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

// Calls times an instance's calls to its logs, databases and Meilisearch. Their packages call the functions that this type returns.
type Calls struct {
	appends, syncs     *prometheus.HistogramVec // by log
	appendFailures     *prometheus.CounterVec   // by log and reason
	database           *prometheus.HistogramVec // by operation
	databaseFailures   *prometheus.CounterVec
	meilisearch        prometheus.Observer
	meilisearchFailure prometheus.Counter
}

// NewCalls registers the metrics of calls to the databases and to the other parts that the instance uses.
func NewCalls(r prometheus.Registerer, hasJournal, hasMeilisearch bool) *Calls {
	meilisearch, meilisearchFailures := newHistogram("lieudit_meilisearch_call_seconds"), newCounter("lieudit_meilisearch_call_failures_total")
	m := &Calls{
		appends: newHistogram("lieudit_log_append_seconds"), appendFailures: newCounter("lieudit_log_append_failures_total"), syncs: newHistogram("lieudit_log_sync_seconds"),
		database: newHistogram("lieudit_database_operation_seconds"), databaseFailures: newCounter("lieudit_database_operation_failures_total"),
		meilisearch: meilisearch.WithLabelValues(), meilisearchFailure: meilisearchFailures.WithLabelValues(),
	}
	for _, operation := range []string{sqldb.OperationRead, sqldb.OperationWrite, sqldb.OperationTransaction} {
		m.databaseFailures.WithLabelValues(operation) // a rate needs the value before the first failure
	}
	r.MustRegister(m.appends, m.appendFailures, m.database, m.databaseFailures)
	if hasJournal {
		r.MustRegister(m.syncs)
	}
	if hasMeilisearch {
		r.MustRegister(meilisearch, meilisearchFailures)
	}
	return m
}

// ObserveSync returns the function that a journal calls after each sync.
func (m *Calls) ObserveSync(log string) func(time.Duration) {
	syncs := m.syncs.WithLabelValues(log)
	return func(took time.Duration) { syncs.Observe(took.Seconds()) }
}

// ObserveDatabase is called by the registry of read models after each operation. A caller that went away is not a failure.
func (m *Calls) ObserveDatabase(operation string, took time.Duration, err error) {
	m.database.WithLabelValues(operation).Observe(took.Seconds())
	if err != nil && !errors.Is(err, context.Canceled) {
		m.databaseFailures.WithLabelValues(operation).Inc()
	}
}

// NewMeilisearchTransport returns a transport for a client of Meilisearch whose calls are timed.
func (m *Calls) NewMeilisearchTransport() http.RoundTripper {
	return timedTransport{meiliclient.NewTransport(), m}
}

// timedTransport times the calls of an HTTP client, each until the header of its answer.
type timedTransport struct {
	http.RoundTripper
	metrics *Calls
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

// TimeAppends returns a log with the same events, whose appends are timed.
func (m *Calls) TimeAppends(name string, log eventstore.Store) eventstore.Store {
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
