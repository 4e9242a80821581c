package valhalla_test

import (
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/routertest"
)

// cannot is what Valhalla does not do.
var cannot = map[string]string{
	"a mandatory turn by way of a road forbids the others":     "it binds who comes by the first road to the second one too",
	"one lane for both directions makes a road a worse choice": "it does not count lanes",
	"steps name the roads":               "Valhalla has no step where only the name of the road changes",
	"metres on toll roads are told":      wholeManeuvers,
	"avoided roads that remain are told": wholeManeuvers,
}

const wholeManeuvers = "a manoeuvre says that it has a toll, not for how long"

func TestRoutesOfValhallaKeepTheContract(t *testing.T) {
	t.Parallel()
	routertest.Test(t, func(t testing.TB, pbf string) route.Router {
		return newRouter(routertest.StartValhalla(t, pbf))
	}, routertest.Options{Tolerance: 0.005, MatrixTolerance: 0.01, Cannot: cannot})
}
