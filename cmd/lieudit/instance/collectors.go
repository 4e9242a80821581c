package instance

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"lieudit/projections/projector"
)

// readModelCollector reads how far the served read models are behind the log, once a scrape. Where the database cannot be read
// there are no values, and an alert on their absence speaks.
type readModelCollector struct {
	status func(context.Context) ([]projector.Status, error)
	now    func() time.Time
}

// collectTimeout bounds what one scrape waits for the database.
const collectTimeout = time.Second

// readModelDescs describe the metrics of readModelCollector.
func readModelDescs() (events, seconds, stopped *prometheus.Desc) {
	labels := []string{"model"}
	return prometheus.NewDesc("lieudit_readmodel_lag_events", "Events of the log that the served read model does not hold yet; 10,000 stands for more.", labels, nil),
		prometheus.NewDesc("lieudit_readmodel_lag_seconds", "Time since the oldest of these events was recorded; 0 where there is none.", labels, nil),
		prometheus.NewDesc("lieudit_readmodel_stopped", "1 while the read model cannot go on, else 0.", labels, nil)
}

// Describe implements prometheus.Collector.
func (c *readModelCollector) Describe(descs chan<- *prometheus.Desc) {
	events, seconds, stopped := readModelDescs()
	descs <- events
	descs <- seconds
	descs <- stopped
}

// Collect implements prometheus.Collector.
func (c *readModelCollector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	all, err := c.status(ctx)
	if err != nil {
		return
	}
	events, seconds, stopped := readModelDescs()
	for _, s := range all {
		if !s.IsServedHere {
			continue
		}
		metrics <- prometheus.MustNewConstMetric(stopped, prometheus.GaugeValue, oneIf(s.Reason != ""), s.Model)
		if s.Lag < 0 { // not known
			continue
		}
		waiting := 0.0
		if !s.WaitingSince.IsZero() {
			waiting = max(0, c.now().Sub(s.WaitingSince).Seconds())
		}
		metrics <- prometheus.MustNewConstMetric(events, prometheus.GaugeValue, float64(s.Lag), s.Model)
		metrics <- prometheus.MustNewConstMetric(seconds, prometheus.GaugeValue, waiting, s.Model)
	}
}

// oneIf is the value of a metric that reports whether something holds.
func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
