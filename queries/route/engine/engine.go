// Package engine is the route.Router on the project's own road network. It combines the packages below it; its only algorithm of
// its own snaps bounds to the network. Two queries about the same bounds agree, so a cell of a matrix is the duration of the route
// between its two bounds.
//
//	route.Bound ── findRoads ──► nearRoads ── newSnap ──► snap{[]route.Access, []search.Place}
//	                                                        │ search.Searcher
//	route.Route, Leg ◄── newRoute, newLeg, guidance.Steps ── search.Path
//
// A bound is one end of a route: a position, and the name of its street if that is known. Snapping a bound means finding its
// accesses: the points of roads where a route from or to it may begin or end. Which one is best depends on the other end, because
// of one-way streets and forbidden turns, so the search decides. The main part of the network is the largest set of roads that all
// reach each other; islands, and pockets that can only be entered or only be left, lie outside it.
//
// An Engine belongs to one network.Network and is closed with it. Package live serves the engine of the current network and
// replaces it.
package engine

import (
	"context"
	"slices"
	"sync"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/network"
	"lieudit/queries/route/search"
)

// Engine finds routes on one network. It is safe for concurrent use, until the network is closed.
type Engine struct {
	network *network.Network
	modes   map[route.Mode]*modeEngine
}

// modeEngine finds routes for one mode. The methods of Engine share it once the mode of a query is known.
type modeEngine struct {
	mode     route.Mode
	layer    *network.Layer
	graph    *graph.Graph
	searcher *search.Searcher
	snaps    *snapCache
	reached  sync.Pool // of *reachedRoads
	roads    sync.Pool // of *roadReader
}

// New makes an engine of a network, with an empty cache of snaps. It reads nothing yet.
func New(n *network.Network) *Engine {
	e := &Engine{network: n, modes: map[route.Mode]*modeEngine{}}
	for _, mode := range []route.Mode{route.Car, route.Foot, route.Bike} {
		layer := n.Layer(mode)
		e.modes[mode] = &modeEngine{
			mode: mode, layer: layer, graph: layer.Graph, searcher: search.New(layer.Graph, layer.Topology, layer), snaps: newSnapCache(),
		}
	}
	return e
}

var _ route.Router = (*Engine)(nil)

// Network implements route.Router. It does not fail.
func (e *Engine) Network(context.Context) (route.Network, error) {
	m := e.network.Meta
	return route.Network{
		Engine: "own", Date: m.Date, Modes: []route.Mode{route.Car, route.Foot, route.Bike},
		IsSynthetic: m.IsSynthetic, Attribution: attribution(m.IsSynthetic),
	}, nil
}

// attribution is the notice that the licence of the data requires; "" for invented roads.
func attribution(isSynthetic bool) string {
	if isSynthetic {
		return ""
	}
	return route.OSMAttribution
}

// Route implements route.Router. It looks for alternatives between two bounds only.
func (e *Engine) Route(ctx context.Context, q route.Query) (a route.Answer, err error) {
	m, err := e.mode(ctx, q.Mode)
	if err != nil {
		return a, err
	}
	snaps, err := m.snapAll(ctx, q.Bounds)
	if err != nil {
		return a, err
	}
	// The first bound that is too far from any road is the one that the error names.
	if i := slices.Index(snaps, nil); i >= 0 {
		return a, &route.OffRoadError{Bound: i}
	}
	paths, err := m.findPaths(ctx, q.Profile, snaps)
	if err != nil {
		return a, err
	}
	for i, path := range paths {
		a.Accesses = append(a.Accesses, snaps[i].accesses[path.Start.Access])
	}
	last := len(paths) - 1
	a.Accesses = append(a.Accesses, snaps[last+1].accesses[paths[last].End.Access])
	if q.Alternatives > 0 && len(snaps) == 2 {
		a.Routes, err = m.findAlternatives(ctx, q, snaps, paths[0])
		return a, err
	}
	r, err := m.newRoute(ctx, q, paths)
	a.Routes = []route.Route{r}
	return a, err
}

// mode returns the engine of a mode. It fails with route.ErrUnsupported for an unknown mode, and with ctx's error when ctx has ended.
func (e *Engine) mode(ctx context.Context, mode route.Mode) (*modeEngine, error) {
	m, ok := e.modes[mode]
	if !ok {
		return nil, route.ErrUnsupported
	}
	return m, ctx.Err()
}

// findPaths finds the best path through all bounds in their order, a leg from each to the next. A leg leaves a bound from the
// access where the previous leg arrived, in any direction: a route may turn back at a bound.
func (m *modeEngine) findPaths(ctx context.Context, p route.Profile, snaps []*snap) ([]search.Path, error) {
	legs := make([]search.Leg, len(snaps)-1)
	for i := range legs {
		legs[i] = search.Leg{From: snaps[i].from, To: snaps[i+1].to}
	}
	return m.searcher.Through(ctx, p, legs)
}

// findAlternatives returns the best route between two bounds and alternatives to it, the best first, all between the accesses of
// the best one.
func (m *modeEngine) findAlternatives(ctx context.Context, q route.Query, snaps []*snap, best search.Path) (routes []route.Route, err error) {
	from, to := placesAt(snaps[0].from, best.Start.Access), placesAt(snaps[1].to, best.End.Access)
	paths, err := m.searcher.Alternatives(ctx, q.Profile, best, from, to, q.Alternatives)
	for i := 0; i < len(paths) && err == nil; i++ {
		var r route.Route
		r, err = m.newRoute(ctx, q, paths[i:i+1])
		routes = append(routes, r)
	}
	return routes, err
}

// placesAt are the places of an access, without the excess that took part in its choice.
func placesAt(places []search.Place, access uint32) []search.Place {
	own := search.PlacesOf(places, access)
	for i := range own {
		own[i].Excess, own[i].IsLastResort = search.Cost{}, false
	}
	return own
}

// seconds and metres convert the units of a graph to those of package route.
func seconds(units uint32) float64 { return float64(units) / graph.DurationUnit }
func metres(units uint32) float64  { return float64(units) / graph.DistanceUnit }
