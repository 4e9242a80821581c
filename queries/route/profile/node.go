package profile

// DelayUnit is how many units of Node.Delay are a second.
const DelayUnit = 100

// Node is the effect of a node of a way on passing traffic.
type Node struct {
	Closed           [Modes]bool   // the mode cannot pass
	Delay            [Modes]uint16 // the cost of passing
	Facing           Facing        // whom the delay concerns
	HasSignals       bool
	IsMiniRoundabout bool
	HasTollBooth     bool
	IsRestricted     bool   // a car may pass only to reach what lies behind it, as with Way.IsRestricted
	Exit             string // number of the exit of a motorway that begins here
}

// Facing is the traffic that a signal or a stop sign concerns.
type Facing uint8

// The traffic that a delay concerns.
const (
	FacingBoth Facing = iota
	FacingForward
	FacingBackward
)

// DelayOf returns the delay of a mode that passes in a direction of the way.
func (n *Node) DelayOf(m Mode, d Direction) uint16 {
	if n.Facing == FacingForward && d == Backward || n.Facing == FacingBackward && d == Forward {
		return 0
	}
	return n.Delay[m]
}

// carBarriers are the barriers that let cars pass, with the seconds that it takes. All others stop them. The access tags of a barrier
// come before its kind, so a gate has one of four rules:
//
//	no access tag                          a car waits a minute until it is open, as in OSRM
//	yes, permissive, designated            it is passed at once, as it stands open
//	private, destination, customers, …     it is passed at once, to reach what lies behind it and never on the way to elsewhere
//	no, agricultural, forestry, …          it stops cars
var carBarriers = map[string]uint16{
	"no": 0, "entrance": 0, "cattle_grid": 0, "border_control": 0, "toll_booth": 0, "sally_port": 0, "height_restrictor": 0, "arch": 0,
	"gate": 60, "lift_gate": 60,
}

// footBarriers are the barriers that stop pedestrians and bicycles. All others let them pass.
var footBarriers = map[string]bool{"yes": true, "wall": true, "fence": true}

// delays are the seconds that values of the tag highway cost each mode. At a stop or give-way sign that does not say whom it
// faces, only one direction waits: half counts in each.
var delays = map[string][Modes]float64{
	"traffic_signals": {Car: 2, Foot: 2, Bike: 2},
	"stop":            {Car: 2},
	"give_way":        {Car: 1},
}

// ReadNode reads the tags of a node. It returns false for a node without an effect.
func ReadNode(tags Tags) (Node, bool) {
	barrier, highway := tags.Get("barrier"), tags.Get("highway")
	n := Node{HasSignals: highway == "traffic_signals", IsMiniRoundabout: highway == "mini_roundabout"}
	n.HasTollBooth = barrier == "toll_booth"
	if highway == "motorway_junction" {
		n.Exit = joinList(tags.Get("ref"), "; ")
	}
	n.IsRestricted = isSet(barrier) && nodeAccess(tags, Car) == restricted
	n.addDelays(tags, highway)
	for m := range Mode(Modes) {
		n.Closed[m] = isClosedNode(tags, barrier, highway, m)
	}
	if wait := carBarriers[barrier]; wait > 0 && nodeAccess(tags, Car) == unsaid {
		n.Delay[Car], n.Facing = wait*DelayUnit, FacingBoth
	}
	return n, n != Node{}
}

// addDelays fills in the costs of signals and signs.
func (n *Node) addDelays(tags Tags, highway string) {
	seconds, ok := delays[highway]
	if !ok {
		return
	}
	facing := tags.Get("direction")
	if own := tags.Get("traffic_signals:direction"); own != "" {
		facing = own
	}
	switch facing {
	case "forward":
		n.Facing = FacingForward
	case "backward":
		n.Facing = FacingBackward
	case "both":
	default:
		if highway != "traffic_signals" {
			seconds[Car] /= 2
		}
	}
	for m, s := range seconds {
		n.Delay[m] = uint16(s * DelayUnit)
	}
}

// nodeAccess is the permission of a node's access tags for a mode.
func nodeAccess(tags Tags, m Mode) permission {
	if v := firstOf(ownAccessKeys[m], tags, Forward); v != "" {
		return parseAccess(v, m)
	}
	return parseAccess(tags.Get("access"), m)
}

// isClosedNode reports whether a node stops a mode. Access tags come before the kind of the barrier; those of a crossing are meant
// for the people who cross.
func isClosedNode(tags Tags, barrier, highway string, m Mode) bool {
	if p := nodeAccess(tags, m); p != unsaid {
		return p == denied && highway != "crossing"
	}
	if barrier == "" || isFlatBarrier(tags, barrier, highway) {
		return false
	}
	if m != Car {
		return footBarriers[barrier]
	}
	if height, ok := parseMetres(tags.Get("maxheight")); ok && barrier == "height_restrictor" && height < 2 {
		return true
	}
	_, passes := carBarriers[barrier]
	return !passes
}

// isFlatBarrier reports whether a barrier stops nobody: a bollard that sinks, a lowered kerb, a cattle fence that only sounds.
func isFlatBarrier(tags Tags, barrier, highway string) bool {
	switch barrier {
	case "kerb":
		kerb := tags.Get("kerb")
		return kerb == "lowered" || kerb == "flush" || highway == "crossing"
	case "fence":
		sensory := tags.Get("sensory")
		return sensory == "audible" || sensory == "audio"
	}
	return tags.Get("bollard") == "rising"
}
