package instance

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// withMetrics counts and times the answers of a listener, those of handlers that panic too. It has a recorder of its own
// because the label is "status": promhttp's instrumentation only has "code".
func (i *Instance) withMetrics(name string, next http.Handler) http.Handler {
	labels := prometheus.Labels{"listener": name}
	responses := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lieudit_http_answers_total", Help: "Answers sent.", ConstLabels: labels}, []string{"status"})
	refusals := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lieudit_refusals_total", Help: "Requests refused, by the code of the refusal.", ConstLabels: labels}, []string{"reason"})
	durations := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "lieudit_http_answer_seconds", Help: "Time from a request's headers to its answer.", ConstLabels: labels,
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}})
	i.Metrics.MustRegister(responses, refusals, durations)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		startedAt := time.Now()
		recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK, refusals: refusals}
		defer func() {
			durations.Observe(time.Since(startedAt).Seconds())
			responses.WithLabelValues(strconv.Itoa(recorder.status)).Inc()
		}()
		next.ServeHTTP(recorder, r)
	})
}

// statusRecorder is a ResponseWriter that keeps the status, 200 where the handler sets none, and counts refusals.
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
