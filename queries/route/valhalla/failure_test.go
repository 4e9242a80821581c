package valhalla_test

import (
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/queries/route/routertest"
	"lieudit/queries/route/valhalla"
)

// newRouter returns a router on a server.
func newRouter(serverURL string) routertest.Router {
	r := valhalla.New(serverURL, time.Now)
	r.SetTimeouts(routertest.Patient)
	return r
}

func TestRecordedAnswersAreThoseOfAServer(t *testing.T) {
	t.Parallel()
	routertest.Record(t, routertest.StartValhalla(t, routertest.WriteTown(t)), func(proxyURL string) {
		for _, q := range routertest.Questions(t) {
			if err := q.Ask(deadlinetest.Context(t, time.Minute), newRouter(proxyURL)); err != nil {
				t.Errorf("%s: %v", q.Name, err)
			}
		}
	})
}

func TestAServerThatFailsIsUnavailable(t *testing.T) {
	t.Parallel()
	routertest.TestFailures(t, newRouter, routertest.Questions(t))
}
