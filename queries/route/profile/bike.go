package profile

import "math"

// bikeSurfaces are the highest speeds in km/h by surface.
var bikeSurfaces = map[string]float64{
	"wood": 10, "metal": 10, "cobblestone:flattened": 10, "paving_stones": 10, "compacted": 10, "fine_gravel": 10, "ground": 10,
	"sett": 9, "dirt": 8, "cobblestone": 7,
	"unpaved": 6, "gravel": 6, "pebblestone": 6, "grass_paver": 6, "earth": 6, "grass": 6,
	"laterite": 5, "mud": 3, "sand": 3, "woodchips": 3,
}

// The values of cycleway tags that mean room for bicycles: in the direction of the traffic, and against it.
var (
	cycleLanes = map[string]bool{
		"track": true, "lane": true, "share_busway": true, "sharrow": true, "shared": true, "shared_lane": true,
	}
	oppositeCycleLanes = map[string]bool{"opposite": true, "opposite_lane": true, "opposite_track": true}
)

// readBike reads how fast a bicycle goes on a way in each direction: ridden where it may be, pushed where walking is allowed. Lanes
// for bicycles are on the side to which traffic keeps.
func readBike(tags Tags, k kind, keepsLeft bool) (units [2]uint16) {
	if tags.Get("motorroad") == "yes" {
		return units
	}
	access := [2]permission{readAccess(tags, k, Bike, Forward), readAccess(tags, k, Bike, Backward)}
	if access[Forward] == denied && access[Backward] == denied {
		return units
	}
	speed := ridingSpeeds(tags, k, access, keepsLeft)
	addPushing(&speed, tags, k)
	for d, s := range speed {
		if access[d] != denied {
			units[d] = toUnits(slowBike(tags, k, s, Direction(d)))
		}
	}
	return units
}

// ridingSpeeds are the speeds in km/h at which the way may be ridden, 0 if it may not. A cycle lane opens a road to bicycles that
// is closed by its kind, and a direction that is closed to the traffic.
func ridingSpeeds(tags Tags, k kind, access [2]permission, keepsLeft bool) (speed [2]float64) {
	open := readOneWay(tags, k, Bike)
	lanes := readCycleLanes(tags, open, k, keepsLeft)
	for d := range speed {
		base := k.speed[Bike]
		if base == 0 && access[d] == granted {
			base = defaultSpeed[Bike]
		}
		if k.isMovable && base > 0 {
			base = movableBridgeSpeed
		}
		if open[d] || k.isFerry() {
			speed[d] = base
		}
		if lanes[d] {
			speed[d] = cycling
		}
	}
	return speed
}

// readCycleLanes returns the directions in which a road has room for bicycles. On a two-way road, a lane on the side to which
// traffic does not keep is for the other direction.
func readCycleLanes(tags Tags, open [2]bool, k kind, keepsLeft bool) (lanes [2]bool) {
	both := tags.Get("cycleway")
	if both == "" {
		both = tags.Get("cycleway:both")
	}
	left, right := tags.Get("cycleway:left"), tags.Get("cycleway:right")
	if open[Forward] && open[Backward] && !k.isImpliedOne {
		own, other := right, left
		if keepsLeft {
			own, other = left, right
		}
		lanes[Forward] = cycleLanes[both] || cycleLanes[own] || oppositeCycleLanes[other]
		lanes[Backward] = cycleLanes[both] || cycleLanes[other] || oppositeCycleLanes[own]
		return lanes
	}
	if oppositeCycleLanes[both] || oppositeCycleLanes[left] || oppositeCycleLanes[right] {
		return [2]bool{true, true}
	}
	if cycleLanes[both] || cycleLanes[left] || cycleLanes[right] {
		if open[Forward] {
			lanes[Forward] = true
		} else {
			lanes[Backward] = true
		}
	}
	return lanes
}

// addPushing adds walking speed where riding is forbidden: a cyclist who pushes the bicycle is a pedestrian by law.
func addPushing(speed *[2]float64, tags Tags, k kind) {
	canRide := speed[Forward] > 0 || speed[Backward] > 0
	for d := range speed {
		if speed[d] == 0 {
			speed[d] = pushingSpeed(tags, k, Direction(d), canRide)
		}
	}
	if tags.Get("bicycle") == "dismount" {
		*speed = [2]float64{pushing, pushing}
	}
}

// pushingSpeed is the speed at which a bicycle may be pushed, 0 if it may not. canRide reports whether the way can be ridden in the
// other direction: one may walk against a one-way road, but not against a roundabout or a motorway.
func pushingSpeed(tags Tags, k kind, d Direction, canRide bool) float64 {
	foot := ownAccessKeys[Foot][0].get(tags, d)
	switch {
	case parseAccess(foot, Foot) == denied || k.isFerry():
		return 0
	case k.push > 0:
		return k.push
	case k.isImpliedOne && d == Backward:
		return 0
	case parseAccess(foot, Foot) == granted || canRide:
		return pushing
	}
	return 0
}

// slowBike lowers a speed to the limit of the road and to what its surface allows. A limit above the speed of a bicycle, as nearly
// all are, changes nothing.
func slowBike(tags Tags, k kind, speed float64, d Direction) float64 {
	if k.isFerry() || speed == 0 {
		return speed
	}
	if limit, ok := parseSpeed(maxspeedKey.get(tags, d)); ok && limit > 0 {
		speed = min(speed, limit)
	}
	return slowTo(speed, bikeSurfaces, tags.Get("surface"))
}

var maxspeedKey = newDirectedKeys("maxspeed")[0]

// bikeFactors are the priorities of roads that bicycles share with fast traffic: a cyclist prefers a track next to such a road to
// the road itself, even if both are equally fast.
var bikeFactors = map[Class]float64{Trunk: 0.5, Primary: 0.6, Secondary: 0.75, Tertiary: 0.9}

// calmLimit is the speed limit in km/h up to which bicycles share a road of any class without a worse priority.
const calmLimit = 30

// bikePriority is the priority of a way in each direction: a road with room for bicycles, or with slow traffic, is as good as any.
func bikePriority(tags Tags, k kind, keepsLeft bool) (priority [2]uint8) {
	priority = wholePriority
	factor, isBusy := bikeFactors[k.class]
	if !isBusy {
		return priority
	}
	lanes := readCycleLanes(tags, readOneWay(tags, k, Bike), k, keepsLeft)
	for d := range Direction(2) {
		limit := parseLimit(maxspeedKey.get(tags, d))
		if isCalm := limit > 0 && limit <= calmLimit; !lanes[d] && !isCalm {
			priority[d] = uint8(math.Round(factor * PriorityUnit))
		}
	}
	return priority
}
