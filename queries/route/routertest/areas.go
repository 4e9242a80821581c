package routertest

import (
	"context"
	"errors"
	"fmt"

	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// areaRules are the rules about areas within reach.
func areaRules() []rule {
	return []rule{
		{"an area has the places within its seconds", func(ctx context.Context, s *suite) error {
			return s.checkArea(ctx, route.IsochroneQuery{Profile: byCar, Cost: route.ByDuration, Limits: []float64{120, 300}})
		}},
		{"an area has the places within its metres", func(ctx context.Context, s *suite) error {
			return s.checkArea(ctx, route.IsochroneQuery{Profile: byCar, Cost: route.ByDistance, Limits: []float64{800, 3000}})
		}},
		{"an area has the places from which its centre is within reach", func(ctx context.Context, s *suite) error {
			return s.checkArea(ctx, route.IsochroneQuery{Profile: byCar, Cost: route.ByDuration, Limits: []float64{120, 300}, Arrival: true})
		}},
		{"an area on foot is smaller", checkFootArea},
		{"an area needs a road near its centre", checkAreaOffRoad},
	}
}

// Places are certainly inside an area up to the first share of its limit, and certainly outside beyond the second.
const surelyInside, surelyOutside = 0.8, 1.35

// checkArea compares areas around a place with the matrix from there, or to there.
func (s *suite) checkArea(ctx context.Context, q route.IsochroneQuery) error {
	center, err := s.bounds("oneway", "AB")
	places, err2 := s.spread()
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	q.Center = center[0]
	got, err := s.router.Isochrone(ctx, q)
	if err != nil {
		return err
	}
	if len(got.Areas) != len(q.Limits) || got.Access == (route.Access{}) {
		return fmt.Errorf("%d areas for %d limits, and access %v", len(got.Areas), len(q.Limits), got.Access)
	}
	costs, err := s.costs(ctx, q, places)
	if err != nil {
		return err
	}
	for i, area := range got.Areas {
		if err := checkRings(area); err != nil {
			return err
		}
		for j, p := range places {
			isInside := contains(area, p.Point)
			if costs[j] <= q.Limits[i]*surelyInside && !isInside || costs[j] > q.Limits[i]*surelyOutside && isInside {
				return fmt.Errorf("place %d at %.0f of %.0f: inside %v", j, costs[j], q.Limits[i], isInside)
			}
		}
	}
	return nil
}

// costs returns what it costs from the centre to places, or from these to the centre.
func (s *suite) costs(ctx context.Context, q route.IsochroneQuery, places []route.Bound) ([]float64, error) {
	center := []route.Bound{q.Center}
	question := route.MatrixQuery{Profile: q.Profile, Origins: center, Destinations: places}
	if q.Arrival {
		question.Origins, question.Destinations = places, center
	}
	m, err := s.router.Matrix(ctx, question)
	if err != nil {
		return nil, err
	}
	cells := m.Durations
	if q.Cost == route.ByDistance {
		cells = m.Distances
	}
	costs := make([]float64, len(places))
	for i := range costs {
		if q.Arrival {
			costs[i] = cells[i][0]
		} else {
			costs[i] = cells[0][i]
		}
	}
	return costs, nil
}

func checkFootArea(ctx context.Context, s *suite) error {
	center, err := s.bounds("oneway", "0A")
	near, err2 := s.bounds("oneway", "0")
	far, err3 := s.bounds("toll", "0")
	if err = errors.Join(err, err2, err3); err != nil {
		return err
	}
	onFoot := route.Profile{Mode: route.Foot, Optimization: route.Fastest}
	q := route.IsochroneQuery{Profile: onFoot, Center: center[0], Cost: route.ByDuration, Limits: []float64{600}}
	got, err := s.router.Isochrone(ctx, q)
	if err != nil {
		return err
	}
	if len(got.Areas) != 1 || !contains(got.Areas[0], near[0].Point) || contains(got.Areas[0], far[0].Point) {
		return fmt.Errorf("what is at 100 m or what is at some kilometres is on the wrong side of %d areas", len(got.Areas))
	}
	return nil
}

func checkAreaOffRoad(ctx context.Context, s *suite) error {
	q := route.IsochroneQuery{Profile: byCar, Center: route.Bound{Point: atSea}, Cost: route.ByDuration, Limits: []float64{60}}
	_, err := s.router.Isochrone(ctx, q)
	if !errors.As(err, new(*route.OffRoadError)) {
		return fmt.Errorf("got %v", err)
	}
	return nil
}

// checkRings checks that rings are closed and wound as GeoJSON requires: borders to the left, holes to the right.
func checkRings(area route.Area) error {
	if len(area) == 0 {
		return errors.New("an area without polygons")
	}
	for _, polygon := range area {
		for i, ring := range polygon {
			if len(ring) < 4 || ring[0] != ring[len(ring)-1] {
				return fmt.Errorf("ring %d of %d positions is not closed", i, len(ring))
			}
			if isBorder := i == 0; isBorder != (signedArea(ring) > 0) {
				return fmt.Errorf("ring %d turns the wrong way", i)
			}
		}
	}
	return nil
}

// signedArea returns twice the area of a ring in square degrees: positive where it is counter-clockwise.
func signedArea(ring []geo.Point) (area float64) {
	for i := 1; i < len(ring); i++ {
		area += (ring[i-1].Lon-ring[0].Lon)*(ring[i].Lat-ring[0].Lat) - (ring[i].Lon-ring[0].Lon)*(ring[i-1].Lat-ring[0].Lat)
	}
	return area
}

// contains reports whether a position is in an area: an odd number of borders lie west of it.
func contains(area route.Area, p geo.Point) bool {
	inside := false
	for _, polygon := range area {
		for _, ring := range polygon {
			for i := 1; i < len(ring); i++ {
				a, b := ring[i-1], ring[i]
				if (a.Lat > p.Lat) != (b.Lat > p.Lat) && p.Lon > a.Lon+(p.Lat-a.Lat)/(b.Lat-a.Lat)*(b.Lon-a.Lon) {
					inside = !inside
				}
			}
		}
	}
	return inside
}
