package osrm_test

import (
	"slices"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/queries/route"
	"lieudit/queries/route/osrm"
	"lieudit/queries/route/routertest"
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
