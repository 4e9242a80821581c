package valhalla

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/routeserver"
	"lieudit/schemas/geo"
)

// areaQuestion is a request for areas within reach.
type areaQuestion struct {
	costing
	Locations []location       `json:"locations"`
	Contours  []map[string]any `json:"contours"`
	Polygons  bool             `json:"polygons"`
	Denoise   float64          `json:"denoise"` // 0: small areas are not left out
	Reverse   bool             `json:"reverse"`
}

// areaAnswer is a GeoJSON FeatureCollection. Several features may belong to one contour.
type areaAnswer struct {
	Features []struct {
		Properties struct {
			Contour float64 `json:"contour"`
		} `json:"properties"`
		Geometry struct {
			Type        string          `json:"type"`
			Coordinates json.RawMessage `json:"coordinates"`
		} `json:"geometry"`
	} `json:"features"`
}

// Units of contours: minutes and kilometres.
const secondsPerMinute = 60

// maxRings is how many rings of an area are arranged: each is compared with all that are larger.
const maxRings = 10_000

// Isochrone implements route.Router.
func (r *Router) Isochrone(ctx context.Context, q route.IsochroneQuery) (route.Isochrone, error) {
	c, err := costingOf(q.Profile)
	if err != nil {
		return route.Isochrone{}, err
	}
	places, err := r.locate(ctx, c, []route.Bound{q.Center})
	if err != nil {
		return route.Isochrone{}, err
	}
	if err := firstOffRoad(places); err != nil {
		return route.Isochrone{}, err
	}
	question := areaQuestion{costing: c, Locations: []location{locationOf(places[0].access.Point)}, Polygons: true, Reverse: q.Arrival}
	kind, unit := "time", float64(secondsPerMinute)
	if q.Cost == route.ByDistance {
		kind, unit = "distance", metresPerKilometre
	}
	for _, limit := range q.Limits {
		question.Contours = append(question.Contours, map[string]any{kind: limit / unit})
	}
	var answer areaAnswer
	err = r.ask(ctx, "/isochrone", question, r.http.Route, &answer)
	if errors.Is(err, errOffRoad) {
		err = &route.OffRoadError{Bound: 0}
	}
	if err != nil {
		return route.Isochrone{}, err
	}
	result := route.Isochrone{Access: places[0].access}
	for _, limit := range q.Limits {
		area, err := answer.areaOf(limit / unit)
		if err != nil {
			return route.Isochrone{}, err
		}
		result.Areas = append(result.Areas, area)
	}
	return result, nil
}

// areaOf returns the area of one contour.
func (a areaAnswer) areaOf(contour float64) (route.Area, error) {
	var rings [][]geo.Point
	for _, f := range a.Features {
		if math.Abs(f.Properties.Contour-contour) > 1e-4*contour {
			continue
		}
		polygons := make([][][][]float64, 1)
		into := any(&polygons[0])
		if f.Geometry.Type == "MultiPolygon" {
			into = &polygons
		}
		if err := routeserver.Decode(f.Geometry.Coordinates, into); err != nil {
			return nil, err
		}
		for _, ring := range slices.Concat(polygons...) {
			points, err := readRing(ring)
			if err != nil {
				return nil, err
			}
			rings = append(rings, points)
		}
	}
	if len(rings) == 0 || len(rings) > maxRings {
		return nil, &routeserver.BadAnswerError{Reason: fmt.Sprintf("with %d rings of an area", len(rings))}
	}
	return arrangeRings(rings), nil
}

func readRing(ring [][]float64) ([]geo.Point, error) {
	points := make([]geo.Point, 0, len(ring)+1)
	for _, position := range ring {
		if len(position) < 2 {
			return nil, &routeserver.BadAnswerError{Reason: "a position without a latitude"}
		}
		p := geo.Point{Lon: position[0], Lat: position[1]}
		if err := routeserver.CheckPoint(p); err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	if n := len(points); n > 0 && points[0] != points[n-1] {
		points = append(points, points[0])
	}
	if len(points) < 4 {
		return nil, &routeserver.BadAnswerError{Reason: "a ring of too few positions"}
	}
	return points, nil
}
