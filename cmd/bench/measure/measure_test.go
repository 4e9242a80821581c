package measure_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/cmd/bench/measure"
	"lieudit/cmd/terminal"
)

func TestAClientReadsWholeAnswersAndNoMore(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" || r.URL.RawQuery != "q=a" {
			w.WriteHeader(http.StatusTeapot)
		}
		switch r.URL.Path {
		case "/empty":
		case "/spent":
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, "{}")
		case "/long":
			w.Header().Set("Content-Length", "100000")
			io.WriteString(w, strings.Repeat("HTTP/1.1 500 ", 100000/13)+strings.Repeat(" ", 100000%13))
		case "/cut":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "x")
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	c, err := measure.Dial(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for _, want := range []string{"/long 200", "/empty 200", "/spent 429", "/long 200", "/spent 429"} {
		path, _, _ := strings.Cut(want, " ")
		status, err := c.Send(measure.EncodeGet(host, path+"?q=a", "k"))
		if got := fmt.Sprint(path, " ", status); got != want || err != nil {
			t.Fatalf("got %s, %v; want %s", got, err, want)
		}
	}
	if status, err := c.Send(measure.EncodeGet(host, "/cut?q=a", "k")); err == nil {
		t.Errorf("half an answer passed for a whole one of status %d", status)
	}
}

func TestQuantilesAreThoseOfAllWorkers(t *testing.T) {
	t.Parallel()
	all, others := measure.NewLatencies(), measure.NewLatencies()
	if got := all.Figure(); got.Samples != 0 || got.P99 != 0 || got.Max != 0 {
		t.Errorf("of nothing: got %+v", got)
	}
	for n := 1000; n > 0; n-- {
		d := time.Duration(n) * time.Millisecond
		if n%2 == 0 {
			all.Record(d)
		} else {
			others.Record(d)
		}
	}
	all.Merge(others)
	got := all.Figure()
	for name, pair := range map[string][2]float64{"p50": {got.P50, 500}, "p99": {got.P99, 990}, "max": {got.Max, 1000}} {
		if got, want := pair[0], pair[1]; got < want*0.998 || got > want*1.002 {
			t.Errorf("%s: got %v ms, want %v", name, got, want)
		}
	}
	if got.Samples != 1000 {
		t.Errorf("got %d samples, want 1000", got.Samples)
	}
}

func TestALoopRunsEachWorkerAtLeastOnceAndReturnsItsError(t *testing.T) {
	t.Parallel()
	f, err := measure.Loop(t.Context(), 3, 0, func(context.Context, int) func(int) error { return func(int) error { return nil } })
	if err != nil || f.Samples != 3 || f.Value <= 0 {
		t.Errorf("got %+v, %v; want 3 samples", f, err)
	}
	wrong := errors.New("wrong")
	_, err = measure.Loop(t.Context(), 3, time.Minute, func(_ context.Context, worker int) func(int) error { return func(int) error { return wrong } })
	if !errors.Is(err, wrong) {
		t.Errorf("got %v, want %v", err, wrong)
	}
}

func TestMediansAreTakenNumberByNumberAndTheRatioIsThatOfMedians(t *testing.T) {
	t.Parallel()
	n := 0
	figures, err := measure.Medians(3, func() ([]measure.Figure, error) {
		n++
		return []measure.Figure{{Value: []float64{4, 1, 2}[n-1], Raw: []float64{8, 4, 16}[n-1], Unit: "/s", Extra: map[string]float64{"events": float64(n)}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(figures[0].With(measure.Label{Name: "rows", Value: 7}))
	if want := `{"events":2,"ratio":0.25,"raw":8,"rows":7,"unit":"/s","value":2}`; string(got) != want || err != nil {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestFiguresOfTheSameLabelsShareATable(t *testing.T) {
	t.Parallel()
	var table measure.Table
	table.Add(measure.Figure{Labels: []measure.Label{{Name: "rows", Value: 1000}}, Bytes: 12, Value: 5})
	table.Add(measure.Figure{Labels: []measure.Label{{Name: "damage", Value: "none"}}, Extra: map[string]float64{"first": 0}})
	table.Add(measure.Figure{Labels: []measure.Label{{Name: "rows", Value: 9}}, P50: 0.25, Value: 1234.5})
	want := []terminal.Table{
		{{"ROWS", "VALUE", "P50 MS", "BYTES"}, {"1,000", "5", "", "12"}, {"9", "1,234", "0.250", ""}},
		{{"DAMAGE", "FIRST"}, {"none", "0"}},
	}
	if diff := cmp.Diff(want, table.Tables()); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}
