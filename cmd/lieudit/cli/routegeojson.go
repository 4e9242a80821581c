package cli

import "lieudit/schemas/body"

// routeCollection is a route as GeoJSON: a line for each way, the best first, and a point for each bound and each step.
type routeCollection struct {
	Type        string         `json:"type"`
	BBox        []float64      `json:"bbox,omitempty"`
	Features    []routeFeature `json:"features"`
	Attribution string         `json:"attribution,omitempty"`
}

type routeFeature struct {
	Type       string         `json:"type"`
	Geometry   any            `json:"geometry"`
	Properties map[string]any `json:"properties"`
}

func newRouteCollection(found body.ComputedRoute) routeCollection {
	all := routeCollection{Type: "FeatureCollection", BBox: found.BBox, Attribution: found.Attribution}
	for i, way := range append([]body.RoutePath{found.RoutePath}, found.Alternatives...) {
		all.add(way.Geometry, map[string]any{"kind": "way", "rank": i + 1, "distance": way.Distance, "duration": way.Duration, "mode": found.Mode})
	}
	for i, b := range found.Bounds {
		all.add(pointAt(b.Lon, b.Lat), map[string]any{"kind": boundName(i, len(found.Bounds)), "name": placeName(b)})
	}
	for _, leg := range found.Legs {
		for _, step := range leg.Steps {
			all.add(pointAt(step.Maneuver.Lon, step.Maneuver.Lat), map[string]any{
				"kind": "step", "text": step.Text, "type": step.Maneuver.Type, "distance": step.Distance, "duration": step.Duration,
			})
		}
	}
	return all
}

func (c *routeCollection) add(geometry any, properties map[string]any) {
	c.Features = append(c.Features, routeFeature{"Feature", geometry, properties})
}

func pointAt(lon, lat float64) body.Point {
	return body.Point{Type: "Point", Coordinates: []float64{lon, lat}}
}
