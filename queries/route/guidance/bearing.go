package guidance

import (
	"math"

	"lieudit/queries/route"
	"lieudit/schemas/geo"
)

// lookAhead is the length of road over which a bearing is measured, in metres: junctions are drawn with curves and corners.
const lookAhead = 20

// Bearing is the direction in which a line begins, in degrees clockwise from north. It is 0 for a line without length.
func Bearing(points []geo.Point) float64 {
	return bearingBetween(points[0], pointAlong(points, lookAhead))
}

// endBearing is the direction in which a line ends.
func endBearing(points []geo.Point) float64 {
	return bearingBetween(pointBefore(points, lookAhead), points[len(points)-1])
}

func bearingBetween(from, to geo.Point) float64 {
	x, y := geo.PlaneAt(from).Project(to)
	return math.Mod(math.Atan2(x, y)*180/math.Pi+360, 360)
}

// pointAlong is the position at a distance along a line, or its end.
func pointAlong(points []geo.Point, metres float64) geo.Point {
	for i := 1; i < len(points); i++ {
		length := math.Hypot(geo.PlaneAt(points[i-1]).Project(points[i]))
		if length >= metres && length > 0 {
			return geo.Between(points[i-1], points[i], metres/length)
		}
		metres -= length
	}
	return points[len(points)-1]
}

// pointBefore is the position at a distance before the end of a line, or its beginning.
func pointBefore(points []geo.Point, metres float64) geo.Point {
	for i := len(points) - 1; i > 0; i-- {
		length := math.Hypot(geo.PlaneAt(points[i]).Project(points[i-1]))
		if length >= metres && length > 0 {
			return geo.Between(points[i], points[i-1], metres/length)
		}
		metres -= length
	}
	return points[0]
}

// turnAngle is the angle from one bearing to another: 0 straight on, positive to the right, up to 180.
func turnAngle(before, after float64) float64 {
	angle := math.Mod(after-before+540, 360) - 180
	if angle == -180 {
		return 180
	}
	return angle
}

// The angles at which the name of a direction changes.
const (
	straightAngle = 20
	slightAngle   = 45
	normalAngle   = 125
	backAngle     = 170
)

// modifierOf names the direction of an angle.
func modifierOf(angle float64) route.Modifier {
	size := math.Abs(angle)
	switch {
	case size <= straightAngle:
		return route.Straight
	case size >= backAngle:
		return route.Backwards
	case size <= slightAngle:
		return onSide(angle, route.SlightLeft, route.SlightRight)
	case size <= normalAngle:
		return onSide(angle, route.Left, route.Right)
	}
	return onSide(angle, route.SharpLeft, route.SharpRight)
}

func onSide(angle float64, left, right route.Modifier) route.Modifier {
	if angle < 0 {
		return left
	}
	return right
}

// sideDistance is how far from the road a position must lie to be on a side of it, in metres.
const sideDistance = 3

// Side returns the side of the last line of a path on which a position lies: Left or Right, or "" if it lies on the line, before it
// or behind it. It is the modifier of an Arrive.
func Side(points []geo.Point, position geo.Point) route.Modifier {
	if len(points) < 2 {
		return ""
	}
	last := points[len(points)-1]
	if math.Hypot(geo.PlaneAt(last).Project(position)) < sideDistance {
		return ""
	}
	angle := turnAngle(endBearing(points), bearingBetween(last, position))
	if size := math.Abs(angle); size < 30 || size > 150 {
		return ""
	}
	return onSide(angle, route.Left, route.Right)
}
