// Package ops is what operators and orchestrators ask of a running instance: whether it lives, whether it is
// ready and what keeps it from being so, its metrics and its profiles. It listens apart from the API and is
// never reachable through it.
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

// Part is one thing an instance depends on. Check is nil while it works, else why it does not. An instance is not
// ready while a required part fails; the others are only told, and so is a stall of the event log
// (*eventstore.StallError): requests wait for its end.
type Part struct {
	Name     string
	Required bool
	Check    func(context.Context) error
}

// patience bounds one readiness answer, whatever its parts do.
const patience = 2 * time.Second

// Handler answers /healthz, /readyz, /metrics and /debug/pprof/.
func Handler(parts []Part, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		status, report := readiness(ctx, parts)
		write(w, status, report)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("/debug/pprof/", pprof.Index) // without cmdline: passwords of databases may stand in it
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// Report is the answer of /readyz: each part is "ok" or says what is wrong.
type Report struct {
	Ready bool              `json:"ready"`
	Parts map[string]string `json:"parts"`
}

func readiness(ctx context.Context, parts []Part) (int, Report) {
	report := Report{Ready: true, Parts: make(map[string]string, len(parts))}
	status := http.StatusOK
	for _, p := range parts {
		report.Parts[p.Name] = "ok"
		if err := p.Check(ctx); err != nil {
			report.Parts[p.Name] = err.Error()
			var stall *eventstore.StallError
			if p.Required && !errors.As(err, &stall) {
				report.Ready, status = false, http.StatusServiceUnavailable
			}
		}
	}
	return status, report
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // a prober that went away is nobody's error
}
