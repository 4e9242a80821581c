package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"lieudit/http/csvupload"
	"lieudit/http/kit"
	"lieudit/http/router"
	"lieudit/http/routing"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// The most bytes a body may have: largeBody for whole sets of sites, fileBody for a form with a file of rows, smallBody for all
// others.
const (
	smallBody = 1 << 20
	largeBody = MaxBodyBytes
	fileBody  = csvupload.MaxBodyBytes
)

// MaxBodyBytes is the most bytes that any body may have.
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
	endpoint     kit.Endpoint[caller]
	bodyLimit    int64 // of the body, in bytes
}

// routes is section 4 of the specification as a table.
func (h *handler) routes() []route {
	return slices.Concat(h.addressRoutes(), h.formerRoutes(), h.locationRoutes(), h.routingRoutes())
}

// addressRoutes include GET /version, which ServeHTTP answers before any key is asked for.
func (h *handler) addressRoutes() []route {
	return []route{
		{"GET", "/version", plan.Addresses, kit.QueryEndpoint(h.showVersion), smallBody},
		{"GET", "/me", plan.Addresses, kit.QueryEndpoint(h.showMe), smallBody},

		{"GET", "/address/autocomplete", plan.Addresses, kit.QueryEndpoint(h.completeAddress), smallBody},
		{"GET", "/address/verify", plan.Addresses, kit.NonEmptyQueryEndpoint(h.verifyAddress), smallBody},
		{"POST", "/address/verify", plan.Addresses, kit.NonEmptyBodyEndpoint(h.verifyAddress), smallBody},
		{"GET", "/address/view/{id}", plan.Addresses, kit.QueryEndpoint(h.viewAddress), smallBody},
		{"GET", "/address/proximity", plan.Addresses, kit.NonEmptyQueryEndpoint(h.findNearbyAddresses), smallBody},
		{"POST", "/address/proximity", plan.Addresses, kit.NonEmptyBodyEndpoint(h.findNearbyAddresses), smallBody},
		{"GET", "/locality/search", plan.Addresses, kit.NonEmptyQueryEndpoint(h.searchLocalities), smallBody},
	}
}

// formerRoutes are those of the former national API. Its documentation writes the paths with a slash at the end and its clients
// write them either way, so both are routes. They are one endpoint: endpointName has no slash.
func (h *handler) formerRoutes() (all []route) {
	for _, slash := range []string{"", "/"} {
		all = append(all,
			route{"GET", "/search" + slash, plan.Addresses, kit.OpenQueryEndpoint(h.searchAsFormerAPI), smallBody},
			route{"GET", "/reverse" + slash, plan.Addresses, kit.OpenQueryEndpoint(h.reverseAsFormerAPI), smallBody},
			route{"POST", "/search/csv" + slash, plan.Addresses, h.formerFileEndpoint("POST /search/csv", prepareFormerSearch), fileBody},
			route{"POST", "/reverse/csv" + slash, plan.Addresses, h.formerFileEndpoint("POST /reverse/csv", prepareFormerReverse), fileBody},
		)
	}
	return all
}

func (h *handler) locationRoutes() []route {
	return []route{
		{"GET", "/locations/search", plan.Locations, kit.QueryEndpoint(h.searchLocations), smallBody},
		{"GET", "/locations/changes", plan.Locations, kit.QueryEndpoint(h.listChanges), smallBody},
		{"POST", referentialsPath, plan.Locations, kit.BodyEndpoint(h.openReferential), smallBody},
		{"GET", referentialsPath, plan.Locations, kit.QueryEndpoint(h.listReferentials), smallBody},
		{"GET", referentialPath, plan.Locations, kit.QueryEndpoint(h.showReferential), smallBody},
		{"PATCH", referentialPath, plan.Locations, kit.BodyEndpoint(h.renameReferential), smallBody},
		{"DELETE", referentialPath, plan.Locations, kit.QueryEndpoint(h.archiveReferential), smallBody},

		{"POST", referentialPath + "/sites:sync", plan.Locations, h.syncSitesEndpoint(), largeBody},
		{"POST", referentialPath + "/sites:upsert", plan.Locations, h.upsertSitesEndpoint(), largeBody},
		{"GET", referentialPath + "/sites", plan.Locations, kit.QueryEndpoint(h.listSites), smallBody},
		{"GET", referentialPath + "/sites:export", plan.Locations, h.exportSitesEndpoint(), smallBody},
		{"GET", sitePath, plan.Locations, kit.QueryEndpoint(h.showSite), smallBody},
		{"PUT", sitePath, plan.Locations, kit.BodyEndpoint(h.putSite), smallBody},
		{"PATCH", sitePath, plan.Locations, kit.BodyEndpoint(h.patchSite), smallBody},
		{"POST", sitePath + ":deactivate", plan.Locations, kit.BodyEndpoint(h.deactivateSite), smallBody},
		{"POST", sitePath + ":reactivate", plan.Locations, kit.BodyEndpoint(h.reactivateSite), smallBody},
	}
}

// Routes is every endpoint of the API once, as the method and the path, such as "GET /me"; paths follow Base.
func Routes() []string {
	var all []string
	for _, rt := range (&handler{}).routes() {
		if name := rt.endpointName(); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// ServiceOf returns what a plan must include for an endpoint. ok is false for a method and path that no endpoint has.
func ServiceOf(method, path string) (s plan.Service, ok bool) {
	for _, rt := range (&handler{}).routes() {
		if rt.method == method && rt.path == path {
			return rt.service, true
		}
	}
	return 0, false
}

// endpointName is the name under which the route's requests are counted and invoiced. It holds the variables, not their texts.
func (r route) endpointName() string { return r.method + " " + strings.TrimSuffix(r.path, "/") }

// isWrite reports whether the work changes something. A write is counted before its work, and refunded only if its answer says that
// it may have failed. POST on an address only reads: it carries the query in its body.
func (r route) isWrite() bool { return r.service == plan.Locations && r.method != http.MethodGet }

// isFile reports whether the body is a file, whose rows are counted and which is spooled to disk: it takes no part of the budget of
// bodies in memory.
func (r route) isFile() bool { return r.bodyLimit == fileBody }

func (r route) pattern() router.Pattern { return router.Pattern{Method: r.method, Path: r.path} }

// planIncludes reports whether a plan gives access to a service. A plan that is not sold any more includes nothing.
func planIncludes(name plan.Name, s plan.Service) bool {
	p, ok := plan.Lookup(name)
	return ok && p.Allows(s)
}

// routingRoutes are the operations on roads. Each takes the same parameters in a query and in a body. A plan may include compute and
// no other.
func (h *handler) routingRoutes() []route {
	s := h.routing
	return []route{
		{"GET", "/route/compute", plan.RouteDirect, routingQuery(s.Compute), smallBody},
		{"POST", "/route/compute", plan.RouteDirect, routingBody(s.Compute), smallBody},
		{"GET", "/route/matrix", plan.RouteTools, routingEndpoint("query", decodeRequest(kit.NewDecoder[body.MatrixQuery]().DecodeRepeatedQuery), s.Matrix), smallBody},
		{"POST", "/route/matrix", plan.RouteTools, routingEndpoint("body", decodeRequest(kit.NewDecoder[body.MatrixBody]().DecodeBody), s.Matrix), smallBody},
		{"GET", "/route/isochrone", plan.RouteTools, routingQuery(s.Isochrone), smallBody},
		{"POST", "/route/isochrone", plan.RouteTools, routingBody(s.Isochrone), smallBody},
		{"GET", "/route/nearest", plan.RouteTools, routingEndpoint("query", decodeRequest(kit.NewDecoder[body.NearestQuery]().DecodeRepeatedQuery), s.Nearest), smallBody},
		{"POST", "/route/nearest", plan.RouteTools, routingEndpoint("body", decodeRequest(kit.NewDecoder[body.NearestBody]().DecodeBody), s.Nearest), smallBody},
		{"GET", "/route/optimize", plan.RouteTools, routingQuery(s.Optimize), smallBody},
		{"POST", "/route/optimize", plan.RouteTools, routingBody(s.Optimize), smallBody},
	}
}

// routingWork does what a request to the router asks for, and returns the body of the answer.
type routingWork[Q any] func(context.Context, routing.Caller, Q) (any, error)

// routingQuery is an endpoint whose request is in the query. Items of lists are repeated parameters: addresses have commas.
func routingQuery[Q any](do routingWork[Q]) kit.Endpoint[caller] {
	return routingEndpoint("query", kit.NewDecoder[Q]().DecodeRepeatedQuery, do)
}

// routingBody is an endpoint whose request is in the body.
func routingBody[Q any](do routingWork[Q]) kit.Endpoint[caller] {
	return routingEndpoint("body", kit.NewDecoder[Q]().DecodeBody, do)
}

// routingEndpoint builds an endpoint from how a request is decoded and what is done about it. part is where its input comes from:
// query or body.
func routingEndpoint[Q any](part string, decode func(*http.Request) (Q, error), do routingWork[Q]) kit.Endpoint[caller] {
	return kit.NewEndpoint(decode, func(ctx context.Context, c call, in Q) (kit.Response, error) {
		answer, err := do(ctx, routing.Caller{
			Account: c.Principal.Account, Part: part, Reserve: c.Quota.Reserve, ReserveMemory: c.Answer.Reserve,
		}, in)
		return kit.Response{Body: answer}, err
	})
}

// decodeRequest turns what is decoded from a query or a body into the request that both ask for. An empty one is
// refusal.RequestMalformed.
func decodeRequest[T interface{ Request() Q }, Q interface{ IsEmpty() bool }](decode func(*http.Request) (T, error)) func(*http.Request) (Q, error) {
	return func(r *http.Request) (q Q, err error) {
		sent, err := decode(r)
		if err != nil {
			return q, err
		}
		if q = sent.Request(); q.IsEmpty() {
			return q, refusal.RequestMalformed
		}
		return q, nil
	}
}
