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
	"toll roads are avoided where they can be, though not all of them can": "OSRM excludes all toll roads or none",
	"all kinds of roads can be avoided together":                           "its car profile declares no combination of classes to exclude",
	"the shortest way may be slower":                                       "its profiles weigh by time",
	"a bound without a street is not moved onto a motorway":                "/nearest does not tell the class of a road",
	"an area has the places within its seconds":                            noIsochrones,
	"an area has the places within its metres":                             noIsochrones,
	"an area has the places from which its centre is within reach":         noIsochrones,
	"an area on foot is smaller":                                           noIsochrones,
	"an area needs a road near its centre":                                 noIsochrones,
}

const noIsochrones = "OSRM has no isochrones"

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
