package valhalla

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
	"lieudit/schemas/geo"
)

// location is a position in a request.
type location struct {
	Lat    float64 `json:"lat"`
	Lon    float64 `json:"lon"`
	Radius int     `json:"radius,omitempty"` // metres within which all roads are taken, not only the nearest
	Cutoff int     `json:"search_cutoff"`    // metres beyond which no road is near
}

func locationOf(p geo.Point) location {
	return location{Lat: p.Lat, Lon: p.Lon, Cutoff: route.MaxAccessDistance}
}

// costing is how to travel, as a part of every request.
type costing struct {
	Costing string                    `json:"costing"`
	Options map[string]map[string]any `json:"costing_options,omitempty"`
}

// costings are the names of the modes.
var costings = map[route.Mode]string{route.Car: "auto", route.Foot: "pedestrian", route.Bike: "bicycle"}

// avoidOptions are the options that make a costing dislike a kind of roads. 0 is the strongest dislike.
var avoidOptions = [...]struct {
	kind route.Avoid
	name string
}{{route.Tolls, "use_tolls"}, {route.Motorways, "use_highways"}, {route.Ferries, "use_ferry"}}

// costingOf makes the costing of a profile. Options that a costing does not have are ignored by the server.
func costingOf(p route.Profile) (costing, error) {
	name, ok := costings[p.Mode]
	if !ok {
		return costing{}, fmt.Errorf("%w: travelling by %q", route.ErrUnsupported, p.Mode)
	}
	options := map[string]any{}
	if p.Optimization == route.Shortest {
		options["shortest"] = true
	}
	for _, o := range avoidOptions {
		if p.Avoid&o.kind != 0 {
			options[o.name] = 0
		}
	}
	return costing{Costing: name, Options: map[string]map[string]any{name: options}}, nil
}

// refusal is an error answer of the server.
type refusal struct {
	Code    int    `json:"error_code"`
	Message string `json:"error"`
}

// The refusals of the server besides route.ErrNoRoute.
var (
	errOffRoad = errors.New("a position is too far from any road")
	errTooBig  = fmt.Errorf("%w: the server of Valhalla takes less in one request", route.ErrUnavailable)
)

// Codes of refusals (docs/docs/api/turn-by-turn/api-reference.md of Valhalla).
const (
	tooManyLocations = 150
	tooFarApart      = 154
	matrixTooLarge   = 155
	unconnected      = 170
	noEdgeNear       = 171
	noPath           = 442
)

// error returns the meaning of a refusal.
func (f refusal) error() error {
	switch f.Code {
	case noPath, unconnected, tooFarApart:
		return route.ErrNoRoute
	case noEdgeNear:
		return errOffRoad
	case tooManyLocations, matrixTooLarge:
		return errTooBig
	}
	return &routeserver.BadAnswerError{Reason: fmt.Sprintf("with the error %d", f.Code)}
}

// ask sends a request and decodes the answer into it.
func (r *Router) ask(ctx context.Context, path string, request any, timeout time.Duration, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	err = r.http.Ask(ctx, routeserver.Call{Path: path, Body: body, Timeout: timeout}, func(status int, body []byte) error {
		if status == http.StatusOK {
			return routeserver.Decode(body, answer)
		}
		var f refusal
		if err := routeserver.Decode(body, &f); err != nil {
			return err
		}
		return f.error()
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
