package address

import (
	"math"

	"lieudit/queries/address/vintage"
)

const (
	mostBonus   = 400   // what lying right here is worth, of 10,000
	halfBonus   = 2_000 // metres at which it is worth half of that
	firstCircle = 500   // metres searched for the communes around a position, doubled until there are some
	lastCircle  = 16_000
)

// bonus is what lying so near is worth: less than one wrong letter in a street's name.
func bonus(metres float64) int32 {
	return int32(mostBonus * halfBonus / (halfBonus + metres))
}

// degrees counts in millionths.
func degrees(d float64) int32 { return int32(math.Round(d * 1e6)) }

// communesAround are the communes of the streets nearest to a point.
func (e *Engine) communesAround(p vintage.Point) area {
	all := []uint32{}
	for radius := float64(firstCircle); len(all) == 0 && radius <= lastCircle; radius *= 2 {
		e.v.StreetsAround(p.Lon, p.Lat, radius, func(street uint32, at vintage.Point) {
			if vintage.Metres(p, at) <= radius {
				all = append(all, e.v.StreetCommune(street))
			}
		})
	}
	return sorted(all)
}

// pointOf is where a candidate lies.
func (q *question) pointOf(c *candidate) vintage.Point {
	switch c.kind {
	case HouseNumber:
		return q.v.RowPoint(c.row)
	case Municipality:
		return q.v.Commune(c.commune).Point
	}
	return q.v.Street(c.street).Point
}
