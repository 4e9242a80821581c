// Package geo has the one type for a point on the globe, and the two ways in which the project measures between points: along the
// sphere, and on a plane that touches it. Addresses, sites and roads all use it, so that a distance is the same wherever it is
// shown. Fixed-point coordinates that are stored (queries/address/vintage, queries/route) stay with their owners, each with one
// conversion to Point.
package geo

import "math"

// Point is a position in degrees of WGS 84.
type Point struct{ Lon, Lat float64 }

// IsOnGlobe reports whether both coordinates are degrees of the globe. It is false for NaN.
func (p Point) IsOnGlobe() bool { return math.Abs(p.Lat) <= 90 && math.Abs(p.Lon) <= 180 }

// Radian is one degree in radians.
const Radian = math.Pi / 180

// EarthRadius is the mean radius R1 = (2a + b) / 3 of WGS 84 in metres (IUGG; Moritz, Geodetic Reference System 1980).
const EarthRadius = 6_371_008.8

// MetresPerDegree is the length of a degree of latitude on the sphere of that radius: 111,195.08 m.
const MetresPerDegree = EarthRadius * Radian

// Distance returns the metres between two points along a great circle.
func Distance(a, b Point) float64 {
	return Haversine(a.Lat*Radian, b.Lat*Radian, (b.Lat-a.Lat)*Radian, (b.Lon-a.Lon)*Radian)
}

// Haversine is Distance for two latitudes and the differences of latitude and longitude in radians: differences of fixed-point
// coordinates are exact before they become floats.
func Haversine(latA, latB, dLat, dLon float64) float64 {
	sinLat, sinLon := math.Sin(dLat/2), math.Sin(dLon/2)
	h := sinLat*sinLat + math.Cos(latA)*math.Cos(latB)*sinLon*sinLon
	return 2 * EarthRadius * math.Asin(math.Sqrt(min(1, h)))
}

// Plane is an equirectangular projection: a plane that touches the globe at its origin. Within 100 km of it distances are
// those along the sphere to a hundredth. It does not know the antimeridian.
type Plane struct {
	origin       Point
	perLongitude float64 // metres per degree at the origin's latitude
}

// PlaneAt returns the plane that touches the globe at a point.
func PlaneAt(origin Point) Plane {
	return Plane{origin, MetresPerDegree * math.Cos(origin.Lat*Radian)}
}

// Project returns how many metres a point lies to the east and to the north of the origin.
func (p Plane) Project(q Point) (east, north float64) {
	return (q.Lon - p.origin.Lon) * p.perLongitude, (q.Lat - p.origin.Lat) * MetresPerDegree
}

// At returns the point that lies east metres to the east and north metres to the north of the origin.
func (p Plane) At(east, north float64) Point {
	return Point{Lon: p.origin.Lon + east/p.perLongitude, Lat: p.origin.Lat + north/MetresPerDegree}
}

// Between returns the point that lies at a share of the way from one point to another.
func Between(a, b Point, share float64) Point {
	return Point{Lon: a.Lon + share*(b.Lon-a.Lon), Lat: a.Lat + share*(b.Lat-a.Lat)}
}
