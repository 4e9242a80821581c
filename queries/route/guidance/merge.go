package guidance

import (
	"math"

	"lieudit/queries/route"
)

// The lengths in metres up to which the road between two manoeuvres belongs to one junction, and the length of a zigzag.
const (
	junctionLength     = 30
	footJunctionLength = 15
	zigzagLength       = 20
	carriagewayGap     = 40 // between the carriageways of one road, at a U-turn
	briefLength        = 100
)

// merge joins manoeuvres that follow at once, and drops those that lead to nothing.
func (p *path) merge(events []event) []event {
	merged := events[:1]
	for _, next := range events[1:] {
		merged = append(merged, next)
		for len(merged) > 2 {
			joined, ok := p.join(merged[len(merged)-2], merged[len(merged)-1])
			if !ok {
				break
			}
			merged = append(merged[:len(merged)-2], joined...)
			if len(joined) != 1 {
				break
			}
		}
	}
	return p.dropBrief(merged)
}

// join makes one manoeuvre of two, or none. It returns false where both stay.
func (p *path) join(first, second event) ([]event, bool) {
	if p.isApproach(first, second) || p.isWeaving(first, second) {
		return []event{second}, true
	}
	if !canJoin(first) || !canJoin(second) {
		return nil, false
	}
	gap := p.distance(first.road, second.at)
	total := turnAngle(first.before, second.after)
	one, other := first.angle(), second.angle()
	isSame := isSameRoad(&p.stretches[first.at-1].Road, &p.stretches[second.road].Road)
	switch {
	case isSame && math.Abs(total) > 150 && one*other > 0 && gap <= carriagewayGap && math.Abs(one) > slightAngle:
		return p.joined(first, second, route.UTurn, route.Backwards), true
	case gap > p.junctionLength():
		return nil, false
	case first.kind != route.Turn && math.Abs(one) <= slightAngle && math.Abs(other) > slightAngle && p.isSameRoadAt(first):
		return []event{second}, true
	case math.Abs(one) <= straightAngle || math.Abs(other) <= straightAngle || one*other > 0:
		return p.joinTurns(first, second, total, isSame), true
	case math.Abs(total) <= straightAngle && gap <= zigzagLength:
		if isSame {
			return nil, true
		}
		return p.joined(first, second, route.Continue, route.Straight), true
	}
	return nil, false
}

// isApproach tells whether a manoeuvre only leads onto the right side of an island before a roundabout.
func (p *path) isApproach(first, second event) bool {
	return second.kind == route.Roundabout && canJoin(first) && math.Abs(first.angle()) <= slightAngle &&
		p.distance(first.at, second.at) <= junctionLength
}

// isWeaving tells whether a ramp joins a motorway only to leave it at once.
func (p *path) isWeaving(first, second event) bool {
	return first.kind == route.Merge && second.kind == route.OffRamp && p.distance(first.at, second.at) <= 2*junctionLength
}

// isSameRoadAt tells whether the road goes on at a manoeuvre.
func (p *path) isSameRoadAt(e event) bool {
	return isSameRoad(&p.stretches[e.at-1].Road, &p.stretches[e.road].Road)
}

// canJoin tells whether a manoeuvre may be a part of another.
func canJoin(e event) bool {
	return e.kind == route.Turn || e.kind == route.Continue || e.kind == route.Fork
}

func (p *path) junctionLength() float64 {
	if p.mode == route.Foot {
		return footJunctionLength
	}
	return junctionLength
}

// joinTurns makes one turn of two to the same side, or of a turn and a way straight on.
func (p *path) joinTurns(first, second event, total float64, isSame bool) []event {
	modifier := modifierOf(total)
	kind := route.Turn
	switch {
	case modifier == route.Straight || isSame:
		kind = route.Continue
	case math.Abs(total) <= slightAngle && (first.kind == route.Fork || second.kind == route.Fork):
		kind = route.Fork
	}
	if modifier == route.Backwards {
		modifier = onSide(first.angle(), route.SharpLeft, route.SharpRight)
	}
	return p.joined(first, second, kind, modifier)
}

func (p *path) joined(first, second event, kind route.ManeuverType, modifier route.Modifier) []event {
	return []event{{at: first.at, road: second.road, kind: kind, modifier: modifier, before: first.before, after: second.after}}
}

// dropBrief drops changes of the name that last a moment, when the path leaves the road before anybody has read its sign, and
// those that lead back to the name before.
func (p *path) dropBrief(events []event) []event {
	kept := events[:1]
	for k := 1; k < len(events); k++ {
		e := events[k]
		end := len(p.stretches)
		if k+1 < len(events) {
			end = events[k+1].at
		}
		last := kept[len(kept)-1]
		isBack := isSameRoad(p.roadFrom(last.road), p.roadFrom(e.road))
		if e.isChange && (isBack || p.distance(e.at, end) < briefLength) {
			continue
		}
		kept = append(kept, e)
	}
	return kept
}
