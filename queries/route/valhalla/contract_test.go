package valhalla_test

import (
	"testing"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/routertest"
	"lieudit/queries/route/valhalla"
)

func TestRoutesOfValhallaKeepTheContract(t *testing.T) {
	t.Parallel()
	routertest.Test(t, func(t testing.TB, pbf string) route.Router {
		return valhalla.New(routertest.StartValhalla(t, pbf), time.Now)
	}, routertest.Options{Tolerance: 0.005, MatrixTolerance: 0.01, Cannot: map[string]string{}})
}
