package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// HTTP counts and times the answers of listeners. It has a recorder of its own because the label is "status": promhttp's instrumentation
// only has "code".
type HTTP struct {
	responses, refusals *prometheus.CounterVec
	durations           *prometheus.HistogramVec
}

// NewHTTP registers the metrics of answers.
func NewHTTP(r prometheus.Registerer) HTTP {
	m := HTTP{newCounter("lieudit_http_answers_total"), newCounter("lieudit_refusals_total"), newHistogram("lieudit_http_answer_seconds")}
	r.MustRegister(m.responses, m.refusals, m.durations)
	return m
}

// Handler returns a handler whose answers are counted and timed, even if it panics.
func (m HTTP) Handler(listener string, next http.Handler) http.Handler {
	labels := prometheus.Labels{"listener": listener}
	responses, refusals := m.responses.MustCurryWith(labels), m.refusals.MustCurryWith(labels)
	duration := m.durations.WithLabelValues(listener)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		startedAt := time.Now()
		recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK, refusals: refusals}
		defer func() {
			duration.Observe(time.Since(startedAt).Seconds())
			responses.WithLabelValues(strconv.Itoa(recorder.status)).Inc()
		}()
		next.ServeHTTP(recorder, r)
	})
}

// statusRecorder is a ResponseWriter that keeps the status, 200 if the handler sets none, and counts refusals.
type statusRecorder struct {
	http.ResponseWriter
	status   int
	refusals *prometheus.CounterVec
}

// ObserveRefusal implements kit.RefusalObserver.
func (s *statusRecorder) ObserveRefusal(reason string) { s.refusals.WithLabelValues(reason).Inc() }

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
