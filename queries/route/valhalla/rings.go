package valhalla

import (
	"slices"

	"lieudit/queries/route"
)

// arrangeRings makes polygons of rings that do not cross each other: one that lies within an even number of others is a border, and
// one within an odd number is a hole of the smallest border around it. Borders turn counter-clockwise, holes clockwise.
func arrangeRings(rings [][]route.Point) (area route.Area) {
	type sized struct {
		points []route.Point
		size   float64
	}
	all := make([]sized, 0, len(rings))
	for _, r := range rings {
		size := signedArea(r)
		if size == 0 {
			continue
		}
		if size < 0 {
			r, size = slices.Clone(r), -size
			slices.Reverse(r)
		}
		all = append(all, sized{r, size})
	}
	slices.SortStableFunc(all, func(a, b sized) int { return int(sign(b.size - a.size)) }) // what holds another comes before it
	polygonOf := make([]int, len(all))                                                     // of a ring: the index of its polygon
	depth := make([]int, len(all))
	for i, r := range all {
		around := -1
		for j := range i {
			if contains(all[j].points, r.points[0]) {
				around = j // the last one is the smallest
			}
		}
		if around >= 0 {
			depth[i] = depth[around] + 1
		}
		if depth[i]%2 == 0 {
			polygonOf[i] = len(area)
			area = append(area, [][]route.Point{r.points})
			continue
		}
		hole := slices.Clone(r.points)
		slices.Reverse(hole)
		polygonOf[i] = polygonOf[around]
		area[polygonOf[i]] = append(area[polygonOf[i]], hole)
	}
	return area
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// signedArea returns twice the area of a ring in square degrees: positive where it turns counter-clockwise.
func signedArea(ring []route.Point) (area float64) {
	origin := ring[0]
	for i := 1; i < len(ring); i++ {
		a, b := ring[i-1], ring[i]
		area += (a.Lon-origin.Lon)*(b.Lat-origin.Lat) - (b.Lon-origin.Lon)*(a.Lat-origin.Lat)
	}
	return area
}

// contains says whether a position is in a ring: an odd number of its sides lie west of it.
func contains(ring []route.Point, p route.Point) bool {
	inside := false
	for i := 1; i < len(ring); i++ {
		a, b := ring[i-1], ring[i]
		if (a.Lat > p.Lat) != (b.Lat > p.Lat) && p.Lon > a.Lon+(p.Lat-a.Lat)/(b.Lat-a.Lat)*(b.Lon-a.Lon) {
			inside = !inside
		}
	}
	return inside
}
