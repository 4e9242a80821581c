package guidance

import (
	"math"

	"lieudit/queries/route"
	"lieudit/queries/route/profile"
)

// The lengths in metres up to which the road between two manoeuvres belongs to one junction.
const (
	junctionLength     = 30
	footJunctionLength = 15
	crossingLength     = 15 // of a piece of the way across a street
	zigzagLength       = 15 // between two halves of a street that are offset
	islandLength       = 40 // of a bend around an island in a street
	carriagewayGap     = 41 // between the carriageways of one road, at a U-turn
	briefLength        = 100
)

// merger joins the manoeuvres that a driver sees as one.
type merger struct{ *path }

// merge joins manoeuvres that follow closely, and drops those that cancel out. A map draws each carriageway and each corner of a
// junction; a driver sees one junction. Joined manoeuvres are tried again with the one before, so that three can become one.
func (m merger) merge(events []event) []event {
	merged := events[:1]
	for _, next := range events[1:] {
		merged = append(merged, next)
		for len(merged) > 2 {
			joined, ok := m.join(merged[len(merged)-2], merged[len(merged)-1])
			if !ok {
				break
			}
			merged = append(merged[:len(merged)-2], joined...)
			if len(joined) != 1 {
				break
			}
		}
	}
	return m.dropBrief(merged)
}

// pair is two manoeuvres, one after the other.
type pair struct {
	one, other, total float64 // angles of each, and from before the first to behind the second
	gap               float64 // length of the road between them
	isSame            bool    // the road behind the second is that before the first
	isOtherWay        bool    // it may be the other carriageway of that: see isCarriageway
	isSameBetween     bool    // and so is the road between
}

func (m merger) newPair(first, second event) pair {
	before, behind := &m.stretches[first.at-1].Road, &m.stretches[second.road].Road
	return pair{
		one: first.angle(), other: second.angle(), total: turnAngle(first.before, second.after),
		gap:    m.distance(first.road, second.at),
		isSame: isSameRoad(before, behind), isOtherWay: isCarriageway(before, behind), isSameBetween: isSameRoad(before, &m.stretches[first.road].Road),
	}
}

// join turns two manoeuvres into one, or into nothing. It returns false if both stay.
func (m merger) join(first, second event) ([]event, bool) {
	if m.isApproach(first, second) || m.isWeaving(first, second) {
		return []event{second}, true
	}
	if !canJoin(first) || !canJoin(second) {
		return nil, false
	}
	pair := m.newPair(first, second)
	switch {
	case pair.isUTurn():
		return m.joined(first, second, route.UTurn, route.Backwards), true
	case pair.isOffset() && pair.isSame:
		return nil, true
	case pair.isOffset():
		return m.joined(first, second, route.Continue, route.Straight), true
	case m.isCrossing(first, second) && math.Abs(pair.total) <= normalAngle:
		return m.joinTurns(first, second, pair), true
	case pair.gap > m.junctionLength():
		return nil, false
	case first.kind != route.Turn && pair.isSameBetween && math.Abs(pair.one) <= slightAngle && math.Abs(pair.other) > slightAngle:
		return []event{second}, true
	case pair.isOneTurn():
		return m.joinTurns(first, second, pair), true
	}
	return nil, false
}

// isUTurn reports whether the path goes back on the other carriageway of its road.
func (q *pair) isUTurn() bool {
	return (q.isSame || q.isOtherWay) && math.Abs(q.total) > 150 && q.one*q.other > 0 && q.gap <= carriagewayGap
}

// isCarriageway reports whether two roads that lie next to each other are the carriageways of one, as far as their labels go: main roads
// of a class, one of which has neither name nor number. Two main roads do not lie that near.
func isCarriageway(a, b *Road) bool {
	return a.Class == b.Class && a.IsLink == b.IsLink && a.Class <= profile.Tertiary && !(a.hasLabel() && b.hasLabel())
}

// isOffset reports whether the path is as straight behind both manoeuvres as before: across an offset, or around an island.
func (q *pair) isOffset() bool {
	isIsland := q.isSame && q.isSameBetween && q.gap <= islandLength
	return q.one*q.other < 0 && math.Abs(q.total) <= straightAngle && (isIsland || q.gap <= zigzagLength)
}

// isOneTurn reports whether the manoeuvres are the parts of one turn: to the same side, or with a part that is nearly straight.
func (q *pair) isOneTurn() bool {
	least := min(math.Abs(q.one), math.Abs(q.other))
	isBent := q.gap <= zigzagLength && least <= slightAngle && math.Abs(q.total) > slightAngle
	return math.Abs(q.total) <= 135 && (least <= straightAngle || q.one*q.other > 0 || isBent)
}

// isApproach reports whether a manoeuvre only leads onto the right side of an island before a roundabout.
func (m merger) isApproach(first, second event) bool {
	return second.kind == route.Roundabout && canJoin(first) && math.Abs(first.angle()) <= slightAngle &&
		m.distance(first.at, second.at) <= junctionLength
}

// isWeaving reports whether a ramp joins a motorway only to leave it at once.
func (m merger) isWeaving(first, second event) bool {
	return first.kind == route.Merge && second.kind == route.OffRamp && m.distance(first.at, second.at) <= 2*junctionLength
}

// canJoin reports whether a manoeuvre may be a part of another.
func canJoin(e event) bool {
	return !e.isStairs && (e.kind == route.Turn || e.kind == route.Continue || e.kind == route.Fork)
}

// isCrossing reports whether the road between two manoeuvres only crosses a street, or leads to where one crosses it: some metres
// without a name, on foot or by bike. For crossings, use the direction beyond.
func (m merger) isCrossing(first, second event) bool {
	if m.mode == route.Car || m.distance(first.road, second.at) >= crossingLength {
		return false
	}
	for i := first.road; i < second.at; i++ {
		if r := &m.stretches[i].Road; r.hasLabel() || r.isStairs() || pathKinds[r.Class] == "" {
			return false
		}
	}
	return true
}

func (m merger) junctionLength() float64 {
	if m.mode == route.Foot {
		return footJunctionLength
	}
	return junctionLength
}

// joinTurns makes one turn of two to the same side, or of a turn and a way straight on.
func (m merger) joinTurns(first, second event, q pair) []event {
	modifier := modifierOf(q.total)
	kind := route.Turn
	switch {
	case modifier == route.Straight || q.isSame:
		kind = route.Continue
	case math.Abs(q.total) <= slightAngle && (first.kind == route.Fork || second.kind == route.Fork):
		kind = route.Fork
	}
	return m.joined(first, second, kind, modifier)
}

func (m merger) joined(first, second event, kind route.ManeuverType, modifier route.Modifier) []event {
	return []event{{at: first.at, road: second.road, kind: kind, modifier: modifier, before: first.before, after: second.after}}
}

// dropBrief drops changes of the name that last only a moment, when the path leaves the road before anybody has read its sign, and
// those that return to the previous name.
func (m merger) dropBrief(events []event) []event {
	kept := events[:1]
	for k := 1; k < len(events); k++ {
		e := events[k]
		end := len(m.stretches)
		if k+1 < len(events) {
			end = events[k+1].at
		}
		last := kept[len(kept)-1]
		isBack := isSameRoad(m.roadFrom(last.road), m.roadFrom(e.road))
		if e.isChange && (isBack || m.distance(e.at, end) < briefLength) {
			continue
		}
		kept = append(kept, e)
	}
	return kept
}
