package guidance

import (
	"math"

	"lieudit/queries/route"
)

// roundabout is the manoeuvre of a roundabout whose first stretch is at. Its exit is 0 where the path ends in the roundabout.
func (p *path) roundabout(at int) event {
	e := event{at: at, road: at, kind: route.Roundabout, before: p.out[at], after: p.out[at]}
	passed := 0
	if at > 0 {
		e.before = p.in[at-1]
		passed = p.exitsBefore(at) // at the junction where the roundabout is entered
	}
	for i := at + 1; i < len(p.stretches); i++ {
		if p.isRoundabout(i) {
			passed += p.exitsAt(i)
			continue
		}
		if at == 0 { // the leg begins in the roundabout: the manoeuvre is to leave it
			e.at, e.before = i, p.in[i-1]
		}
		e.road, e.exit, e.after = i, passed+1+p.exitsBefore(i), p.out[i]
		break
	}
	e.modifier = modifierOf(e.angle())
	return e
}

// exitsAt counts the exits passed at the beginning of a stretch of a roundabout.
func (p *path) exitsAt(i int) int {
	n := 0
	for _, b := range p.stretches[i].Branches {
		if p.isExit(i, b) {
			n++
		}
	}
	return n
}

// exitsBefore counts the exits at a junction that lie before the way taken: farther to the right, or to the left if traffic keeps
// left and circulates the other way.
func (p *path) exitsBefore(i int) int {
	n := 0
	taken, side := turnAngle(p.in[i-1], p.out[i]), sideFactor(p.stretches[i].KeepsLeft)
	for _, b := range p.stretches[i].Branches {
		if angle := side * turnAngle(p.in[i-1], b.Bearing); p.isExit(i, b) && angle > side*taken && angle < backAngle {
			n++
		}
	}
	return n
}

// isExit reports whether drivers count a branch as an exit. Drives do not count on a roundabout of roads: signs do not show them.
func (p *path) isExit(i int, b Branch) bool {
	return b.CanEnter && !b.IsRoundabout && (!b.isMinor() || p.stretches[i-1].isMinor())
}

// sideFactor turns an angle into one that is greater the sooner traffic reaches it on its way round: traffic that keeps right
// reaches the exits on the right first.
func sideFactor(keepsLeft bool) float64 {
	if keepsLeft {
		return -1
	}
	return 1
}

// exitsUpTo counts the exits of a mini roundabout up to the way taken.
func (j *junction) exitsUpTo(keepsLeft bool) int {
	n, side := 1, sideFactor(keepsLeft)
	for _, o := range j.others {
		if side*o.angle > side*j.angle {
			n++
		}
	}
	return n
}

// slipLength is the greatest length of a link that belongs to a junction, in metres.
const slipLength = 150

// slipRoad finds a link that takes a turn out of a junction: it is described as the turn from the road before it to the road after
// it. A ramp of a motorway does not count.
func (p *path) slipRoad(i int) (event, bool) {
	s := &p.stretches[i]
	if p.mode == route.Foot || !s.IsLink || p.stretches[i-1].IsLink || p.stretches[i-1].IsRoundabout || p.stretches[i-1].isFast() {
		return event{}, false
	}
	end := i
	for end < len(p.stretches) && p.stretches[end].IsLink {
		if end > i && p.hasOtherLink(end) {
			return event{}, false
		}
		end++
	}
	if end == len(p.stretches) || p.distance(i, end) > slipLength || p.stretches[end].isFast() || p.isRoundabout(end) {
		return event{}, false
	}
	e := event{at: i, road: end, kind: route.Turn, before: p.in[i-1], after: p.out[end]}
	e.modifier = modifierOf(e.angle())
	if math.Abs(e.angle()) <= straightAngle || e.modifier == route.Backwards {
		return event{}, false
	}
	return e, true
}

// hasOtherLink reports whether a link parts where a stretch begins.
func (p *path) hasOtherLink(i int) bool {
	for _, b := range p.stretches[i].Branches {
		if b.CanEnter && b.IsLink {
			return true
		}
	}
	return false
}
