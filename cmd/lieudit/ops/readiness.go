package ops

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// readinessCollector checks the components once per scrape and reports what /readyz would answer.
type readinessCollector struct {
	components       []Component
	ready, component *prometheus.Desc
}

// NewReadinessCollector returns the metrics of what Check reports: lieudit_ready, and lieudit_component_ready for each component.
func NewReadinessCollector(components []Component) prometheus.Collector {
	return &readinessCollector{components,
		prometheus.NewDesc("lieudit_ready", "1 while the instance is ready, as /readyz says, else 0.", nil, nil),
		prometheus.NewDesc("lieudit_component_ready", "1 while the component works, else 0; required says whether the instance is ready without it.",
			[]string{"component", "required"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *readinessCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.ready
	descs <- c.component
}

// Collect implements prometheus.Collector.
func (c *readinessCollector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), ReadinessTimeout)
	defer cancel()
	report := Check(ctx, c.components)
	metrics <- prometheus.MustNewConstMetric(c.ready, prometheus.GaugeValue, oneIf(report.Ready))
	for _, p := range c.components {
		required := "false"
		if p.Required {
			required = "true"
		}
		metrics <- prometheus.MustNewConstMetric(c.component, prometheus.GaugeValue, oneIf(report.Reason(p.Name) == ""), p.Name, required)
	}
}

// oneIf returns the value of a metric that reports whether a condition holds.
func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
