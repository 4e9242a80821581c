package isochrone

import (
	"math"

	"lieudit/queries/route"
)

// Box is the box around positions, in the units of fixed points.
type Box struct{ west, south, east, north float64 }

// EmptyBox is the box that holds nothing.
func EmptyBox() Box { return Box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)} }

// NewBox is the box from one corner to another.
func NewBox(southWest, northEast route.FixedPoint) Box {
	return Box{float64(southWest.Lon), float64(southWest.Lat), float64(northEast.Lon), float64(northEast.Lat)}
}

func (b *Box) isEmpty() bool { return b.west > b.east }

// IsRound reports whether longitudes in the box differ by more than 180 degrees, so that the shorter way between two of them may
// cross the antimeridian.
func (b *Box) IsRound() bool { return b.east-b.west > 180*route.FixedUnit }

// Holds reports whether the box holds another.
func (b *Box) Holds(other Box) bool {
	return b.west <= other.west && b.south <= other.south && b.east >= other.east && b.north >= other.north
}

// Include makes the box hold another.
func (b *Box) Include(other Box) {
	b.west, b.south = min(b.west, other.west), min(b.south, other.south)
	b.east, b.north = max(b.east, other.east), max(b.north, other.north)
}

// HoldAll makes the box hold points.
func (b *Box) HoldAll(points []route.FixedPoint) {
	southWest, northEast := points[0], points[0]
	for _, p := range points[1:] {
		southWest.Lon, southWest.Lat = min(southWest.Lon, p.Lon), min(southWest.Lat, p.Lat)
		northEast.Lon, northEast.Lat = max(northEast.Lon, p.Lon), max(northEast.Lat, p.Lat)
	}
	b.Include(NewBox(southWest, northEast))
}

// hold makes the box hold a position in degrees.
func (b *Box) hold(lon, lat float64) {
	lon, lat = lon*route.FixedUnit, lat*route.FixedUnit
	b.Include(Box{lon, lat, lon, lat})
}
