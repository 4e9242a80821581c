package valhalla

import (
	"cmp"
	"slices"

	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// arrangeRings makes polygons of rings that do not cross each other: one that lies within an even number of others is a border, and
// one within an odd number is a hole of the smallest border around it. Borders turn counter-clockwise, holes clockwise.
func arrangeRings(rings [][]geo.Point) (area route.Area) {
	all := sortRings(rings)
	polygonOf := make([]int, len(all)) // of a ring: the index of its polygon
	depth := make([]int, len(all))     // how many others it lies within
	for i, r := range all {
		around := -1
		for j := range i {
			if all[j].contains(r.points[0]) {
				around = j // the last one is the smallest
			}
		}
		if around >= 0 {
			depth[i] = depth[around] + 1
		}
		if depth[i]%2 == 0 {
			polygonOf[i] = len(area)
			area = append(area, [][]geo.Point{r.points})
			continue
		}
		slices.Reverse(r.points)
		polygonOf[i] = polygonOf[around]
		area[polygonOf[i]] = append(area[polygonOf[i]], r.points)
	}
	return area
}

// ring is a closed line, its size in square degrees and the box around it.
type ring struct {
	points   []geo.Point
	size     float64
	min, max geo.Point
}

// sortRings turns rings counter-clockwise and sorts them by size, so that a ring comes before those that it holds. Rings without a
// size are left out.
func sortRings(rings [][]geo.Point) []ring {
	all := make([]ring, 0, len(rings))
	for _, points := range rings {
		r := ring{points: slices.Clone(points), size: signedArea(points), min: points[0], max: points[0]}
		if r.size == 0 {
			continue
		}
		if r.size < 0 {
			r.size = -r.size
			slices.Reverse(r.points)
		}
		for _, p := range points {
			r.min.Lon, r.min.Lat = min(r.min.Lon, p.Lon), min(r.min.Lat, p.Lat)
			r.max.Lon, r.max.Lat = max(r.max.Lon, p.Lon), max(r.max.Lat, p.Lat)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b ring) int { return cmp.Compare(b.size, a.size) })
	return all
}

// contains reports whether a position is in a ring: an odd number of its sides lie west of it.
func (r *ring) contains(p geo.Point) bool {
	if p.Lon < r.min.Lon || p.Lon > r.max.Lon || p.Lat < r.min.Lat || p.Lat > r.max.Lat {
		return false
	}
	inside := false
	for i := 1; i < len(r.points); i++ {
		a, b := r.points[i-1], r.points[i]
		if (a.Lat > p.Lat) != (b.Lat > p.Lat) && p.Lon > a.Lon+(p.Lat-a.Lat)/(b.Lat-a.Lat)*(b.Lon-a.Lon) {
			inside = !inside
		}
	}
	return inside
}

// signedArea returns twice the area of a ring in square degrees: positive where it turns counter-clockwise.
func signedArea(ring []geo.Point) (area float64) {
	origin := ring[0]
	for i := 1; i < len(ring); i++ {
		a, b := ring[i-1], ring[i]
		area += (a.Lon-origin.Lon)*(b.Lat-origin.Lat) - (b.Lon-origin.Lon)*(a.Lat-origin.Lat)
	}
	return area
}
