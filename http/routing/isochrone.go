package routing

import (
	"context"
	"slices"

	"lieudit/queries/locations/search"
	"lieudit/queries/route"
	"lieudit/schemas/body"
	sites "lieudit/schemas/locations"
)

// Isochrone finds the areas within reach of an origin, or from which it is reached. A distance is measured along the shortest way,
// a duration along the fastest.
func (s *Service) Isochrone(ctx context.Context, c Caller, in body.ComputeIsochrone) (any, error) {
	origins, err := s.resolveBounds(ctx, c.Account, in.Origin)
	if err != nil {
		return nil, err
	}
	found, err := s.Router.Isochrone(ctx, isochroneQuery(in, origins[0].Bound))
	if err != nil {
		return s.toAnswer(ctx, c, err)
	}
	shown := body.Isochrone{
		Envelope: body.OKEnvelope, Origin: origins[0].show(found.Access), CostType: in.CostType,
		Areas: make([]body.Area, len(in.Costs)), RouteNetwork: s.network(ctx, in.Mode),
	}
	within, err := s.sitesWithin(ctx, c.Account, in.Sites, found.Areas)
	if err != nil {
		return nil, err
	}
	limits := ascendingCosts(in.Costs)
	for i, value := range in.Costs {
		at := slices.Index(limits, value)
		shown.Areas[i].Value = value
		if in.Geometry != noGeometry {
			shown.Areas[i].Geometry = showArea(found.Areas[at])
		}
		if in.Sites {
			shown.Areas[i].Sites = sitesIn(found.Areas[at], within)
		}
	}
	return shown, nil
}

func isochroneQuery(in body.ComputeIsochrone, center route.Bound) route.IsochroneQuery {
	q := route.IsochroneQuery{
		Profile: profileOf(body.TravelBy{Travel: in.Travel, Optimization: string(route.Fastest)}), Center: center,
		Cost: route.CostType(in.CostType), Arrival: in.Direction == "arrival",
	}
	if q.Cost == route.ByDistance {
		q.Optimization = route.Shortest
	}
	for _, v := range ascendingCosts(in.Costs) {
		q.Limits = append(q.Limits, float64(v))
	}
	return q
}

// ascendingCosts are the values as a router takes them: ascending, each once.
func ascendingCosts(values []int) []int {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

func showArea(a route.Area) *body.MultiPolygon {
	shown := body.MultiPolygon{Type: "MultiPolygon", Coordinates: make([][][][]float64, len(a))}
	for i, polygon := range a {
		shown.Coordinates[i] = make([][][]float64, len(polygon))
		for j, ring := range polygon {
			shown.Coordinates[i][j] = coordinatesOf(ring)
		}
	}
	return &shown
}

// sitesWithin are the active sites in the box around all areas, where any are asked for.
func (s *Service) sitesWithin(ctx context.Context, account string, areAsked bool, areas []route.Area) ([]sites.Site, error) {
	box, ok := boxAround(areas)
	if !areAsked || !ok {
		return nil, nil
	}
	return s.findSites(ctx, search.Query{Account: account, Box: &box})
}

// boxAround is the box around areas; false: they are empty.
func boxAround(areas []route.Area) (box search.Box, ok bool) {
	box = search.Box{West: 180, South: 90, East: -180, North: -90}
	for _, area := range areas {
		for _, polygon := range area {
			for _, at := range polygon[0] {
				box = search.Box{West: min(box.West, at.Lon), South: min(box.South, at.Lat), East: max(box.East, at.Lon), North: max(box.North, at.Lat)}
				ok = true
			}
		}
	}
	return box, ok
}

// sitesIn are the sites that lie in an area.
func sitesIn(a route.Area, all []sites.Site) []body.SitePoint {
	shown := []body.SitePoint{}
	for _, site := range all {
		if contains(a, route.Point{Lon: *site.Lon, Lat: *site.Lat}) {
			shown = append(shown, body.SitePoint{SiteName: nameOf(site), Lon: *site.Lon, Lat: *site.Lat})
		}
	}
	return shown
}

// contains reports whether a position lies in an area: a ray from it to the east crosses the rings an odd number of times. Holes are rings
// like others.
func contains(a route.Area, at route.Point) bool {
	isInside := false
	for _, polygon := range a {
		for _, ring := range polygon {
			for i := 1; i < len(ring); i++ {
				if crosses(ring[i-1], ring[i], at) {
					isInside = !isInside
				}
			}
		}
	}
	return isInside
}

// crosses reports whether the ray from a position to the east crosses an edge. The upper end of an edge belongs to it and the lower does
// not, so that a ray through a corner crosses one edge of two.
func crosses(from, to, at route.Point) bool {
	if (from.Lat > at.Lat) == (to.Lat > at.Lat) {
		return false
	}
	lon := from.Lon + (at.Lat-from.Lat)/(to.Lat-from.Lat)*(to.Lon-from.Lon)
	return at.Lon < lon
}
