package service

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// servedRelease is what a scrape tells of the addresses or roads that are served.
type servedRelease struct {
	label       string    // the millésime, or the date of the map
	date        time.Time // the same as a time; zero where it cannot be read
	isSynthetic bool
}

// releaseCollector tells which data is served and how old it is. It tells nothing while none is served.
type releaseCollector struct {
	served    func() (servedRelease, bool)
	now       func() time.Time
	info, age *prometheus.Desc
}

// newReleaseCollector makes the collector of a kind of data, whose version has a name of its own.
func newReleaseCollector(kind, version string, served func() (servedRelease, bool), now func() time.Time) *releaseCollector {
	return &releaseCollector{served, now,
		prometheus.NewDesc("lieudit_"+kind+"_info", "1, with what is served in the labels.", []string{version, "synthetic"}, nil),
		prometheus.NewDesc("lieudit_"+kind+"_age_seconds", "Time since the date of what is served; none for invented data.", nil, nil)}
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
	synthetic := "false"
	if served.isSynthetic {
		synthetic = "true"
	}
	metrics <- prometheus.MustNewConstMetric(c.info, prometheus.GaugeValue, 1, served.label, synthetic)
	if !served.date.IsZero() && !served.isSynthetic {
		metrics <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, c.now().Sub(served.date).Seconds())
	}
}

// servedVintage is the vintage that is served.
func (s *service) servedVintage() (servedRelease, bool) {
	e, ok := s.liveVintage.Acquire()
	if !ok {
		return servedRelease{}, false
	}
	defer e.Release()
	date, _ := time.Parse(time.DateOnly, e.Meta.Millesime) // another form has no age
	return servedRelease{e.Meta.Millesime, date, e.Meta.Synthetic}, true
}

// servedRoadNetwork is the own road network that is served.
func (s *service) servedRoadNetwork() (servedRelease, bool) {
	served := s.servedNetwork.Load()
	if served == nil {
		return servedRelease{}, false
	}
	return servedRelease{served.Date.UTC().Format(time.DateOnly), served.Date, served.IsSynthetic}, true
}
