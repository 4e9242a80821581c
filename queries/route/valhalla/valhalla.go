// Package valhalla finds routes on a server of the program valhalla_service (https://valhalla.github.io/valhalla). It is a
// route.Router. Its one constraint: what the server decides on its own, such as how strongly it avoids a road, is told as it is,
// and what it refuses becomes an error of route.Router.
//
//	Bound… ── /locate ──► place… (the best road near each) ── /route, /sources_to_targets, /isochrone ──► checks ──► answers
//
// Valhalla avoids by weights, so avoiding is best effort by nature; the flags of manoeuvres say what remained, whole manoeuvres at
// a time. It limits its requests to some bounds and some pairs: longer routes are asked for in parts, since a leg depends on its
// two bounds alone, and larger matrices in blocks.
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

// New returns a router on the server at a URL. Nothing is asked before the first question. now tells elapsed time.
func New(serverURL string, now func() time.Time) *Router {
	return &Router{routeserver.New(serverURL, now)}
}

// SetTimeouts says how long the server may take, in the place of routeserver.DefaultTimeouts. It is called before the first question.
func (r *Router) SetTimeouts(t routeserver.Timeouts) { r.http.Timeouts = t }

// Network says what the server is. The date of its data is not known: the server tells only when it prepared them.
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
