package osrm_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/queries/route"
	"lieudit/queries/route/osrm"
	"lieudit/queries/route/routertest"
	"lieudit/queries/route/routeserver"
)

// newRouter returns a router on one server, for cars.
func newRouter(serverURL string) routertest.Router {
	r := osrm.New(map[route.Mode]string{route.Car: serverURL}, time.Now)
	r.SetTimeouts(routertest.Patient)
	return r
}

// questions are those that OSRM answers.
func questions(t testing.TB) []routertest.Question {
	return slices.DeleteFunc(routertest.Questions(t), func(q routertest.Question) bool { return q.Name == "isochrone" })
}

func TestRecordedAnswersAreThoseOfAServer(t *testing.T) {
	t.Parallel()
	routertest.Record(t, routertest.StartOSRM(t, routertest.WriteTown(t), route.Car), func(proxyURL string) {
		for _, q := range questions(t) {
			if err := q.Ask(deadlinetest.Context(t, time.Minute), newRouter(proxyURL)); err != nil {
				t.Errorf("%s: %v", q.Name, err)
			}
		}
	})
}

func TestAServerThatFailsIsUnavailable(t *testing.T) {
	t.Parallel()
	routertest.TestFailures(t, newRouter, questions(t))
}

func TestTheProbeOfAServerThatHangsNamesRouterAndMode(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	defer server.Close()
	defer close(ended)
	r := newRouter(server.URL)
	r.SetTimeouts(routeserver.Timeouts{Route: 5 * time.Millisecond, Matrix: time.Minute})
	if _, err := r.Network(t.Context()); err == nil || err.Error() != "osrm, car: no answer within 5 ms" {
		t.Errorf("got %v", err)
	}
	r.SetTimeouts(routertest.Patient)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := r.Network(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "osrm, car: no answer within ") {
		t.Errorf("got %v", err)
	}
}
