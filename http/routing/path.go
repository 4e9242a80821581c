package routing

import (
	"math"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/guidance"
	"lieudit/schemas/body"
	"lieudit/schemas/geo"
)

// Values of the parameter geometry.
const (
	noGeometry       = "none"
	polylineGeometry = "polyline"
)

// encoder encodes routes in the form that a request asks for.
type encoder struct{ body.Drawing }

func (e encoder) wantsGeometry() bool { return e.Geometry != noGeometry }

// polylinePrecision returns the precision of the answer's polylines, or 0 if it has none.
func (e encoder) polylinePrecision() int {
	if e.Geometry == polylineGeometry {
		return body.PolylinePrecision
	}
	return 0
}

// path encodes a route.
func (e encoder) path(r route.Route) body.RoutePath {
	shown := body.RoutePath{
		Distance: roundInt(r.Distance), Duration: roundInt(r.Duration), Geometry: e.line(r.Geometry), TollDistance: roundInt(r.TollDistance),
		Legs: make([]body.Leg, len(r.Legs)),
	}
	if e.wantsGeometry() {
		shown.BBox = boundingBox(r.Geometry)
	}
	for i, leg := range r.Legs {
		shown.Legs[i] = e.leg(leg, stopNumber(i, len(r.Legs)))
	}
	for _, a := range avoids {
		for _, met := range r.Avoided {
			if met.Kind == a.kind {
				shown.Avoided = append(shown.Avoided, body.Avoided{Type: a.name, Distance: roundInt(met.Distance)})
			}
		}
	}
	return shown
}

// stopNumber returns the number of the stop at which a leg ends: 0 for the last leg, which ends at the destination.
func stopNumber(leg, legs int) int {
	if leg == legs-1 {
		return 0
	}
	return leg + 1
}

// leg encodes a leg that ends at a stop on the way, or at the destination if stop is 0.
func (e encoder) leg(l route.Leg, stop int) body.Leg {
	shown := body.Leg{Distance: roundInt(l.Distance), Duration: roundInt(l.Duration)}
	if !e.Steps {
		return shown
	}
	for _, step := range l.Steps {
		if step.Maneuver.Type == route.Arrive {
			step.Maneuver.Stop = stop
		}
		shown.Steps = append(shown.Steps, e.step(step))
	}
	return shown
}

func (e encoder) step(s route.Step) body.Step {
	m := s.Maneuver
	return body.Step{
		Distance: roundInt(s.Distance), Duration: roundInt(s.Duration), Street: s.Name, Ref: s.Ref, Directions: s.Destinations,
		Maneuver: body.Maneuver{Type: string(m.Type), Modifier: string(m.Modifier), Exit: m.Exit, Lon: roundDegrees(m.Lon), Lat: roundDegrees(m.Lat)},
		Text:     guidance.Text(guidance.Language(e.Lang), s), Geometry: e.line(s.Geometry),
	}
}

// line encodes the shape of a way. It returns nil if the request asks for no geometry, or if the way has no points.
func (e encoder) line(points []geo.Point) *body.Line {
	switch {
	case !e.wantsGeometry() || len(points) == 0:
		return nil
	case e.Geometry == polylineGeometry:
		return body.PolylineOf(encodePolyline(points))
	}
	return &body.Line{Type: "LineString", Coordinates: coordinatesOf(points)}
}

func coordinatesOf(points []geo.Point) [][]float64 {
	all, numbers := make([][]float64, len(points)), make([]float64, 2*len(points)) // a single allocation for all
	for i, at := range points {
		all[i] = numbers[2*i : 2*i+2 : 2*i+2]
		all[i][0], all[i][1] = roundDegrees(at.Lon), roundDegrees(at.Lat)
	}
	return all
}

// roundDegrees rounds to six decimals, a tenth of a metre.
func roundDegrees(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// encodePolyline writes positions as an encoded polyline of precision 5: the difference of each from the one before, latitude first, in
// groups of five bits from the lowest.
func encodePolyline(points []geo.Point) string {
	var text []byte
	var lat, lon int
	for _, at := range points {
		nextLat, nextLon := int(math.Round(at.Lat*1e5)), int(math.Round(at.Lon*1e5))
		text = appendPolylineNumber(appendPolylineNumber(text, nextLat-lat), nextLon-lon)
		lat, lon = nextLat, nextLon
	}
	return string(text)
}

// appendPolylineNumber writes a number with its sign in the lowest bit.
func appendPolylineNumber(text []byte, n int) []byte {
	bits := uint(n) << 1
	if n < 0 {
		bits = ^bits
	}
	for ; bits >= 0x20; bits >>= 5 {
		text = append(text, byte(bits&0x1f|0x20)+63)
	}
	return append(text, byte(bits)+63)
}

// boundingBox returns the box of a way: west, south, east, north. Two successive positions more than half the Earth apart lie on either
// side of the antimeridian; west is then greater than east, as in GeoJSON.
func boundingBox(points []geo.Point) []float64 {
	if len(points) == 0 {
		return nil
	}
	shift := 0.0
	for i := 1; i < len(points); i++ {
		if math.Abs(points[i].Lon-points[i-1].Lon) > 180 {
			shift = 360
		}
	}
	lons, lats := make([]float64, len(points)), make([]float64, len(points))
	for i, at := range points {
		lons[i], lats[i] = at.Lon, at.Lat
		if at.Lon < 0 {
			lons[i] += shift
		}
	}
	return []float64{wrapDegrees(slices.Min(lons)), roundDegrees(slices.Min(lats)), wrapDegrees(slices.Max(lons)), roundDegrees(slices.Max(lats))}
}

// wrapDegrees returns a longitude from -180 to 180.
func wrapDegrees(lon float64) float64 {
	if lon > 180 {
		lon -= 360
	}
	return roundDegrees(lon)
}
