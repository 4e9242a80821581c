package osrm

import (
	"math"
	"slices"

	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// ferryMode is the mode of a step on a ferry.
const ferryMode = "ferry"

// classDistances returns the metres on each kind of roads that can be avoided.
func classDistances(legs []legAnswer) map[route.Avoid]float64 {
	metres := map[route.Avoid]float64{}
	for _, l := range legs {
		for _, s := range l.Steps {
			for _, c := range classes {
				metres[c.kind] += s.classDistance(c.name)
			}
		}
	}
	return metres
}

// classDistance returns the metres of a step on roads of a class. A step of which only a part has the class is measured along its
// geometry, from the intersection where the class begins.
func (s *stepAnswer) classDistance(class string) float64 {
	if class == ferryMode && s.Mode == ferryMode {
		return s.Distance
	}
	has := 0
	for _, x := range s.Intersections {
		if slices.Contains(x.Classes, class) {
			has++
		}
	}
	if has == 0 || has == len(s.Intersections) {
		return s.Distance * float64(min(has, 1))
	}
	inClass, all := 0.0, 0.0
	next, isIn := 0, false
	for i, p := range s.points {
		if i > 0 {
			d := geo.Distance(s.points[i-1], p)
			all += d
			if isIn {
				inClass += d
			}
		}
		if next < len(s.Intersections) && s.Intersections[next].isAt(p) {
			isIn = slices.Contains(s.Intersections[next].Classes, class)
			next++
		}
	}
	if all == 0 {
		return 0
	}
	return s.Distance * inClass / all
}

// isAt reports whether an intersection is at a position, of which both have six digits.
func (x intersection) isAt(p geo.Point) bool {
	const close = 1.5e-6
	return len(x.Location) == 2 && math.Abs(x.Location[0]-p.Lon) < close && math.Abs(x.Location[1]-p.Lat) < close
}
