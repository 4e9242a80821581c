package api

import (
	"net/http"

	"lieudit/http/router"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

// small is the most a body may hold, in bytes; large is the most whole sets of sites may.
const (
	smallBody = 1 << 20
	largeBody = MaxBodyBytes
)

// MaxBodyBytes is the most bytes that any body may hold.
const MaxBodyBytes = 64 << 20

const (
	referentialsPath = "/locations/referentiels"
	referentialPath  = referentialsPath + "/{code}"
	sitePath         = referentialPath + "/sites/{external_id}"
)

// route is a row of the table: what a method of a path does, and for whom.
type route struct {
	method, path string
	service      plan.Service // what the plan must include
	endpoint     endpoint
	bodyLimit    int64 // of the body, in bytes
}

// routes is section 4 of the specification. GET /version is answered before any key is asked for.
func (h *handler) routes() []route {
	return []route{
		{"GET", "/version", plan.Addresses, queryEndpoint(h.showVersion), smallBody},
		{"GET", "/me", plan.Addresses, queryEndpoint(h.showMe), smallBody},

		{"GET", "/address/autocomplete", plan.Addresses, queryEndpoint(h.completeAddress), smallBody},
		{"GET", "/address/verify", plan.Addresses, nonEmptyEndpoint(queryReader[body.VerifyAddress], h.verifyAddress), smallBody},
		{"POST", "/address/verify", plan.Addresses, nonEmptyEndpoint(bodyReader[body.VerifyAddress], h.verifyAddress), smallBody},
		{"GET", "/address/view/{id}", plan.Addresses, queryEndpoint(h.viewAddress), smallBody},
		{"GET", "/address/proximity", plan.Addresses, nonEmptyEndpoint(queryReader[body.NearAddress], h.findNearbyAddresses), smallBody},
		{"POST", "/address/proximity", plan.Addresses, nonEmptyEndpoint(bodyReader[body.NearAddress], h.findNearbyAddresses), smallBody},
		{"GET", "/locality/search", plan.Addresses, nonEmptyEndpoint(queryReader[body.SearchLocality], h.searchLocalities), smallBody},

		{"GET", "/locations/search", plan.Locations, queryEndpoint(h.searchLocations), smallBody},
		{"POST", referentialsPath, plan.Locations, bodyEndpoint(wrapWrite(h, h.openReferential)), smallBody},
		{"GET", referentialsPath, plan.Locations, queryEndpoint(wrapRead(h, h.listReferentials)), smallBody},
		{"GET", referentialPath, plan.Locations, queryEndpoint(wrapRead(h, h.showReferential)), smallBody},
		{"PATCH", referentialPath, plan.Locations, bodyEndpoint(wrapWrite(h, h.renameReferential)), smallBody},
		{"DELETE", referentialPath, plan.Locations, queryEndpoint(wrapWrite(h, h.archiveReferential)), smallBody},

		{"POST", referentialPath + "/sites:sync", plan.Locations, h.syncSitesEndpoint(), largeBody},
		{"POST", referentialPath + "/sites:upsert", plan.Locations, h.upsertSitesEndpoint(), largeBody},
		{"GET", referentialPath + "/sites", plan.Locations, queryEndpoint(wrapRead(h, h.listSites)), smallBody},
		{"GET", referentialPath + "/sites:export", plan.Locations, h.exportSitesEndpoint(), smallBody},
		{"GET", sitePath, plan.Locations, queryEndpoint(wrapRead(h, h.showSite)), smallBody},
		{"PUT", sitePath, plan.Locations, bodyEndpoint(wrapWrite(h, h.putSite)), smallBody},
		{"PATCH", sitePath, plan.Locations, bodyEndpoint(wrapWrite(h, h.patchSite)), smallBody},
		{"POST", sitePath + ":deactivate", plan.Locations, bodyEndpoint(wrapWrite(h, h.deactivateSite)), smallBody},
		{"POST", sitePath + ":reactivate", plan.Locations, bodyEndpoint(wrapWrite(h, h.reactivateSite)), smallBody},

		{"GET", "/route/compute", plan.RouteDirect, routingUnavailable, smallBody},
		{"POST", "/route/compute", plan.RouteDirect, routingUnavailable, smallBody},
		{"GET", "/route/matrix", plan.RouteTools, routingUnavailable, smallBody},
		{"POST", "/route/matrix", plan.RouteTools, routingUnavailable, smallBody},
		{"GET", "/route/isochrone", plan.RouteTools, routingUnavailable, smallBody},
		{"POST", "/route/isochrone", plan.RouteTools, routingUnavailable, smallBody},
		{"GET", "/route/nearest", plan.RouteTools, routingUnavailable, smallBody},
		{"POST", "/route/nearest", plan.RouteTools, routingUnavailable, smallBody},
		{"GET", "/route/optimize", plan.RouteTools, routingUnavailable, smallBody},
		{"POST", "/route/optimize", plan.RouteTools, routingUnavailable, smallBody},
	}
}

// Routes is every method and path of the API, such as "GET /me"; paths follow Base.
func Routes() []string {
	var all []string
	for _, rt := range (&handler{}).routes() {
		all = append(all, rt.method+" "+rt.path)
	}
	return all
}

// endpointName is what the route's requests are counted under.
func (r route) endpointName() string { return r.method + " " + r.path }

// isWrite says whether the work changes something. It is counted before.
func (r route) isWrite() bool { return r.service == plan.Locations && r.method != http.MethodGet }

func (r route) pattern() router.Pattern { return router.Pattern{Method: r.method, Path: r.path} }

// planIncludes says whether a plan gives access to a service.
func planIncludes(name plan.Name, s plan.Service) bool {
	p, ok := plan.Lookup(name)
	return ok && p.Allows(s)
}
