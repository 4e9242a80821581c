package osrm_test

import (
	"testing"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/osrm"
	"lieudit/queries/route/routertest"
)

// cannot is what OSRM with its own profiles does not do. Why stands in the comments of the package.
var cannot = map[string]string{
	"toll roads are avoided where they can be, though not all of them can":                             "OSRM excludes all toll roads or none",
	"all kinds of roads can be avoided together":                                                       "its car profile declares no combination of classes to exclude",
	"bicycles prefer the track beside a primary road":                                                  "its bicycle profile weighs by time alone",
	"the shortest way may be slower":                                                                   "its profiles weigh by time",
	"an address without a street is not moved onto a motorway":                                         "/nearest does not tell the class of a road",
	"a bound at a corner is reached by any of its roads":                                               oneRoad,
	"a bound on a junction is reached by any of its roads":                                             oneRoad,
	"a street that is only entered leads back to its beginning from the nearest road that leads there": smallPart,
	"a street that is only left leads into the town":                                                   smallPart,
	"a cell of a matrix is the route in streets that are only entered or only left":                    smallPart,
	"a private gate is not driven through":                                                             "a gate whose access is private is open to it",
	"an area has the places within its seconds":                                                        noIsochrones,
	"an area has the places within its metres":                                                         noIsochrones,
	"an area has the places from which its centre is within reach":                                     noIsochrones,
	"an area on foot is smaller":                                                                       noIsochrones,
	"an area needs a road near its centre":                                                             noIsochrones,
}

const (
	noIsochrones = "OSRM has no isochrones"
	oneRoad      = "it takes one of the roads that are equally near"
	smallPart    = "it stays in a small part if both ends are in some small part, and leaves it otherwise, whether or not there is a way"
)

func TestRoutesOfOSRMKeepTheContract(t *testing.T) {
	t.Parallel()
	routertest.Test(t, func(t testing.TB, pbf string) route.Router {
		servers := map[route.Mode]string{}
		for _, mode := range []route.Mode{route.Car, route.Foot, route.Bike} {
			servers[mode] = routertest.StartOSRM(t, pbf, mode)
		}
		r := osrm.New(servers, time.Now)
		r.SetTimeouts(routertest.Patient)
		return r
	}, routertest.Options{Tolerance: 0.005, MatrixTolerance: 0.01, Cannot: cannot})
}
