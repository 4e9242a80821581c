package instance

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"lieudit/projections/searchindex"
)

// registerMetrics registers the metrics of the parts. Each value is read from its part when the
// metrics are scraped; nothing is kept here. Names, labels and help texts are part of the operator's interface.
func (i *Instance) registerMetrics() {
	i.registerKeyRingMetrics()
	i.registerUsageMetrics()
	i.registerBodyMetrics()
	if i.SiteIndexer != nil {
		i.registerSiteIndexerMetrics()
	}
	i.Metrics.MustRegister(&readModelCollector{i.projector.Status, i.Now})
}

// registerGauge registers a value that may rise and fall. Labels may be nil.
func (i *Instance) registerGauge(name, help string, labels prometheus.Labels, value func() float64) {
	i.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
}

// registerCounter registers a value that only rises. Labels may be nil.
func (i *Instance) registerCounter(name, help string, labels prometheus.Labels, value func() float64) {
	i.Metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, value))
}

func (i *Instance) registerKeyRingMetrics() {
	i.registerGauge("lieudit_keyring_keys", "Credentials that are valid.", nil, func() float64 {
		return float64(i.keyRing.Status(time.Now()).Keys)
	})
	i.registerGauge("lieudit_keyring_position", "Place in the log the key ring has reached.", nil, func() float64 {
		return float64(i.keyRing.Status(time.Now()).Position)
	})
	i.registerGauge("lieudit_keyring_age_seconds", "Time since the last successful look of the key ring at the log began; NaN before the first.", nil, func() float64 {
		now := time.Now()
		status := i.keyRing.Status(now)
		if status.LastPollStart.IsZero() {
			return math.NaN()
		}
		return now.Sub(status.LastPollStart).Seconds()
	})
	i.registerGauge("lieudit_keyring_fresh", "1 while keyed requests are served, else 0.", nil, func() float64 {
		if i.keyRing.IsFresh(time.Now()) {
			return 1
		}
		return 0
	})
}

func (i *Instance) registerUsageMetrics() {
	i.registerGauge("lieudit_requests_waiting", "Requests that wait for a silent event log.", nil, func() float64 {
		return float64(i.waitLimiter.Waiting())
	})
	i.registerCounter("lieudit_usage_events_total", "Events this instance wrote to count requests.", nil, func() float64 {
		events, _ := i.usage.Totals()
		return float64(events)
	})
	i.registerCounter("lieudit_usage_requests_total", "Requests this instance counted.", nil, func() float64 {
		_, requests := i.usage.Totals()
		return float64(requests)
	})
}

// registerSiteIndexerMetrics registers the backlog of the search index: changes of sites that are in the outbox and not yet
// in the index. The outbox is a table that all instances share, so each of them reports all of it. A backlog that cannot
// be read within a second is NaN.
func (i *Instance) registerSiteIndexerMetrics() {
	backlog := func(count func(searchindex.Backlog) int) func() float64 {
		return func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			b, err := i.SiteIndexer.Backlog(ctx)
			if err != nil {
				return math.NaN()
			}
			return float64(count(b))
		}
	}
	i.registerGauge("lieudit_outbox_waiting", "Sites that the search is still to be told of.", nil, backlog(func(b searchindex.Backlog) int { return b.Pending }))
	i.registerGauge("lieudit_outbox_aside", "Sites that the search refused.", nil, backlog(func(b searchindex.Backlog) int { return b.Refused }))
}

// registerBodyMetrics registers what clients can exhaust: the budgets of bodies, of answers, of files and of workers.
func (i *Instance) registerBodyMetrics() {
	i.registerGauge("lieudit_body_bytes", "Bytes of the budget of large request bodies that are in use.", nil, func() float64 {
		return float64(i.bodyBudget.Status().Used)
	})
	i.registerGauge("lieudit_bodies_waiting", "Large request bodies that wait for their share of the budget.", nil, func() float64 {
		return float64(i.bodyBudget.Status().Waiting)
	})
	i.registerCounter("lieudit_bodies_overloaded_total", "Large request bodies that got no share of the budget.", nil, func() float64 {
		return float64(i.bodyBudget.Status().Overloaded)
	})
	i.registerGauge("lieudit_answer_bytes", "Bytes of the budget of large answers that are in use.", nil, func() float64 {
		return float64(i.answerBudget.Status().Used)
	})
	i.registerGauge("lieudit_answers_waiting", "Large answers that wait for their share of the budget.", nil, func() float64 {
		return float64(i.answerBudget.Status().Waiting)
	})
	i.registerCounter("lieudit_answers_overloaded_total", "Large answers that got no share of the budget.", nil, func() float64 {
		return float64(i.answerBudget.Status().Overloaded)
	})
	i.registerGauge("lieudit_uploads", "Files of clients that are on disk while they are answered.", nil, func() float64 {
		return float64(i.uploadBudget.Status().Used)
	})
	i.registerGauge("lieudit_uploads_waiting", "Files that wait for their turn to be read.", nil, func() float64 {
		return float64(i.uploadBudget.Status().Waiting)
	})
	i.registerGauge("lieudit_workers", "Costly questions that are worked on.", nil, func() float64 {
		return float64(i.workers.Status().Used)
	})
	i.registerGauge("lieudit_workers_waiting", "Costly questions that wait for their turn at a worker.", nil, func() float64 {
		return float64(i.workers.Status().Waiting)
	})
	i.registerCounter("lieudit_workers_overloaded_total", "Costly questions that got no turn in time.", nil, func() float64 {
		return float64(i.workers.Status().Overloaded)
	})
}
