package guidance

import (
	"math"
	"slices"
	"strings"

	"lieudit/queries/route"
	"lieudit/queries/route/profile"
)

// isObvious reports whether the traveller needs no instruction: no other road could be mistaken for the way.
func (j *junction) isObvious() bool {
	for _, o := range j.others {
		if j.couldBeTaken(o) {
			return false
		}
	}
	if len(j.others) == 0 {
		return !j.endsAtRoad()
	}
	return math.Abs(j.angle) <= 60 || isSameRoad(j.from, j.to) || !j.hasMajorChoice()
}

// endsAtRoad reports whether the road ends at a one-way road, into which only one turn is allowed.
func (j *junction) endsAtRoad() bool {
	isThrough := func(r *Road) bool { return !r.isMinor() || j.to.isMinor() }
	return math.Abs(j.angle) > slightAngle && !isSameRoad(j.from, j.to) && slices.ContainsFunc(j.closed, isThrough)
}

// hasMajorChoice reports whether any other road is more than a drive.
func (j *junction) hasMajorChoice() bool {
	for _, o := range j.others {
		if !j.isMinorChoice(o) {
			return true
		}
	}
	return false
}

// isMinorChoice reports whether a road is less important than the one taken: for cars a drive compared with a street, for others a
// way without a name compared with a named one.
func (j *junction) isMinorChoice(o choice) bool {
	if j.mode == route.Car {
		return o.isMinor() && !j.to.isMinor()
	}
	return !o.hasLabel() && (isSameRoad(j.from, j.to) || o.isMinor() && !j.to.isMinor())
}

// couldBeTaken reports whether a traveller without an instruction might mistake another road for the way. The more the way bends,
// the more a straighter road looks like it; a name or a far higher class of the way makes up for that.
func (j *junction) couldBeTaken(o choice) bool {
	size, other := math.Abs(j.angle), math.Abs(o.angle)
	goesOn, otherGoesOn := isSameRoad(j.from, j.to), isSameRoad(j.from, o.Road)
	switch {
	case otherGoesOn && !goesOn:
		return other <= normalAngle // without an instruction travellers stay on the road
	case j.isMinorChoice(o):
		return other <= straightAngle && size > j.bendBeyond(goesOn)
	case o.IsLink && !j.to.IsLink && size <= slightAngle:
		return false // the main road continues next to a ramp
	case goesOn && !otherGoesOn && size <= straightAngle:
		return other <= straightAngle && o.Class <= j.to.Class && o.hasLabel()
	case goesOn && !otherGoesOn && (size <= slightAngle || j.isFarLesser(o)):
		return other < size+10
	case j.isFarLesser(o) && j.to.Class <= j.from.Class && size <= slightAngle && !o.IsLink:
		return other < size
	case size > slightAngle:
		return other <= normalAngle // the road ends at another, or nearly so
	}
	return other < size+35
}

// bendBeyond is the angle from which even a drive that leads straight on could be mistaken for the way.
func (j *junction) bendBeyond(goesOn bool) float64 {
	if goesOn {
		return 2 * slightAngle
	}
	return slightAngle
}

// isFarLesser reports whether a road is of a class far below that of the way taken.
func (j *junction) isFarLesser(o choice) bool { return o.Class > j.to.Class+1 }

// isFork reports whether two roads of one kind part ahead. A street and a drive, or a motorway and a ramp, do not make a fork.
func (j *junction) isFork() bool {
	if math.Abs(j.angle) > slightAngle {
		return false
	}
	for _, o := range j.others {
		if j.isForkWith(o) {
			return true
		}
	}
	return false
}

// isForkWith reports whether another road makes a fork with the way taken: neither of them leads straight on while the other turns
// off.
func (j *junction) isForkWith(o choice) bool {
	size, other := math.Abs(j.angle), math.Abs(o.angle)
	if max(size, other) > slightAngle || min(size, other) <= straightAngle/2 && max(size, other) > straightAngle {
		return false
	}
	return o.IsLink == j.to.IsLink && classesAreNear(o.Class, j.to.Class)
}

func classesAreNear(a, b profile.Class) bool { return max(a, b)-min(a, b) <= 1 }

// forkSide is the side of the way taken at a fork; straight if roads lie on both sides.
func (j *junction) forkSide() route.Modifier {
	var hasLeft, hasRight bool
	for _, o := range j.others {
		if j.isForkWith(o) {
			hasLeft = hasLeft || o.angle < j.angle
			hasRight = hasRight || o.angle > j.angle
		}
	}
	switch {
	case hasLeft && hasRight:
		return route.Straight
	case hasLeft:
		return route.SlightRight
	}
	return route.SlightLeft
}

// isSameRoad reports whether a road continues: by its name, or by its number if a name is missing. Two roads without either do not
// count as the same.
func isSameRoad(a, b *Road) bool {
	if a.Name != "" && b.Name != "" {
		return a.Name == b.Name
	}
	return sharesRef(a, b)
}

// isCalledTheSame reports whether sentences call two roads the same: by the name, or by the number if the sentences use that.
func isCalledTheSame(a, b *Road) bool {
	if b.Name == "" || isMotorwayRef(b.Ref) {
		return sharesRef(a, b)
	}
	return a.Name == b.Name
}

// sharesRef reports whether two roads have a number in common.
func sharesRef(a, b *Road) bool {
	if a.Ref == "" || b.Ref == "" {
		return false
	}
	for ref := range strings.SplitSeq(a.Ref, ";") {
		for other := range strings.SplitSeq(b.Ref, ";") {
			if strings.TrimSpace(ref) == strings.TrimSpace(other) {
				return true
			}
		}
	}
	return false
}
