package instance

import (
	"context"
	"math"
	"time"

	"lieudit/cmd/lieudit/metrics"
	"lieudit/projections/searchindex"
)

// registerMetrics registers the metrics of the parts, which package metrics declares. Each value is read from its part when the
// metrics are scraped; nothing is kept here.
func (i *Instance) registerMetrics() {
	i.registerVintageMetrics()
	i.registerKeyRingMetrics()
	i.registerUsageMetrics()
	i.registerBodyMetrics()
	if i.SiteIndexer != nil {
		i.registerSiteIndexerMetrics()
	}
	metrics.RegisterReadModels(i.Metrics, i.projector.Status, i.Now)
}

func (i *Instance) registerKeyRingMetrics() {
	metrics.Register(i.Metrics, "lieudit_keyring_keys", func() float64 {
		return float64(i.keyRing.Status(time.Now()).Keys)
	})
	metrics.Register(i.Metrics, "lieudit_keyring_position", func() float64 {
		return float64(i.keyRing.Status(time.Now()).Position)
	})
	metrics.Register(i.Metrics, "lieudit_keyring_age_seconds", func() float64 {
		now := time.Now()
		status := i.keyRing.Status(now)
		if status.LastPollStart.IsZero() {
			return math.NaN()
		}
		return now.Sub(status.LastPollStart).Seconds()
	})
	metrics.Register(i.Metrics, "lieudit_keyring_fresh", func() float64 { return metrics.OneIf(i.keyRing.IsFresh(time.Now())) })
}

func (i *Instance) registerUsageMetrics() {
	metrics.Register(i.Metrics, "lieudit_requests_waiting", func() float64 {
		return float64(i.waitLimiter.Waiting())
	})
	metrics.RegisterUsage(i.Metrics, i.usage.Loads)
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
	metrics.Register(i.Metrics, "lieudit_outbox_waiting", backlog(func(b searchindex.Backlog) int { return b.Pending }))
	metrics.Register(i.Metrics, "lieudit_outbox_aside", backlog(func(b searchindex.Backlog) int { return b.Refused }))
}

// registerBodyMetrics registers what clients can exhaust: the budgets of bodies, of answers, of files and of workers.
func (i *Instance) registerBodyMetrics() {
	metrics.Register(i.Metrics, "lieudit_body_bytes", func() float64 {
		return float64(i.bodyBudget.Status().Used)
	})
	metrics.Register(i.Metrics, "lieudit_bodies_waiting", func() float64 {
		return float64(i.bodyBudget.Status().Waiting)
	})
	metrics.Register(i.Metrics, "lieudit_bodies_overloaded_total", func() float64 {
		return float64(i.bodyBudget.Status().Overloaded)
	})
	metrics.Register(i.Metrics, "lieudit_answer_bytes", func() float64 {
		return float64(i.answerBudget.Status().Used)
	})
	metrics.Register(i.Metrics, "lieudit_answers_waiting", func() float64 {
		return float64(i.answerBudget.Status().Waiting)
	})
	metrics.Register(i.Metrics, "lieudit_answers_overloaded_total", func() float64 {
		return float64(i.answerBudget.Status().Overloaded)
	})
	metrics.Register(i.Metrics, "lieudit_uploads", func() float64 {
		return float64(i.uploadBudget.Status().Used)
	})
	metrics.Register(i.Metrics, "lieudit_uploads_waiting", func() float64 {
		return float64(i.uploadBudget.Status().Waiting)
	})
	metrics.Register(i.Metrics, "lieudit_workers", func() float64 {
		return float64(i.workers.Status().Used)
	})
	metrics.Register(i.Metrics, "lieudit_workers_waiting", func() float64 {
		return float64(i.workers.Status().Waiting)
	})
	metrics.Register(i.Metrics, "lieudit_workers_overloaded_total", func() float64 {
		return float64(i.workers.Status().Overloaded)
	})
}

// registerVintageMetrics registers which addresses are served.
func (i *Instance) registerVintageMetrics() {
	metrics.Register(i.Metrics, "lieudit_addresses", func() float64 {
		e, ok := i.Vintage.Acquire()
		if !ok {
			return 0
		}
		defer e.Release()
		return float64(e.Meta.Addresses)
	})
	metrics.RegisterRelease(i.Metrics, "lieudit_vintage", func() (metrics.Release, bool) {
		e, ok := i.Vintage.Acquire()
		if !ok {
			return metrics.Release{}, false
		}
		defer e.Release()
		date, _ := time.Parse(time.DateOnly, e.Meta.Millesime) // another form has no age
		return metrics.Release{Label: e.Meta.Millesime, Date: date, IsSynthetic: e.Meta.Synthetic}, true
	}, i.Now)
}
