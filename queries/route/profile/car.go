package profile

import "math"

// carWay is what a car may do on a way.
type carWay struct {
	speed        [2]uint16
	priority     [2]uint8
	isRestricted bool
}

// limitFactor is the share of a speed limit that is driven on average.
const limitFactor = 0.8

// readCar reads what a car may do on a way. The two directions differ by access, size and limit; the state of the road is the same.
func readCar(tags Tags, k kind) (w carWay) {
	if isClosedToCars(tags, k) {
		return carWay{}
	}
	var speed [2]float64
	open := readOneWay(tags, k, Car)
	for d := range Direction(2) {
		access := readAccess(tags, k, Car, d)
		if access == restricted && k.speed[Car] > 0 && !k.isFerry() {
			w.isRestricted = true
			access = granted
		}
		if (open[d] || k.isFerry()) && isOpenTo(k, Car, access) && fits(tags, d) {
			speed[d] = carSpeed(tags, k, d)
		}
	}
	w.isRestricted = w.isRestricted || tags.Get("hov") == "designated"
	for d, s := range speed {
		w.speed[d] = toUnits(s)
	}
	w.priority = carPriority(tags, speed[Forward] > 0 && speed[Backward] > 0)
	return w
}

// isOpenTo reports whether a way of a kind is open to a mode with a permission.
func isOpenTo(k kind, m Mode, p permission) bool {
	if p == unsaid {
		return k.speed[m] > 0
	}
	return p == granted || p == other
}

// isClosedToCars reports whether cars are kept out by anything but access tags and size. Nobody drives around the outline of an
// area, and the hours of a road that reverses its direction are not known here.
func isClosedToCars(tags Tags, k kind) bool {
	if k.class == Steps || tags.Get("area") == "yes" || tags.Get("oneway") == "reversible" {
		return true
	}
	return tags.Get("service") == "emergency_access"
}

// carLimits are the smallest limits of size that a car fits: a passenger car of 2.0 m × 1.9 m × 4.8 m and 2 t.
var carLimits = []struct {
	keys  []directedKey
	parse func(string) (float64, bool)
	least float64
}{
	{newDirectedKeys("maxheight:physical", "maxheight"), parseMetres, 2.0},
	{newDirectedKeys("maxwidth:physical", "maxwidth", "width", "est_width"), parseMetres, 1.91},
	{newDirectedKeys("maxlength"), parseMetres, 4.8},
	{newDirectedKeys("maxweightrating", "maxweight"), parseTonnes, 2},
}

// fits reports whether a car passes in a direction. A size that cannot be parsed is ignored.
func fits(tags Tags, d Direction) bool {
	for i := range carLimits {
		limit := &carLimits[i]
		if size, ok := limit.parse(firstOf(limit.keys, tags, d)); ok && size < limit.least {
			return false
		}
	}
	return true
}

// carSurfaces, carTracks and carSmoothness are the highest speeds in km/h that the state of a road allows. 0 closes it.
var (
	carSurfaces = map[string]float64{
		"cement": 80, "compacted": 80, "fine_gravel": 80,
		"paving_stones": 60, "metal": 60, "bricks": 60,
		"grass": 40, "wood": 40, "sett": 40, "grass_paver": 40, "gravel": 40, "unpaved": 40, "ground": 40, "dirt": 40,
		"pebblestone": 40, "tartan": 40,
		"cobblestone": 30, "clay": 30, "snow": 30,
		"earth": 20, "stone": 20, "rocky": 20, "sand": 20, "ice": 20,
		"laterite": 15, "mud": 10,
	}
	carTracks     = map[string]float64{"grade1": 60, "grade2": 40, "grade3": 30, "grade4": 25, "grade5": 20}
	carSmoothness = map[string]float64{
		"intermediate": 80, "bad": 40, "very_bad": 20, "horrible": 10, "very_horrible": 5, "impassable": 0,
	}
)

// limitKeys are the tags of a speed limit, by precedence. An advisory speed is nearest to what is driven.
var limitKeys = newDirectedKeys("maxspeed:advisory", "maxspeed", "source:maxspeed", "maxspeed:type")

// carSpeed is the speed on a way that is open: by its kind, its limit and its state. A limit counts even if it is above the speed
// of the kind: mappers who tag a limit know the road.
func carSpeed(tags Tags, k kind, d Direction) float64 {
	if k.isFerry() {
		return k.speed[Car]
	}
	speed := k.speed[Car]
	if speed == 0 {
		speed = defaultSpeed[Car]
	}
	if k.isMovable {
		speed = movableBridgeSpeed
	}
	if limit := parseLimit(firstOf(limitKeys, tags, d)); limit > 0 {
		speed = limit * limitFactor
	}
	speed = slowTo(speed, carSurfaces, tags.Get("surface"))
	speed = slowTo(speed, carTracks, tags.Get("tracktype"))
	return slowTo(speed, carSmoothness, tags.Get("smoothness"))
}

// slowTo returns the lower of a speed and that of a table.
func slowTo(speed float64, table map[string]float64, value string) float64 {
	if most, ok := table[value]; ok {
		return min(speed, most)
	}
	return speed
}

// The factors below are those by which OSRM lowers the rate of a road and not its speed: they make a road a worse choice, but not
// slower.

// serviceFactors are the priorities of service roads by the tag service.
var serviceFactors = map[string]float64{
	"alley": 0.5, "parking": 0.5, "parking_aisle": 0.5, "driveway": 0.5, "drive-through": 0.5, "drive-thru": 0.5,
}

// widthFactors are the priorities of two-way roads that are narrower than a number of metres.
var widthFactors = []struct{ below, factor float64 }{{3.01, 0.5}, {4, 0.6}, {5, 0.75}, {6, 0.8}}

// The other priorities.
const (
	singleLaneFactor  = 0.5  // one lane for both directions
	unmarkedFactor    = 0.75 // no markings between the directions
	alternatingFactor = 0.4  // a signal lets the directions pass in turn
	sideRoadFactor    = 0.8
	yieldFactor       = 0.7 // the direction that gives way on a narrow stretch
)

// carPriority is the lowest of the factors of a way in each direction. Some concern only roads on which cars meet.
func carPriority(tags Tags, isTwoWay bool) (priority [2]uint8) {
	factor := 1.0
	if f, ok := serviceFactors[tags.Get("service")]; ok {
		factor = f
	}
	if isTwoWay {
		factor = min(factor, narrowFactor(tags))
	}
	if tags.Get("oneway") == "alternating" {
		factor = min(factor, alternatingFactor)
	}
	if side := tags.Get("side_road"); side == "yes" || side == "rotary" {
		factor = min(factor, sideRoadFactor)
	}
	yields := [2]float64{1, 1}
	switch tags.Get("priority") {
	case "forward":
		yields[Backward] = yieldFactor
	case "backward":
		yields[Forward] = yieldFactor
	}
	for d := range priority {
		priority[d] = uint8(math.Round(min(factor, yields[d]) * PriorityUnit))
	}
	return priority
}

// narrowFactor is the factor of a road on which cars of both directions meet. The number of lanes counts before the width, and the
// width before the markings.
func narrowFactor(tags Tags) float64 {
	factor := 1.0
	if tags.Get("lane_markings") == "no" {
		factor = unmarkedFactor
	}
	if width, ok := parseMetres(tags.Get("width")); ok {
		for _, w := range widthFactors {
			if width < w.below {
				factor = w.factor
				break
			}
		}
	}
	if lanes, ok := parseNumber(tags.Get("lanes")); ok && lanes < 2 {
		factor = singleLaneFactor
	}
	return factor
}

// toUnits converts km/h to units of Way.Speed. A speed that is not 0 stays so.
func toUnits(speed float64) uint16 {
	if speed <= 0 {
		return 0
	}
	return uint16(min(max(math.Round(speed*SpeedUnit), 1), math.MaxUint16))
}
