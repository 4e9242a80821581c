// Package api is the HTTP surface of the service: addresses, locations, routes, and what a key gives. It answers addresses in the
// words of the former national API too (former*.go). Each row of routes.go names the method and path of an operation, what the
// plan must include, and the function that does the work. Requests are matched exactly as they were sent. No path is ever cleaned or
// redirected: a redirect would be an answer before the key is checked.
//
//	request ─> ServeHTTP ─> auth.Authenticate ─> router.Match ─> plan ─> budget.LimitBody ─> kit.Endpoint (decode)
//	           preflight,    key, scope of a      route,                  size of the body     │
//	           version,      publishable key      method                                       v
//	           throttle                                                                  reservation.admit
//	                                                                                           │
//	answer <─ kit.Response <─ reservation.settle <──────── kit.Operation (the work) <───────────┘
//
// A refusal that costs its account nothing is sent at a pace, so that a client cannot flood the service with them (delayRefusal).
// Every check can end the request with an error, which kit.WriteError answers. The checks keep this order whatever else is
// wrong with a request, except that the quota is checked before a large body is read. admission.go holds the steps from auth.Authenticate to the settling, reservation.go what a request counts as.
// An operation that counts as several requests reserves them once it knows how many, before anything is answered: the rows of a file
// (upload.go), the cells of a matrix and the stops of a tour (http/routing).
package api

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	locationscommands "lieudit/commands/locations"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/auth"
	"lieudit/http/budget"
	"lieudit/http/clientip"
	"lieudit/http/kit"
	"lieudit/http/router"
	"lieudit/http/routing"
	"lieudit/http/throttle"
	"lieudit/queries/address/live"
	routequeries "lieudit/queries/route"
	"lieudit/schemas/body"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// Base is the path every path of the API begins with.
const Base = "/services/v1"

const (
	versionPath = Base + "/version"
	searchPath  = Base + "/locations/search" // the only one that publishable keys may use
)

// Env is what the API runs in. Every part is required but Counting.
type Env struct {
	Limiter  *waitlimit.Limiter // of requests that wait for a silent log
	Throttle *throttle.Throttle // of publishable keys
	Clients  *clientip.Finder   // whose address the throttle counts
	Bodies   *budget.Budget     // of large bodies
	Answers  *budget.Budget     // of large answers
	Lists    *budget.Budget     // of long lists: how many are read at once
	Workers  *budget.Budget     // of costly queries and of files; NewWorkers makes it
	Searches *budget.Budget     // of searches that hold memory until they end; NewSearches makes it
	Uploads  Uploads            // files that clients send
	Prefixes token.Prefixes     // as configured
	Now      func() time.Time   // wall clock
	Log      *slog.Logger       // tokens are redacted before they get to it
	Counting CountingPolicy     // which requests count
	Version  string             // of the program
}

// New returns the API over a key ring, a meter, the address base that is served, a router, and the customers' locations. A ring that is
// an auth.FreshnessSource makes requests wait while it is stale. A panic is answered with a 500.
func New(keys auth.KeyRing, meter Meter, addresses *live.Vintage, roads routequeries.Router, locations Locations, env Env) http.Handler {
	env.Log = slog.New(env.Prefixes.RedactingHandler(env.Log.Handler()))
	h := &handler{
		Env: env, meter: meter, addresses: addresses, locations: locations,
		routing: &routing.Service{
			Router: roads, Addresses: addresses, Sites: locations.Queries, Search: locations.Search,
			Large: budget.New(routing.MaxLarge, routing.MaxAccountLarge), Log: env.Log,
		},
		authenticator: auth.NewAuthenticator(keys, env.Limiter, env.Prefixes, searchPath, env.Now),
		refusals:      throttle.New(refusalInterval, refusalBurst),
	}
	h.counts = &countCache{lastChange: locations.LastChange, load: func(ctx context.Context, account string) (locationscommands.Counts, error) {
		return locations.Commands.CountLocations(ctx, account)
	}}
	h.table = router.New(Base, h.routes(), route.pattern)
	return kit.RecoverPanics(env.Log, h)
}

type handler struct {
	Env
	meter         Meter
	addresses     *live.Vintage
	locations     Locations
	routing       *routing.Service
	authenticator *auth.Authenticator
	table         *router.Table[route]
	counts        *countCache
	refusals      *throttle.Throttle // by account, of answers that cost nothing
}

// caller is who makes a request that passed every check.
type caller struct {
	*auth.Authentication           // what its key gives, and how long it may still wait for the logs
	now                  time.Time // when it was admitted
}

type call = kit.Call[caller]

// ServeHTTP answers what needs no key, and leaves the rest to serveAuthenticated. Scripts of web pages may read every answer of
// the search, refusals included; only the answer to a key that is used too fast is closed to them. Answers to keys must not be
// kept by a cache on the way.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if path == searchPath {
		auth.AllowAnyOrigin(w.Header())
	}
	switch {
	case r.Method == http.MethodOptions:
		auth.WritePreflight(w)
	case path == versionPath && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		v, err := h.showVersion(r.Context(), call{}, body.Empty{})
		h.write(w, r, v, err)
	case h.isThrottled(r):
		w.Header().Del("Access-Control-Allow-Origin")
		kit.WriteError(w, h.Log, refusal.Throttled)
	default:
		w.Header().Set("Cache-Control", "no-store")
		answer := budget.NewAnswer(r.Context(), h.Answers)
		defer answer.Release()
		v, err := h.serveAuthenticated(w, r, answer)
		h.write(w, r, v, err)
	}
}

// isThrottled reports whether a publishable key is used faster from one address than a web page would, and counts this use.
func (h *handler) isThrottled(r *http.Request) bool {
	text, ok := auth.BearerToken(r.Header)
	return ok && strings.HasPrefix(text, h.Prefixes.Publishable) && !h.Throttle.Allow(h.Clients.FindClient(r), text, time.Now())
}

// write sends a response, or the answer to an error.
func (h *handler) write(w http.ResponseWriter, r *http.Request, v kit.Response, err error) {
	if err == nil {
		err = v.Write(r.Context(), w)
	}
	if err != nil {
		kit.WriteError(w, h.Log, err)
	}
}

// showVersion shows what is running, and which address base and road network it serves, if any. The vintage is held while it is read, so that a
// newer one does not close it.
func (h *handler) showVersion(ctx context.Context, _ call, _ body.Empty) (kit.Response, error) {
	v := body.Version{Version: h.Version, RoadNetwork: h.routing.NetworkDate(ctx)}
	if e, ok := h.addresses.Acquire(); ok {
		defer e.Release()
		v.Vintage, v.Addresses = e.Meta.Millesime, int64(e.Meta.Addresses)
	}
	return kit.OK(v)
}
