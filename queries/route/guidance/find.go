package guidance

import (
	"math"
	"slices"

	"lieudit/queries/route"
	"lieudit/queries/route/profile"
	"lieudit/schemas/geo"
)

// find returns the manoeuvres of the path in order, the departure first. It keeps track of the road that the traveller believes to
// be on: if a street loses its name on a bridge, the name beyond the bridge is not news.
func (p *path) find() []event {
	events := []event{{kind: route.Depart, after: p.out[0], before: p.out[0]}}
	known := p.roadFrom(0)
	i := 1
	if p.isRoundabout(0) {
		if e := p.roundabout(0); e.exit > 0 {
			events = append(events, e)
			i, known = e.road+1, p.roadFrom(e.road)
		} else {
			i = len(p.stretches)
		}
	}
	for i < len(p.stretches) {
		e, ok := p.eventAt(i, known)
		if ok {
			events = append(events, e)
		}
		if ok || p.stretches[e.road].hasLabel() {
			known = p.roadFrom(e.road)
		}
		i = e.road + 1
	}
	return events
}

// eventAt finds the manoeuvre where a stretch begins. The event's road says how far the manoeuvre reaches, even if there is no
// manoeuvre.
func (p *path) eventAt(i int, known *Road) (event, bool) {
	if p.isRoundabout(i) && !p.isRoundabout(i-1) {
		e := p.roundabout(i)
		if e.exit == 0 {
			e.road = len(p.stretches) - 1
		}
		return e, true
	}
	if e, ok := p.slipRoad(i); ok {
		return e, true
	}
	j := p.junction(i, known)
	e := event{at: i, road: i, before: j.before, after: j.after}
	var ok bool
	e.kind, e.modifier, ok = j.maneuver()
	e.isStairs = j.beginsStairs()
	e.isChange = e.kind == route.Continue && !j.from.isFerry() && !e.isStairs && j.isObvious()
	if p.stretches[i].IsMiniRoundabout && p.mode != route.Foot && len(j.others) > 0 {
		e.kind, e.modifier, e.exit, e.isChange, ok = route.Roundabout, modifierOf(j.angle), j.exitsUpTo(p.stretches[i].KeepsLeft), false, true
	}
	return e, ok
}

// junction is what a traveller sees at a junction: the way that the path takes, and the others.
type junction struct {
	mode          route.Mode
	from, to      *Road
	known         *Road // what the traveller believes to be on: the last road with a name
	before, after float64
	angle         float64
	others        []choice // the roads that could be taken instead
	closed        []*Road  // the roads that only lead there
	isTurnBack    bool     // the path goes back on the road by which it came
}

// choice is a road that could be taken, and its angle.
type choice struct {
	*Road
	angle float64
}

func (p *path) junction(i int, known *Road) *junction {
	before, next := &p.stretches[i-1], &p.stretches[i]
	j := &junction{
		mode: p.mode, from: &before.Road, to: &next.Road, known: known, before: p.in[i-1], after: p.out[i],
		isTurnBack: before.Road == next.Road && isTurnBack(before.Points, next.Points),
	}
	j.angle = turnAngle(j.before, j.after)
	for k := range next.Branches {
		if b := &next.Branches[k]; b.CanEnter {
			j.others = append(j.others, choice{&b.Road, turnAngle(j.before, b.Bearing)})
		} else {
			j.closed = append(j.closed, &b.Road)
		}
	}
	return j
}

// isTurnBack reports whether a line goes back over the line before it. The bearing of a long stretch would not show it: two
// carriageways meet at an angle that is nearly as sharp.
func isTurnBack(before, next []geo.Point) bool {
	if len(before) < 2 || len(next) < 2 {
		return false
	}
	last, back := before[len(before)-1], before[len(before)-2]
	return math.Abs(turnAngle(bearingBetween(last, back), bearingBetween(next[0], next[1]))) < 1 && last != back && next[0] != next[1]
}

// maneuver decides what to say at a junction. The rules are tried in this order; the first that applies wins.
func (j *junction) maneuver() (route.ManeuverType, route.Modifier, bool) {
	switch {
	case j.to.isFerry() && !j.from.isFerry():
		return route.TakeFerry, modifierOf(j.angle), true
	case j.isTurnBack:
		return route.UTurn, route.Backwards, true
	case j.from.isFerry() && j.to.isFerry():
		return "", "", false
	case j.from.isFerry():
		return j.turn()
	case j.isMerge():
		return route.Merge, modifierOf(j.angle), true
	case j.isRamp():
		return j.ramp()
	case j.isObvious() && j.beginsStairs():
		return route.Continue, bendOf(j.angle), true
	case j.isObvious():
		return j.nameChange()
	case j.isFork():
		return route.Fork, j.forkSide(), true
	}
	return j.turn()
}

// turn is a turn, or the bend of the same road at a junction where another continues. Both need an instruction: nobody expects to
// turn to stay on a road.
func (j *junction) turn() (route.ManeuverType, route.Modifier, bool) {
	modifier := j.modifier()
	if modifier == route.Straight || isSameRoad(j.from, j.to) {
		return route.Continue, modifier, true
	}
	return route.Turn, modifier, true
}

// nameChange is a step only where a road of another name or number begins. A numbered road continues through villages, whatever its
// streets are called there.
func (j *junction) nameChange() (route.ManeuverType, route.Modifier, bool) {
	if !j.to.hasLabel() || j.to.IsLink || isSameRoad(j.known, j.to) || sharesRef(j.known, j.to) {
		return "", "", false
	}
	return route.Continue, bendOf(j.angle), true
}

// beginsStairs reports whether a flight of steps begins. It is announced even if the way is obvious: anyone with a pram or a
// bicycle wants to know.
func (j *junction) beginsStairs() bool { return j.to.isStairs() && !j.from.isStairs() }

// bendOf is the direction of a bend: even a hairpin is not a U-turn.
func bendOf(angle float64) route.Modifier {
	if modifier := modifierOf(angle); modifier != route.Backwards {
		return modifier
	}
	return onSide(angle, route.SharpLeft, route.SharpRight)
}

// isMerge reports whether a ramp joins a motorway or a road like it, or a motorway another.
func (j *junction) isMerge() bool {
	if j.mode != route.Car || j.to.IsLink || !j.to.isFast() || math.Abs(j.angle) > 60 {
		return false
	}
	return j.from.IsLink || j.from.Class == profile.Motorway && !isSameRoad(j.from, j.to) && slices.ContainsFunc(j.closed, isMotorway)
}

func isMotorway(r *Road) bool { return r.Class == profile.Motorway && !r.IsLink }

// isRamp reports whether a ramp of a motorway, or of a road like it, begins.
func (j *junction) isRamp() bool {
	return j.mode == route.Car && !j.from.IsLink && j.to.IsLink && j.to.isFast()
}

// ramp is a way off a motorway if the motorway itself continues, otherwise a way onto one. A motorway that merely becomes a ramp
// needs no instruction.
func (j *junction) ramp() (route.ManeuverType, route.Modifier, bool) {
	switch {
	case !j.from.isFast():
		return route.OnRamp, j.modifier(), true
	case len(j.others) == 0:
		return "", "", false
	}
	return route.OffRamp, j.modifier(), true
}

// modifier is the direction of the way taken. If another road is just as straight, it is the side on which the way lies.
func (j *junction) modifier() route.Modifier {
	modifier := bendOf(j.angle)
	if o, ok := j.straightest(); ok && modifier == route.Straight && math.Abs(o.angle) <= straightAngle {
		return onSide(j.angle-o.angle, route.SlightLeft, route.SlightRight)
	}
	return modifier
}

// straightest returns the other road that is nearest to straight on.
func (j *junction) straightest() (best choice, ok bool) {
	for _, o := range j.others {
		if !ok || math.Abs(o.angle) < math.Abs(best.angle) {
			best, ok = o, true
		}
	}
	return best, ok
}
