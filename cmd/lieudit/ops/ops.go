// Package ops answers operators and orchestrators: whether an instance is alive, whether it is ready and if not, why not,
// its metrics and its profiles. It has a listener of its own and is never reachable through the API. Its answers about
// readiness take at most two seconds.
//
// NewHandler takes the Components of an instance; /readyz calls Check, which checks each of them, and answers its Report.
// NewReadinessCollector reports the same as metrics.
package ops

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lieudit/eventstore"
)

// Component is one part that an instance depends on. Check returns nil while it works, otherwise why it does not. An instance
// is not ready while a required part fails. The others are only reported, and so is a stall of the event log
// (*eventstore.StallError), during which requests wait.
type Component struct {
	Name     string
	Required bool
	Check    func(context.Context) error
}

// ReadinessTimeout bounds an answer about readiness, whatever the parts do.
const ReadinessTimeout = 2 * time.Second

// NewHandler answers /healthz, /readyz, /metrics and /debug/pprof/.
func NewHandler(components []Component, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), ReadinessTimeout)
		defer cancel()
		report := Check(ctx, components)
		status := http.StatusOK
		if !report.Ready {
			status = http.StatusServiceUnavailable
		}
		writeJSON(w, status, report)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("/debug/pprof/", pprof.Index) // cmdline is not served: it may hold passwords of databases
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// Report is the answer of /readyz. Each component is "ok" or says what is wrong.
type Report struct {
	Ready      bool              `json:"ready"`
	Components map[string]string `json:"parts"`
}

// okText is a report's text about a component that works.
const okText = "ok"

// Reason is why a component does not work; "" if it does.
func (r Report) Reason(component string) string {
	if reason := r.Components[component]; reason != okText {
		return reason
	}
	return ""
}

// Check checks all components, one after the other, and returns their report.
func Check(ctx context.Context, components []Component) Report {
	report := Report{Ready: true, Components: make(map[string]string, len(components))}
	for _, p := range components {
		report.Components[p.Name] = okText
		if err := p.Check(ctx); err != nil {
			report.Components[p.Name] = err.Error()
			var stall *eventstore.StallError
			if p.Required && !errors.As(err, &stall) {
				report.Ready = false
			}
		}
	}
	return report
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // an error means that the client has gone
}
