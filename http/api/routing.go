package api

import (
	"context"
	"net/http"

	"lieudit/http/kit"
	"lieudit/http/routing"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// routingRoutes are the routes of the router. Each takes the same in a query and in a body. Plans include compute apart from the others.
func (h *handler) routingRoutes() []route {
	s := h.routing
	return []route{
		{"GET", "/route/compute", plan.RouteDirect, routingQuery(s.Compute), smallBody},
		{"POST", "/route/compute", plan.RouteDirect, routingBody(s.Compute), smallBody},
		{"GET", "/route/matrix", plan.RouteTools, routingEndpoint("query", request(kit.NewDecoder[body.MatrixQuery]().DecodeRepeatedQuery), s.Matrix), smallBody},
		{"POST", "/route/matrix", plan.RouteTools, routingEndpoint("body", request(kit.NewDecoder[body.MatrixBody]().DecodeBody), s.Matrix), smallBody},
		{"GET", "/route/isochrone", plan.RouteTools, routingQuery(s.Isochrone), smallBody},
		{"POST", "/route/isochrone", plan.RouteTools, routingBody(s.Isochrone), smallBody},
		{"GET", "/route/nearest", plan.RouteTools, routingEndpoint("query", request(kit.NewDecoder[body.NearestQuery]().DecodeRepeatedQuery), s.Nearest), smallBody},
		{"POST", "/route/nearest", plan.RouteTools, routingEndpoint("body", request(kit.NewDecoder[body.NearestBody]().DecodeBody), s.Nearest), smallBody},
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

// routingEndpoint joins how a request is decoded, from a part of it, with what is done about it.
func routingEndpoint[Q any](part string, decode func(*http.Request) (Q, error), do routingWork[Q]) kit.Endpoint[caller] {
	return kit.NewEndpoint(decode, func(ctx context.Context, c call, in Q) (kit.Response, error) {
		answer, err := do(ctx, routing.Caller{
			Account: c.Principal.Account, Part: part, Reserve: c.Quota.Reserve, ReserveMemory: c.Answer.Reserve,
		}, in)
		return kit.Response{Body: answer}, err
	})
}

// request turns what is decoded from a query or a body into the request that both ask for. One that names no destinations is
// refusal.RequestMalformed.
func request[T interface{ Request() Q }, Q interface{ IsEmpty() bool }](decode func(*http.Request) (T, error)) func(*http.Request) (Q, error) {
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
