// Package valhalla finds routes on a server of the program valhalla_service (https://valhalla.github.io/valhalla). It is a
// route.Router. Decisions of the server, such as how strongly it avoids a road, are reported unchanged, and its refusals become
// errors of route.Router.
//
//	Bound… ── /locate ──► place… (the best road near each) ── /route, /sources_to_targets, /isochrone ──► checks ──► answers
//
// Valhalla avoids by weights, so avoiding is best effort by nature; the flags of manoeuvres say what remained, whole manoeuvres at
// a time. It limits the bounds and pairs of a request: longer routes are requested in parts, because a leg depends only on its two
// bounds, and larger matrices in blocks.
package valhalla

import (
	"context"
	"fmt"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
)

// Router asks a server. It is safe for concurrent use.
type Router struct{ http *routeserver.Server }

// New returns a router on the server at a URL. It sends no request before the first question. now returns elapsed time.
func New(serverURL string, now func() time.Time) *Router {
	return &Router{routeserver.New(serverURL, now)}
}

// SetTimeouts replaces routeserver.DefaultTimeouts. It must be called before the first question.
func (r *Router) SetTimeouts(t routeserver.Timeouts) { r.http.Timeouts = t }

// Network describes the server. The date of its data is not known: the server reports only when it prepared them.
func (r *Router) Network(ctx context.Context) (route.Network, error) {
	var status struct {
		Version string `json:"version"`
	}
	if err := r.ask(ctx, "/status", struct{}{}, r.http.Route, &status); err != nil {
		return route.Network{}, fmt.Errorf("valhalla: %w", err)
	}
	if status.Version == "" {
		return route.Network{}, fmt.Errorf("valhalla: %w", &routeserver.BadAnswerError{Reason: "without a version"})
	}
	return route.Network{Engine: "valhalla", Modes: []route.Mode{route.Car, route.Foot, route.Bike}, Attribution: route.OSMAttribution}, nil
}
