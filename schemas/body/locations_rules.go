package body

import (
	"fmt"
	"strconv"
	"strings"

	"lieudit/schemas/body/shape"
)

// Broken: a position is whole.
func (r SiteRow) Broken() []string { return whole(r.Lat, r.Lon) }

// Broken: a position is whole.
func (s PutSite) Broken() []string { return whole(s.Lat, s.Lon) }

func whole(lat, lon *float64) []string {
	return when((lat == nil) != (lon == nil), "lat and lon go together")
}

// Broken: a centre is one point, given in one way; what needs one has one.
func (q SearchLocations) Broken() []string {
	centred := q.Near != "" || q.Lat != nil || q.Lon != nil
	rules := whole(q.Lat, q.Lon)
	rules = append(rules, when(q.Near != "" && (q.Lat != nil || q.Lon != nil), "near and lat with lon exclude each other")...)
	rules = append(rules, when(q.Radius != nil && !centred, "radius needs lat and lon, or near")...)
	return append(rules, when(q.Sort == "distance" && !centred, "sort=distance needs lat and lon, or near")...)
}

// Faulty: a box has corners on the globe, in their order.
func (q SearchLocations) Faulty() []shape.Fault {
	if q.BBox == "" {
		return nil
	}
	if _, err := BoxOf(q.BBox); err != nil {
		return []shape.Fault{{Member: "bbox", Rule: err.Error()}}
	}
	return nil
}

// Box is the south-western and the north-eastern corner of a bbox. One that passes the antimeridian has a West that is
// greater than its East.
type Box struct{ West, South, East, North float64 }

// BoxOf reads a bbox.
func BoxOf(text string) (Box, error) {
	var b Box
	parts := strings.Split(text, ",")
	if len(parts) != 4 {
		return b, fmt.Errorf("a box is lon,lat,lon,lat")
	}
	for i, bound := range []struct {
		into *float64
		most float64
	}{{&b.West, 180}, {&b.South, 90}, {&b.East, 180}, {&b.North, 90}} {
		n, err := strconv.ParseFloat(parts[i], 64)
		if err != nil || n < -bound.most || n > bound.most {
			return b, fmt.Errorf("a box is lon,lat,lon,lat with lon from -180 to 180 and lat from -90 to 90")
		}
		*bound.into = n
	}
	if b.South > b.North {
		return b, fmt.Errorf("the first lat of a box is not above the second")
	}
	return b, nil
}
