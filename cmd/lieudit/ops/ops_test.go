package ops

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"lieudit/eventstore"
)

func TestReadiness(t *testing.T) {
	t.Parallel()
	fine := func(context.Context) error { return nil }
	down := func(context.Context) error { return errors.New("no route to it") }
	for _, c := range []struct {
		rule   string
		parts  []Component
		status int
		want   Report
	}{
		{"nothing_to_fail", nil, 200, Report{true, map[string]string{}}},
		{"all_fine", []Component{{"log", true, fine}}, 200, Report{true, map[string]string{"log": "ok"}}},
		{"a_required_part_down", []Component{{"log", true, down}, {"sql", false, fine}}, 503,
			Report{false, map[string]string{"log": "no route to it", "sql": "ok"}}},
		{"another_part_down", []Component{{"log", true, fine}, {"sql", false, down}}, 200,
			Report{true, map[string]string{"log": "ok", "sql": "no route to it"}}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			NewHandler(c.parts, prometheus.NewRegistry()).ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
			var got Report
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if w.Code != c.status {
				t.Errorf("got status %d, want %d", w.Code, c.status)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadinessIsAMetricToo(t *testing.T) {
	t.Parallel()
	fine := func(context.Context) error { return nil }
	down := func(context.Context) error { return errors.New("no route to it") }
	stalled := func(context.Context) error { return &eventstore.StallError{} }
	for _, c := range []struct {
		rule  string
		parts []Component
		want  []string
	}{
		{"all_fine", []Component{{"log", true, fine}}, []string{"lieudit_ready 1", `lieudit_component_ready{component="log",required="true"} 1`}},
		{"a_required_part_down", []Component{{"log", true, down}}, []string{"lieudit_ready 0", `{component="log",required="true"} 0`}},
		{"another_part_down", []Component{{"sql", false, down}}, []string{"lieudit_ready 1", `{component="sql",required="false"} 0`}},
		{"a_stall", []Component{{"log", true, stalled}}, []string{"lieudit_ready 1", `{component="log",required="true"} 0`}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			registry := prometheus.NewRegistry()
			registry.MustRegister(NewReadinessCollector(c.parts))
			w := httptest.NewRecorder()
			NewHandler(nil, registry).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			for _, want := range c.want {
				if !strings.Contains(w.Body.String(), want+"\n") {
					t.Errorf("got %s\nwant %q in it", w.Body.String(), want)
				}
			}
		})
	}
}

func TestMetricsAndHealthAnswer(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "lieudit_things_total", Help: "Things."}))
	for path, want := range map[string]string{"/metrics": "lieudit_things_total 0", "/healthz": "ok", "/debug/pprof/": "goroutine"} {
		w := httptest.NewRecorder()
		NewHandler(nil, registry).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: got %d %q, want %q in it", path, w.Code, w.Body.String(), want)
		}
	}
}

func TestTheCommandLineIsNotExposed(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	NewHandler(nil, prometheus.NewRegistry()).ServeHTTP(w, httptest.NewRequest("GET", "/debug/pprof/cmdline", nil))
	if w.Code != 404 {
		t.Errorf("got %d %q, want 404", w.Code, w.Body.String())
	}
}
