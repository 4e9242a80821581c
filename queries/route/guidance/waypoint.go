package guidance

import (
	"math"
	"slices"

	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// MarkTurnsBack gives the departure of a leg the direction Backwards where it goes back on the road by which the leg before came to
// the waypoint. Legs do not know each other, so the caller that joins them calls it. It looks only at the geometry of the steps.
func MarkTurnsBack(legs []route.Leg) {
	for i := 1; i < len(legs); i++ {
		before, next := lastLine(legs[i-1].Steps), firstLine(legs[i].Steps)
		if before == nil || next == nil {
			continue
		}
		slices.Reverse(before)
		if math.Abs(turnAngle(Bearing(before), Bearing(next))) <= 180-backAngle {
			legs[i].Steps[0].Maneuver.Modifier = route.Backwards
		}
	}
}

// lastLine is a copy of the last line of a leg that has a length; nil where it has none.
func lastLine(steps []route.Step) []geo.Point {
	for _, s := range slices.Backward(steps) {
		if hasLength(s.Geometry) {
			return slices.Clone(s.Geometry)
		}
	}
	return nil
}

// firstLine is the line with which a leg departs; nil where it has no length.
func firstLine(steps []route.Step) []geo.Point {
	if len(steps) == 0 || !hasLength(steps[0].Geometry) {
		return nil
	}
	return steps[0].Geometry
}

// hasLength reports whether the points of a line are not all the same.
func hasLength(line []geo.Point) bool {
	return slices.ContainsFunc(line, func(p geo.Point) bool { return p != line[0] })
}
