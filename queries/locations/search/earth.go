package search

import "math"

// Point is a place on Earth, in degrees of WGS 84.
type Point struct{ Lat, Lon float64 }

func (p Point) isValid() bool { return math.Abs(p.Lat) <= 90 && math.Abs(p.Lon) <= 180 }

// earthRadius is the Earth's mean earthRadius in metres (IUGG).
const earthRadius = 6371008.8

// Distance is how far two points are from each other on the sphere, in metres (haversine).
func Distance(a, b Point) float64 {
	const degree = math.Pi / 180
	lat, lon := math.Sin((b.Lat-a.Lat)*degree/2), math.Sin((b.Lon-a.Lon)*degree/2)
	h := lat*lat + math.Cos(a.Lat*degree)*math.Cos(b.Lat*degree)*lon*lon
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}

// Box lies between two meridians and two parallels. Where West is greater than East it crosses the antimeridian.
type Box struct{ West, South, East, North float64 }

func (b Box) isValid() bool {
	return Point{b.South, b.West}.isValid() && Point{b.North, b.East}.isValid() && b.South <= b.North
}

// Contains says whether a point is in the box or on its edge.
func (b Box) Contains(p Point) bool {
	if !(b.South <= p.Lat && p.Lat <= b.North) {
		return false
	}
	if b.West <= b.East {
		return b.West <= p.Lon && p.Lon <= b.East
	}
	return p.Lon >= b.West || p.Lon <= b.East
}

// BoxAround is a box that holds every point within so many metres of p.
func BoxAround(p Point, metres float64) Box {
	const degree = math.Pi / 180
	angle := metres/earthRadius + 1e-9 // never smaller than the circle, however numbers are rounded
	south, north := p.Lat-angle/degree, p.Lat+angle/degree
	if south <= -90 || north >= 90 {
		return Box{-180, max(south, -90), 180, min(north, 90)}
	}
	halfWidth := math.Asin(min(1, math.Sin(angle)/math.Cos(p.Lat*degree))) / degree
	return Box{normalizeLongitude(p.Lon - halfWidth), south, normalizeLongitude(p.Lon + halfWidth), north}
}

func normalizeLongitude(lon float64) float64 {
	switch {
	case lon < -180:
		return lon + 360
	case lon > 180:
		return lon - 360
	}
	return lon
}
