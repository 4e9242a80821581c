package valhalla

import (
	"context"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
	"lieudit/queries/route/streetname"
	"lieudit/schemas/geo"
)

const (
	nearRadius   = 100   // metres within which a bound's street is looked for: a road has some kilobytes
	pocketCost   = 1_000 // metres that a ferry counts as farther, and a road from which few others can be reached, or that few others reach
	mostInLocate = 200   // bounds in one request
)

// place is a bound and where it meets the network. It is off the road if isOnRoad is false.
type place struct {
	access   route.Access
	isOnRoad bool
}

// locatedBound is the answer for one position: the roads near it.
type locatedBound struct {
	InputLat *float64   `json:"input_lat"` // of the position
	Edges    []nearEdge `json:"edges"`
}

// nearEdge is a direction of a road near a position.
type nearEdge struct {
	Lat           float64 `json:"correlated_lat"`
	Lon           float64 `json:"correlated_lon"`
	OutboundReach *int    `json:"outbound_reach"` // roads that can be reached from it, counted up to 50
	InboundReach  *int    `json:"inbound_reach"`
	Info          struct {
		Names []string `json:"names"`
	} `json:"edge_info"`
	Edge struct {
		Tunnel         bool `json:"tunnel"`
		Bridge         bool `json:"bridge"`
		Classification struct {
			Class string `json:"classification"`
			Use   string `json:"use"`
		} `json:"classification"`
	} `json:"edge"`
}

// locate finds where bounds meet the network.
func (r *Router) locate(ctx context.Context, c costing, bounds []route.Bound) ([]place, error) {
	places := make([]place, 0, len(bounds))
	for part := range slices.Chunk(bounds, mostInLocate) {
		question := struct {
			costing
			Locations []location `json:"locations"`
			Verbose   bool       `json:"verbose"`
		}{costing: c, Verbose: true}
		for _, b := range part {
			l := locationOf(b.Point)
			l.Radius = nearRadius
			question.Locations = append(question.Locations, l)
		}
		var answer []locatedBound
		if err := r.ask(ctx, "/locate", question, r.http.Route, &answer); err != nil {
			return nil, err
		}
		if len(answer) != len(part) {
			return nil, &routeserver.BadAnswerError{Reason: "with another number of positions"}
		}
		for i, b := range part {
			if answer[i].InputLat == nil {
				return nil, &routeserver.BadAnswerError{Reason: "without one of the positions"}
			}
			p, err := bestPlace(b, answer[i].Edges)
			if err != nil {
				return nil, err
			}
			places = append(places, p)
		}
	}
	return places, nil
}

// bestPlace returns where a bound meets the road of the least cost.
func bestPlace(b route.Bound, edges []nearEdge) (best place, err error) {
	key := streetname.Fold(b.Street)
	least := 0.0
	for _, e := range edges {
		p := geo.Point{Lon: e.Lon, Lat: e.Lat}
		if err := routeserver.CheckPoint(p); err != nil {
			return place{}, err
		}
		name, isOwn := e.name(key)
		distance := geo.Distance(b.Point, p)
		if distance > route.MaxAccessDistance {
			continue
		}
		cost := distance + e.penalty(b.IsAddress)
		if key != "" && !isOwn {
			cost += route.OtherNameCost
		}
		if !best.isOnRoad || cost < least {
			least, best = cost, place{route.Access{Point: p, Distance: distance, Street: name, IsOnOwn: isOwn}, true}
		}
	}
	return best, nil
}

// name returns the road's name, and whether it has the name of a street by its key. Valhalla lists names and numbers alike.
func (e nearEdge) name(key string) (name string, isOwn bool) {
	name, _ = splitNames(e.Info.Names)
	for _, n := range e.Info.Names {
		if key != "" && streetname.Fold(n) == key {
			return n, true
		}
	}
	return name, false
}

// penalty is what the kind of the road costs, in metres.
func (e nearEdge) penalty(isAddress bool) (cost float64) {
	c := e.Edge.Classification
	if isAddress && (c.Class == "motorway" || c.Use == "ramp" || e.Edge.Tunnel || e.Edge.Bridge) {
		cost += route.ThroughCost
	}
	const enough = 50 // roads: the server counts no further by default
	if c.Use == "ferry" || e.OutboundReach != nil && *e.OutboundReach < enough || e.InboundReach != nil && *e.InboundReach < enough {
		cost += pocketCost
	}
	return cost
}

// firstOffRoad returns the error that names the first place that is off the road, or nil.
func firstOffRoad(places []place) error {
	if i := slices.IndexFunc(places, func(p place) bool { return !p.isOnRoad }); i >= 0 {
		return &route.OffRoadError{Bound: i}
	}
	return nil
}

// splitNames returns the first name and the first number of a road, which Valhalla lists together.
func splitNames(names []string) (name, ref string) {
	for _, n := range names {
		switch {
		case isRef(n) && ref == "":
			ref = n
		case !isRef(n) && name == "":
			name = n
		}
	}
	return name, ref
}

// isRef reports whether a name is the number of a road: up to three capital letters and then a digit, such as D 806, A6b or M 6007.
func isRef(name string) bool {
	letters := 0
	for i, r := range name {
		switch {
		case 'A' <= r && r <= 'Z' && letters == i && i < 3:
			letters++
		case r == ' ' && letters == i && i > 0:
		case '0' <= r && r <= '9':
			return letters > 0
		default:
			return false
		}
	}
	return false
}
