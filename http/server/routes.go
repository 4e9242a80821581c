package server

import (
	"net/http"

	"lieudit/http/lookup"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

// small is the most a body may hold, in bytes; large is the most whole sets of sites may.
const (
	small = 1 << 20
	large = MaxBody
)

// MaxBody is the most bytes that any body may hold.
const MaxBody = 64 << 20

const (
	referentials   = "/locations/referentiels"
	oneReferential = referentials + "/{code}"
	oneSite        = oneReferential + "/sites/{external_id}"
)

// route is a row of the table: what a method of a path does, and for whom.
type route struct {
	method, path string
	service      plan.Service // what the plan must include
	endpoint     endpoint
	limit        int64 // of the body, in bytes
}

// routes is section 4 of the specification. GET /version is answered before any key is asked for.
func (a *api) routes() []route {
	return []route{
		{"GET", "/version", plan.Addresses, asks(a.version), small},
		{"GET", "/me", plan.Addresses, asks(a.me), small},

		{"GET", "/address/autocomplete", plan.Addresses, asks(a.complete), small},
		{"GET", "/address/verify", plan.Addresses, needs(asked[body.VerifyAddress], a.verify), small},
		{"POST", "/address/verify", plan.Addresses, needs(told[body.VerifyAddress], a.verify), small},
		{"GET", "/address/view/{id}", plan.Addresses, asks(a.view), small},
		{"GET", "/address/proximity", plan.Addresses, needs(asked[body.NearAddress], a.near), small},
		{"POST", "/address/proximity", plan.Addresses, needs(told[body.NearAddress], a.near), small},
		{"GET", "/locality/search", plan.Addresses, needs(asked[body.SearchLocality], a.localities), small},

		{"GET", "/locations/search", plan.Locations, asks(a.searchLocations), small},
		{"POST", referentials, plan.Locations, takes(writing(a, a.openReferential)), small},
		{"GET", referentials, plan.Locations, asks(reading(a, a.listReferentials)), small},
		{"GET", oneReferential, plan.Locations, asks(reading(a, a.showReferential)), small},
		{"PATCH", oneReferential, plan.Locations, takes(writing(a, a.renameReferential)), small},
		{"DELETE", oneReferential, plan.Locations, asks(writing(a, a.archiveReferential)), small},

		{"POST", oneReferential + "/sites:sync", plan.Locations, a.syncSites(), large},
		{"POST", oneReferential + "/sites:upsert", plan.Locations, a.upsertSites(), large},
		{"GET", oneReferential + "/sites", plan.Locations, asks(reading(a, a.listSites)), small},
		{"GET", oneReferential + "/sites:export", plan.Locations, a.exportSites(), small},
		{"GET", oneSite, plan.Locations, asks(reading(a, a.showSite)), small},
		{"PUT", oneSite, plan.Locations, takes(writing(a, a.putSite)), small},
		{"PATCH", oneSite, plan.Locations, takes(writing(a, a.patchSite)), small},
		{"POST", oneSite + ":deactivate", plan.Locations, takes(writing(a, a.deactivateSite)), small},
		{"POST", oneSite + ":reactivate", plan.Locations, takes(writing(a, a.reactivateSite)), small},

		{"GET", "/route/compute", plan.RouteDirect, noRouter, small},
		{"POST", "/route/compute", plan.RouteDirect, noRouter, small},
		{"GET", "/route/matrix", plan.RouteTools, noRouter, small},
		{"POST", "/route/matrix", plan.RouteTools, noRouter, small},
		{"GET", "/route/isochrone", plan.RouteTools, noRouter, small},
		{"POST", "/route/isochrone", plan.RouteTools, noRouter, small},
		{"GET", "/route/nearest", plan.RouteTools, noRouter, small},
		{"POST", "/route/nearest", plan.RouteTools, noRouter, small},
		{"GET", "/route/optimize", plan.RouteTools, noRouter, small},
		{"POST", "/route/optimize", plan.RouteTools, noRouter, small},
	}
}

// Routes is every method and path of the API, such as "GET /me"; paths follow Base.
func Routes() []string {
	var all []string
	for _, rt := range (&api{}).routes() {
		all = append(all, rt.method+" "+rt.path)
	}
	return all
}

// name is what the route's requests are counted under.
func (r route) name() string { return r.method + " " + r.path }

// writes says whether the work changes something. It is counted before.
func (r route) writes() bool { return r.service == plan.Locations && r.method != http.MethodGet }

func (r route) place() lookup.Place { return lookup.Place{Method: r.method, Path: r.path} }

// includes says whether a plan gives access to a service.
func includes(name plan.Name, s plan.Service) bool {
	p, ok := plan.Lookup(name)
	return ok && p.Allows(s)
}
