// Package routing answers the API's requests about routes. It resolves bounds, asks a route.Router, and builds the body of the
// answer. Every bound is resolved before the router is asked, in the order of the request: the first one that does not lead to an
// address is the refusal, whatever else is wrong.
//
//	body.ComputeRoute … ── resolveBounds ──> bound{route.Bound, body.ResolvedBound} ── route.Router ──> body.ComputedRoute …
//	                            │                                                         │
//	      resolve.Address, SiteFinder, search.Engine                     body.NoResults, refusal.RoutingUnavailable
//
// A request that counts as several reserves them through its Caller once its size is known, before the router is asked. Accounts
// share the processors (package worker), and Service.Large shares the memory among them.
package routing

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"lieudit/http/budget"
	"lieudit/http/problem"
	"lieudit/queries/address/live"
	"lieudit/queries/locations/search"
	"lieudit/queries/route"
	"lieudit/queries/worker"
	"lieudit/schemas/body"
	sites "lieudit/schemas/locations"
	"lieudit/schemas/refusal"
)

// Service answers questions about routes. It is safe for concurrent use. Every field is required.
type Service struct {
	Router    route.Router
	Addresses *live.Vintage
	Sites     SiteFinder
	Search    search.Engine  // of sites
	Large     *budget.Budget // of MaxLarge: requests that need much memory
	Log       *slog.Logger
}

const (
	// MaxLarge is how many requests that need much memory may run at once: isochrones, and those about all sites of an account. Each
	// takes up to 100 MB, for the reached roads of a large city or for 11,000 sites.
	MaxLarge = 4
	// MaxAccountLarge is how many of them one account may run.
	MaxAccountLarge = MaxLarge / 2
)

// acquireLarge waits for the turn of a request that needs much memory. release must be called once the memory is no longer needed.
func (s *Service) acquireLarge(ctx context.Context, account string) (release func(), err error) {
	worker.Release(ctx)
	return s.Large.Acquire(ctx, account, 1)
}

// SiteFinder finds a site of an account, active or not. It fails with refusal.NotFound if the account has no such site.
type SiteFinder interface {
	FindSite(ctx context.Context, account, code, externalID string) (sites.Site, error)
}

// Caller is who asks, and how.
type Caller struct {
	Account string
	Part    string // the decoded part of the request: "query" or "body"
	// Reserve reserves n requests before the work. Its error is the refusal to answer with.
	Reserve func(ctx context.Context, n int64) error
	// ReserveMemory reserves memory for an answer, and may wait for it. It is called before the router.
	ReserveMemory func(bytes int64) error
}

// reserve reserves requests before the work. It releases the worker first, because the log that counts them may not answer.
func (c Caller) reserve(ctx context.Context, requests int64) error {
	worker.Release(ctx)
	return c.Reserve(ctx, requests)
}

// reserveMemory waits for room in memory for an answer, without a worker.
func (c Caller) reserveMemory(ctx context.Context, bytes int64) error {
	worker.Release(ctx)
	return c.ReserveMemory(bytes)
}

// itemsPerRequest is how many cells of a matrix, or stops of a tour, count as one request.
const itemsPerRequest = 25

// requestsFor returns how many requests a matrix of size cells, or a tour of size stops, counts as.
func requestsFor(size int) int64 { return int64(size+itemsPerRequest-1) / itemsPerRequest }

// toAnswer turns an error of the router about some bounds into an answer. If there is no way, or no road nearby, nothing was found. A
// router that cannot answer at all is refusal.RoutingUnavailable; the reason is logged, unless there is no network, which readiness
// reports.
func (s *Service) toAnswer(ctx context.Context, c Caller, err error, about subject) (any, error) {
	offRoad, isOffRoad := errors.AsType[*route.OffRoadError](err)
	switch {
	case isOffRoad && offRoad.Bound < len(about.bounds):
		return about.noRoute(body.OffRoadReason, about.bounds[offRoad.Bound]), nil
	case isOffRoad, errors.Is(err, route.ErrNoRoute):
		return about.noRoute(body.NoWayReason, about.bounds...), nil
	case errors.Is(err, route.ErrTooMuchWork):
		return nil, brokenRule(c.Part, "more work than one request may cost: ask for fewer bounds, or nearer ones")
	case ctx.Err() != nil, errors.Is(err, budget.ErrOverloaded):
		return nil, err
	case !errors.Is(err, route.ErrUnavailable) && !errors.Is(err, route.ErrUnsupported):
		s.Log.Error("the router failed", "error", err)
	}
	return nil, refusal.RoutingUnavailable
}

// subject is what a query of the router is about, and whether the request wants to know why nothing was found.
type subject struct {
	body.Explaining
	bounds []bound // in the order of the router's query
}

// noRoute returns the answer when nothing was found, for a reason that concerns some bounds.
func (a subject) noRoute(reason string, concerned ...bound) any {
	if !a.Explain {
		return body.NoResultsAnswer
	}
	answer := body.NoRoute{NoResults: body.NoResultsAnswer, Reason: reason}
	for _, b := range concerned {
		answer.Bounds = append(answer.Bounds, b.shown)
	}
	return answer
}

// brokenRule returns the refusal of a whole request for a rule that can only be checked while it is answered.
func brokenRule(part, rule string) error {
	return problem.Violations(problem.Violation{Type: "value_error", Loc: []any{part}, Msg: "Value error, " + rule})
}

// profileOf returns the router's profile of a request.
func profileOf(t body.TravelBy) route.Profile {
	return route.Profile{Mode: route.Mode(t.Mode), Optimization: route.Optimization(t.Optimization), Avoid: avoidSet(t.Avoid)}
}

// avoids are the names of the kinds of roads that can be avoided, in the order of answers.
var avoids = []struct {
	kind route.Avoid
	name string
}{{route.Tolls, "toll"}, {route.Motorways, "motorway"}, {route.Ferries, "ferry"}}

func avoidSet(names []string) (set route.Avoid) {
	for _, a := range avoids {
		for _, name := range names {
			if name == a.name {
				set |= a.kind
			}
		}
	}
	return set
}

// network describes the road data that an answer comes from.
func (s *Service) network(ctx context.Context, mode string) body.RouteNetwork {
	shown := body.RouteNetwork{Mode: mode}
	if n, err := s.Router.Network(ctx); err == nil {
		shown.RoadNetwork, shown.Attribution = n.DateText(), n.Attribution
	}
	return shown
}

// networkTimeout is how long NetworkDate waits for a router that asks a server.
const networkTimeout = time.Second

// NetworkDate returns the day of the road data that is served, or "" if it is not known.
func (s *Service) NetworkDate(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, networkTimeout)
	defer cancel()
	return s.network(ctx, "").RoadNetwork
}

// roundInt rounds seconds or metres to whole ones.
func roundInt(x float64) int { return int(math.Round(x)) }
