package loadclient_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/bench/loadclient"
)

func TestACallerReadsStatusesAndNothingOfTheNextAnswer(t *testing.T) {
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
	c, err := loadclient.Dial(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for _, want := range []string{"/long 200", "/empty 200", "/spent 429", "/long 200", "/spent 429"} {
		path, _, _ := strings.Cut(want, " ")
		status, err := c.Send(loadclient.EncodeGet(host, path+"?q=a", "k"))
		if got := fmt.Sprint(path, " ", status); got != want || err != nil {
			t.Fatalf("got %s, %v; want %s", got, err, want)
		}
	}
	if status, err := c.Send(loadclient.EncodeGet(host, "/cut?q=a", "k")); err == nil {
		t.Errorf("half an answer passed for a whole one of status %d", status)
	}
}

func TestQuantilesAreOfTheSortedTimes(t *testing.T) {
	t.Parallel()
	var times loadclient.Latencies
	if got := times.Quantile(0.99); got != 0 {
		t.Errorf("of nothing: got %v", got)
	}
	for n := 1000; n > 0; n-- {
		times = append(times, time.Duration(n))
	}
	times.Sort()
	if got := [3]time.Duration{times.Quantile(0), times.Quantile(0.5), times.Quantile(1)}; got != [3]time.Duration{1, 501, 1000} {
		t.Errorf("got %v", got)
	}
}
