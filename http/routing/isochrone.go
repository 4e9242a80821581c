package routing

import (
	"context"
	"math"
	"slices"

	"lieudit/queries/locations/search"
	"lieudit/queries/route"
	"lieudit/schemas/body"
	"lieudit/schemas/geo"
	sites "lieudit/schemas/locations"
)

// Isochrone finds the areas within reach of an origin, or from which it can be reached. A distance is measured along the shortest
// way, a duration along the fastest.
func (s *Service) Isochrone(ctx context.Context, c Caller, in body.ComputeIsochrone) (any, error) {
	origins, err := s.resolveBounds(ctx, c.Account, in.Origin)
	if err != nil {
		return nil, err
	}
	release, err := s.acquireLarge(ctx, c.Account)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := c.reserveMemory(ctx, isochroneBytes(in)); err != nil {
		return nil, err
	}
	q := isochroneQuery(in, origins[0].Bound)
	found, err := s.Router.Isochrone(ctx, q)
	if err != nil {
		return s.toAnswer(ctx, c, err, subject{in.Explaining, origins})
	}
	shown := body.Isochrone{
		Envelope: body.OKEnvelope, Origin: origins[0].show(found.Access), CostType: in.CostType,
		Areas: make([]body.Area, len(in.Costs)), RouteNetwork: s.network(ctx, in.Mode),
	}
	within, err := s.sitesWithin(ctx, c.Account, in, q, found.Areas)
	if err != nil {
		return s.toAnswer(ctx, c, err, subject{in.Explaining, origins})
	}
	limits := ascendingCosts(in.Costs)
	for i, value := range in.Costs {
		at := slices.Index(limits, value)
		shown.Areas[i].Value = value
		if in.Geometry != noGeometry {
			shown.Areas[i].Geometry = showArea(found.Areas[at])
		}
		if in.Sites {
			shown.Areas[i].Sites = sitesIn(value, within)
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

// ascendingCosts returns the values as a router takes them: ascending, without duplicates.
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

// siteCost is a site of the account with the cost of the journey to or from it, in seconds or metres, rounded as in /route/matrix.
type siteCost struct {
	site sites.Site
	cost int
}

// sitesWithin returns the active sites around all areas with their costs, or nil if the request does not ask for sites. The cost
// decides which value a site is within, not the drawn area, which extends some metres on either side of its roads. So no two
// endpoints contradict each other about a site.
func (s *Service) sitesWithin(ctx context.Context, account string, in body.ComputeIsochrone, q route.IsochroneQuery, areas []route.Area) ([]siteCost, error) {
	box, ok := boxAround(areas)
	if !in.Sites || !ok {
		return nil, nil
	}
	found, err := s.findSites(ctx, search.Query{Account: account, Box: &box})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	bounds, err := s.siteBounds(ctx, "", found...)
	if err != nil {
		return nil, err
	}
	costs, err := s.costsOf(ctx, q, routeBounds(bounds))
	if err != nil {
		return nil, err
	}
	var within []siteCost
	for i, cost := range costs {
		if cost != route.Unreachable {
			within = append(within, siteCost{found[i], roundInt(cost)})
		}
	}
	return within, nil
}

// costsOf returns the cost of the journey from the centre to each bound, or from each bound to the centre.
func (s *Service) costsOf(ctx context.Context, q route.IsochroneQuery, bounds []route.Bound) ([]float64, error) {
	matrix := route.MatrixQuery{Profile: q.Profile, Origins: []route.Bound{q.Center}, Destinations: bounds}
	if q.Arrival {
		matrix.Origins, matrix.Destinations = matrix.Destinations, matrix.Origins
	}
	found, err := s.Router.Matrix(ctx, matrix)
	if err != nil {
		return nil, err
	}
	table := found.Durations
	if q.Cost == route.ByDistance {
		table = found.Distances
	}
	if !q.Arrival {
		return table[0], nil
	}
	costs := make([]float64, len(table))
	for i, row := range table {
		costs[i] = row[0]
	}
	return costs, nil
}

// boxAround returns the box around areas and everything that can be reached from a road at their border. ok is false if the areas are
// empty.
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
	const margin = 1.001 * route.MaxAccessDistance / geo.MetresPerDegree // the box must not be too narrow; if it is too wide, the router decides
	wide := margin / math.Max(math.Cos(max(math.Abs(box.North), math.Abs(box.South))*math.Pi/180), 0.01)
	box = search.Box{
		West: max(box.West-wide, -180), South: max(box.South-margin, -90), East: min(box.East+wide, 180), North: min(box.North+margin, 90),
	}
	return box, ok
}

// sitesIn returns the sites that cost no more than a value.
func sitesIn(value int, all []siteCost) []body.SitePoint {
	shown := []body.SitePoint{}
	for _, s := range all {
		if s.cost <= value {
			shown = append(shown, body.SitePoint{SiteName: nameOf(s.site), Lon: *s.site.Lon, Lat: *s.site.Lat})
		}
	}
	return shown
}
