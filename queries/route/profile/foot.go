package profile

// footSurfaces slow pedestrians: the factors of their speed.
var footSurfaces = map[string]float64{"fine_gravel": 0.75, "gravel": 0.75, "pebblestone": 0.75, "mud": 0.5, "sand": 0.5}

// readFoot reads the speed of a pedestrian on a way in each direction: nearly always the same, because one-way rules are not meant
// for pedestrians.
func readFoot(tags Tags, k kind) (units [2]uint16) {
	if tags.Get("motorroad") == "yes" {
		return units
	}
	open := readOneWay(tags, k, Foot)
	for d := range Direction(2) {
		if open[d] && !isAgainstEscalator(tags, k, d) && isOpenTo(k, Foot, readAccess(tags, k, Foot, d)) {
			units[d] = toUnits(footSpeed(tags, k))
		}
	}
	return units
}

// footSpeed is the speed in km/h on a way that is open.
func footSpeed(tags Tags, k kind) float64 {
	speed := k.speed[Foot]
	if speed == 0 {
		speed = defaultSpeed[Foot]
	}
	if factor, ok := footSurfaces[tags.Get("surface")]; ok && !k.isFerry() {
		speed = min(speed, walking*factor)
	}
	return speed
}

// isAgainstEscalator reports whether stairs or a walkway move the other way.
func isAgainstEscalator(tags Tags, k kind, d Direction) bool {
	if k.class != Steps && k.class != Footway || tags.Get("oneway") == "no" {
		return false
	}
	moves := tags.Get("conveying")
	return moves == "forward" && d == Backward || moves == "backward" && d == Forward
}
