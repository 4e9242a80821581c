// Package metrics declares the metrics of an instance: each has one line in the table of this package, with its name, its kind, its help
// and its labels. A name ends with its unit, seconds or bytes, or with total if the metric only rises. Names, labels and help are part of
// the operator's interface; the chapter on metrics of lieudit guide explains them, and tests compare it with what is served.
//
//	a part's value, when metrics are scraped ── Register, RegisterUsage, RegisterReadModels, RegisterRelease ──┐
//	HTTP.Handler, Calls: what is counted and timed as it happens ──────────────────────────────────────────────┴──> registry ──> /metrics (package ops)
//
// The parts know nothing about metrics: the packages that wire them hand in functions.
package metrics

import "github.com/prometheus/client_golang/prometheus"

// declaration describes a metric.
type declaration struct {
	name   string
	kind   prometheus.ValueType // untyped: a histogram
	help   string
	labels []string
}

const (
	gauge     = prometheus.GaugeValue
	counter   = prometheus.CounterValue
	histogram = prometheus.UntypedValue
)

// table has all metrics whose names begin with lieudit_, except the two of readiness, which package ops makes.
func table() []declaration {
	return []declaration{
		{"lieudit_http_answers_total", counter, "Answers sent.", []string{"listener", "status"}},
		{"lieudit_http_answer_seconds", histogram, "Time from a request's headers to its answer.", []string{"listener"}},
		{"lieudit_refusals_total", counter, "Requests refused, by the code of the refusal.", []string{"listener", "reason"}},
		{"lieudit_requests_waiting", gauge, "Requests that wait for a silent event log.", nil},
		{"lieudit_usage_events_total", counter, "Events this instance wrote to count requests.", nil},
		{"lieudit_usage_requests_total", counter, "Requests this instance counted.", nil},
		{"lieudit_usage_shard_events_total", counter, "Events this instance wrote to count requests, by the stream that they are in.", []string{"month", "shard"}},
		{"lieudit_usage_shard_requests_total", counter, "Requests this instance counted, by the stream that they are counted in.", []string{"month", "shard"}},
		{"lieudit_usage_shard_work_seconds_total", counter, "Time this instance spent counting, without the wait for the log, by stream.", []string{"month", "shard"}},

		{"lieudit_connections", gauge, "Connections that are open.", []string{"listener"}},
		{"lieudit_connections_limit", gauge, "Connections that may be open.", []string{"listener"}},
		{"lieudit_connections_evicted_total", counter, "Idle connections closed for new ones.", []string{"listener"}},
		{"lieudit_slow_readers_total", counter, "Connections closed because their clients read too slowly.", []string{"listener"}},
		{"lieudit_body_bytes", gauge, "Bytes of the budget of large request bodies that are in use.", nil},
		{"lieudit_bodies_waiting", gauge, "Large request bodies that wait for their share of the budget.", nil},
		{"lieudit_bodies_overloaded_total", counter, "Large request bodies that got no share of the budget.", nil},
		{"lieudit_answer_bytes", gauge, "Bytes of the budget of large answers that are in use.", nil},
		{"lieudit_answers_waiting", gauge, "Large answers that wait for their share of the budget.", nil},
		{"lieudit_answers_overloaded_total", counter, "Large answers that got no share of the budget.", nil},
		{"lieudit_uploads", gauge, "Files of clients that are on disk while they are answered.", nil},
		{"lieudit_uploads_waiting", gauge, "Files that wait for their turn to be read.", nil},
		{"lieudit_workers", gauge, "Costly questions that are worked on.", nil},
		{"lieudit_workers_waiting", gauge, "Costly questions that wait for their turn at a worker.", nil},
		{"lieudit_workers_overloaded_total", counter, "Costly questions that got no turn in time.", nil},

		{"lieudit_log_append_seconds", histogram, "Time from an append to the log until it is durable, or has failed.", []string{"log"}},
		{"lieudit_log_append_failures_total", counter, "Appends that the log did not take, or of which it is not known.", []string{"log", "reason"}},
		{"lieudit_log_sync_seconds", histogram, "Time in which the journal of this instance makes written events durable.", []string{"log"}},
		{"lieudit_keyring_keys", gauge, "Credentials that are valid.", nil},
		{"lieudit_keyring_position", gauge, "Place in the log the key ring has reached.", nil},
		{"lieudit_keyring_age_seconds", gauge, "Time since the last successful look of the key ring at the log began; NaN before the first.", nil},
		{"lieudit_keyring_fresh", gauge, "1 while keyed requests are served, else 0.", nil},

		{"lieudit_readmodel_lag_events", gauge, "Events of the log that the served read model does not hold yet; 10,000 stands for more.", []string{"model"}},
		{"lieudit_readmodel_lag_seconds", gauge, "Time since the oldest of these events was recorded; 0 where there is none.", []string{"model"}},
		{"lieudit_readmodel_stopped", gauge, "1 while the read model cannot go on, else 0.", []string{"model"}},
		{"lieudit_database_operation_seconds", histogram, "Time of statements and transactions on the read models.", []string{"operation"}},
		{"lieudit_database_operation_failures_total", counter, "Statements and transactions on the read models that failed.", []string{"operation"}},
		{"lieudit_meilisearch_call_seconds", histogram, "Time of calls on Meilisearch.", nil},
		{"lieudit_meilisearch_call_failures_total", counter, "Calls on Meilisearch without an answer, or with a status from 500 on.", nil},
		{"lieudit_outbox_waiting", gauge, "Sites that the search is still to be told of.", nil},
		{"lieudit_outbox_aside", gauge, "Sites that the search refused.", nil},
		{"lieudit_address_index_requests_total", counter, "Requests for candidates of addresses.", nil},
		{"lieudit_address_index_searches_total", counter, "Searches in those requests.", nil},

		{"lieudit_addresses", gauge, "Addresses of the vintage that is served.", nil},
		{"lieudit_vintage_info", gauge, "1, with what is served in the labels.", []string{"millesime", "synthetic"}},
		{"lieudit_vintage_age_seconds", gauge, "Time since the date of what is served; none for invented data.", nil},
		{"lieudit_roads", gauge, "Pieces of road, between junctions, of the road network that is served.", nil},
		{"lieudit_road_network_info", gauge, "1, with what is served in the labels.", []string{"date", "synthetic"}},
		{"lieudit_road_network_age_seconds", gauge, "Time since the date of what is served; none for invented data.", nil},
		{"lieudit_release_served", gauge, "1 while the last release is served, or there is none, else 0.", []string{"kind"}},
	}
}

// findDeclaration finds the declaration of a metric by its name. For an undeclared metric it returns a declaration that cannot be
// registered.
func findDeclaration(name string) declaration {
	for _, d := range table() {
		if d.name == name {
			return d
		}
	}
	return declaration{name: name + " is not declared\xff"} // not UTF-8, so not a valid name of a metric
}

// Register registers a metric whose value is read when metrics are scraped. The values of its labels stay the same.
func Register(r prometheus.Registerer, name string, value func() float64, labelValues ...string) {
	d := findDeclaration(name)
	labels := prometheus.Labels{}
	for i, label := range d.labels {
		labels[label] = labelValues[i]
	}
	if d.kind == counter {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: d.name, Help: d.help, ConstLabels: labels}, value))
		return
	}
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: d.name, Help: d.help, ConstLabels: labels}, value))
}

// OneIf returns the value of a metric that reports whether a condition holds.
func OneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// newDesc returns the description of a metric that a collector makes.
func newDesc(name string) *prometheus.Desc {
	d := findDeclaration(name)
	return prometheus.NewDesc(d.name, d.help, d.labels, nil)
}

func newCounter(name string) *prometheus.CounterVec {
	d := findDeclaration(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.name, Help: d.help}, d.labels)
}

// newHistogram returns a histogram of seconds.
func newHistogram(name string) *prometheus.HistogramVec {
	d := findDeclaration(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.name, Help: d.help,
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}}, d.labels)
}
