package valhalla_test

import (
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/routertest"
)

// cannot is what Valhalla does not do.
var cannot = map[string]string{
	"a mandatory turn by way of a road forbids the others":                                             "it binds who comes by the first road to the second one too",
	"a bound on a junction is left by a road onto which no turn leads":                                 "a junction at both ends of a road is no way for it",
	"an address on a junction begins and ends with the road that is driven":                            "its first step has no length there",
	"no bound is moved onto a ferry":                                                                   "/locate tells of the nearest road alone where there is none within its radius",
	"within a street that is only entered the way leads along it":                                      onePlace,
	"a street that is only entered leads back to its beginning from the nearest road that leads there": onePlace,
	"a street that is only left leads into the town":                                                   onePlace,
	"a cell of a matrix is the route in streets that are only entered or only left":                    "its matrices turn round at the end of a street that goes on, and its routes do not",
	"one lane for both directions makes a road a worse choice":                                         "it does not count lanes",
	"steps name the roads":               "Valhalla has no step where only the name of the road changes",
	"metres on toll roads are told":      wholeManeuvers,
	"avoided roads that remain are told": wholeManeuvers,
}

const onePlace = "a bound is moved out of a street that is only entered or only left before its other end is known"

const wholeManeuvers = "a manoeuvre says that it has a toll, not for how long"

func TestRoutesOfValhallaKeepTheContract(t *testing.T) {
	t.Parallel()
	routertest.Test(t, func(t testing.TB, pbf string) route.Router {
		return newRouter(routertest.StartValhalla(t, pbf))
	}, routertest.Options{Tolerance: 0.005, MatrixTolerance: 0.01, Cannot: cannot})
}
