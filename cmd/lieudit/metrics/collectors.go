package metrics

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"lieudit/commands/usage"
	"lieudit/projections/projector"
)

// RegisterReadModels registers how far the served read models are behind the log. If the database cannot be read there are no values:
// an alert on their absence then fires.
func RegisterReadModels(r prometheus.Registerer, status func(context.Context) ([]projector.Status, error), now func() time.Time) {
	r.MustRegister(&readModelCollector{status, now, newDesc("lieudit_readmodel_lag_events"), newDesc("lieudit_readmodel_lag_seconds"), newDesc("lieudit_readmodel_stopped")})
}

// readModelCollector reads the read models once per scrape.
type readModelCollector struct {
	status                   func(context.Context) ([]projector.Status, error)
	now                      func() time.Time
	events, seconds, stopped *prometheus.Desc
}

// collectTimeout bounds what one scrape waits for the database.
const collectTimeout = time.Second

// Describe implements prometheus.Collector.
func (c *readModelCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.events
	descs <- c.seconds
	descs <- c.stopped
}

// Collect implements prometheus.Collector.
func (c *readModelCollector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	all, err := c.status(ctx)
	if err != nil {
		return
	}
	for _, s := range all {
		if !s.IsServedHere {
			continue
		}
		metrics <- prometheus.MustNewConstMetric(c.stopped, gauge, OneIf(s.Reason != ""), s.Model)
		if s.Lag < 0 { // unknown
			continue
		}
		waiting := 0.0
		if !s.WaitingSince.IsZero() {
			waiting = max(0, c.now().Sub(s.WaitingSince).Seconds())
		}
		metrics <- prometheus.MustNewConstMetric(c.events, gauge, float64(s.Lag), s.Model)
		metrics <- prometheus.MustNewConstMetric(c.seconds, gauge, waiting, s.Model)
	}
}

// RegisterUsage registers what an instance does to count requests: all in all, and by shard.
func RegisterUsage(r prometheus.Registerer, loads func() map[usage.Shard]usage.ShardLoad) {
	r.MustRegister(&usageCollector{
		loads, newDesc("lieudit_usage_events_total"), newDesc("lieudit_usage_requests_total"),
		newDesc("lieudit_usage_shard_events_total"), newDesc("lieudit_usage_shard_requests_total"), newDesc("lieudit_usage_shard_work_seconds_total"),
	})
}

// ownStreams is the shard of periods with a stream of their own.
const ownStreams = "own"

// usageCollector reads the loads once per scrape.
type usageCollector struct {
	loads                                    func() map[usage.Shard]usage.ShardLoad
	events, requests                         *prometheus.Desc
	shardEvents, shardRequests, shardSeconds *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *usageCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.events, c.requests, c.shardEvents, c.shardRequests, c.shardSeconds} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *usageCollector) Collect(metrics chan<- prometheus.Metric) {
	var events, requests int64
	for shard, l := range c.loads() {
		events, requests = events+l.Events, requests+l.Requests
		labels := []string{shard.Month, strconv.FormatInt(shard.Number, 10)}
		if shard == (usage.Shard{}) {
			labels = []string{"", ownStreams}
		}
		metrics <- prometheus.MustNewConstMetric(c.shardEvents, counter, float64(l.Events), labels...)
		metrics <- prometheus.MustNewConstMetric(c.shardRequests, counter, float64(l.Requests), labels...)
		metrics <- prometheus.MustNewConstMetric(c.shardSeconds, counter, l.Work.Seconds(), labels...)
	}
	metrics <- prometheus.MustNewConstMetric(c.events, counter, float64(events))
	metrics <- prometheus.MustNewConstMetric(c.requests, counter, float64(requests))
}

// Release is the vintage or the road network that is served.
type Release struct {
	Label       string    // the millésime, or the date of the map
	Date        time.Time // the same as a time; zero if it cannot be read
	IsSynthetic bool
}

// RegisterRelease registers which data is served and how old it is, in metrics with a prefix: lieudit_vintage or lieudit_road_network.
// While no data is served there are no values.
func RegisterRelease(r prometheus.Registerer, prefix string, served func() (Release, bool), now func() time.Time) {
	r.MustRegister(&releaseCollector{served, now, newDesc(prefix + "_info"), newDesc(prefix + "_age_seconds")})
}

// releaseCollector reads what is served once per scrape.
type releaseCollector struct {
	served    func() (Release, bool)
	now       func() time.Time
	info, age *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *releaseCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.info
	descs <- c.age
}

// Collect implements prometheus.Collector.
func (c *releaseCollector) Collect(metrics chan<- prometheus.Metric) {
	served, ok := c.served()
	if !ok {
		return
	}
	metrics <- prometheus.MustNewConstMetric(c.info, gauge, 1, served.Label, strconv.FormatBool(served.IsSynthetic))
	if !served.Date.IsZero() && !served.IsSynthetic {
		metrics <- prometheus.MustNewConstMetric(c.age, gauge, c.now().Sub(served.Date).Seconds())
	}
}
