package finder

import "math"

// Point is a place on Earth, in degrees of WGS 84.
type Point struct{ Lat, Lon float64 }

func (p Point) valid() bool { return math.Abs(p.Lat) <= 90 && math.Abs(p.Lon) <= 180 }

// radius is the Earth's mean radius in metres (IUGG).
const radius = 6371008.8

// Distance is how far two points are from each other on the sphere, in metres (haversine).
func Distance(a, b Point) float64 {
	const degree = math.Pi / 180
	lat, lon := math.Sin((b.Lat-a.Lat)*degree/2), math.Sin((b.Lon-a.Lon)*degree/2)
	h := lat*lat + math.Cos(a.Lat*degree)*math.Cos(b.Lat*degree)*lon*lon
	return 2 * radius * math.Asin(math.Sqrt(min(1, h)))
}

// Box lies between two meridians and two parallels. Where West is greater than East it crosses the antimeridian.
type Box struct{ West, South, East, North float64 }

func (b Box) valid() bool {
	return Point{b.South, b.West}.valid() && Point{b.North, b.East}.valid() && b.South <= b.North
}

// Holds says whether a point is in the box or on its edge.
func (b Box) Holds(p Point) bool {
	if !(b.South <= p.Lat && p.Lat <= b.North) {
		return false
	}
	if b.West <= b.East {
		return b.West <= p.Lon && p.Lon <= b.East
	}
	return p.Lon >= b.West || p.Lon <= b.East
}

// Around is a box that holds every point within so many metres of p.
func Around(p Point, metres float64) Box {
	const degree = math.Pi / 180
	angle := metres/radius + 1e-9 // never smaller than the circle, however numbers are rounded
	south, north := p.Lat-angle/degree, p.Lat+angle/degree
	if south <= -90 || north >= 90 {
		return Box{-180, max(south, -90), 180, min(north, 90)}
	}
	wide := math.Asin(min(1, math.Sin(angle)/math.Cos(p.Lat*degree))) / degree
	return Box{turned(p.Lon - wide), south, turned(p.Lon + wide), north}
}

func turned(lon float64) float64 {
	switch {
	case lon < -180:
		return lon + 360
	case lon > 180:
		return lon - 360
	}
	return lon
}
