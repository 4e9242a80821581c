// Package profile turns the tags of OpenStreetMap into what a car, a pedestrian and a bicycle may do, how fast, and what a turn
// costs them. Package network calls it for every way, node and relation of a map, and builds the road graphs from the answers. The
// rules are tables that can be read next to the documentation of the tags, without the code.
//
//	ReadWay          tags of a way      ──► Way: class, name, speed of each mode in each direction
//	ReadNode         tags of a node     ──► Node: which modes it stops, which it delays
//	ReadRestriction  a relation         ──► Restriction: which turns are forbidden to which modes
//	TurnCost         shape of a turn    ──► tenths of a second
//
// Speeds, barriers and turn costs are near those of OSRM's profiles of the three modes, so that durations can be compared. A way
// has two figures in each direction, as in OSRM: Speed determines its duration, by class, limit and surface; Priority is how much a
// driver would rather be elsewhere, on a narrow or a service road. Both count in the choice of a route, only the speed in its
// duration. Traffic keeps to the side of its country, which a table of areas gives, or to that of the tag driving_side.
//
// Left out, and why:
//   - conditions (access:conditional, restriction:conditional): an answer does not depend on the hour
//   - reversible one-way roads, as they open at hours; alternating ones are slow roads
//   - lanes (turn:lanes, hov:lanes): a segment is one road; hov=designated only restricts it
//   - trains that carry bicycles, and car parks as areas: neither is a road
//   - ways across squares: a square is walked along its border
//   - sidewalk=separate and cycleway=separate do not close the road: its name is on the road, not on the sidewalk
//   - access=yes does not open to a mode what is not made for it (a car on a footway); motor_vehicle, bicycle and foot do
//   - limits in knots
package profile

import (
	"time"

	"lieudit/queries/route"
)

// Tags gives the value of a tag by its key, or "".
type Tags interface{ Get(key string) string }

// Mode is the index of a mode of travel in the arrays of this package.
type Mode int

// The modes, and how many there are.
const (
	Car Mode = iota
	Foot
	Bike
	Modes = 3
)

// Route is the mode as routers name it.
func (m Mode) Route() route.Mode { return [Modes]route.Mode{route.Car, route.Foot, route.Bike}[m] }

// ModeOf returns the index of a mode. It is Car for an unknown one.
func ModeOf(m route.Mode) Mode {
	switch m {
	case route.Foot:
		return Foot
	case route.Bike:
		return Bike
	}
	return Car
}

// Direction is a direction along the nodes of a way.
type Direction int

// The directions.
const (
	Forward Direction = iota
	Backward
)

// Class is the kind of a road.
type Class uint8

// The classes, the most important first. A link has the class of the road that it serves.
const (
	Motorway Class = iota
	Trunk
	Primary
	Secondary
	Tertiary
	Unclassified
	Residential
	LivingStreet
	Service
	Track
	Pedestrian
	Cycleway
	Footway
	Path
	Steps
	Ferry
	ShuttleTrain
)

// SpeedUnit is the number of units of Way.Speed in 1 km/h. PriorityUnit is the Way.Priority of a road that counts by its duration
// only.
const (
	SpeedUnit    = 10
	PriorityUnit = 100
)

// Way is what the modes may do on a way.
type Way struct {
	Class                Class
	Name                 string
	Ref                  string // its numbers, such as "D 806", or "A 6; A 46"
	Destinations         string // what its signs show, such as "A 6: Lyon, Grenoble"; only of a one-way road
	Exit                 string // number of the exit of a motorway that it is
	IsRoundabout, IsLink bool
	IsTunnel, IsBridge   bool
	HasToll              bool
	IsRestricted         bool // a car may use it only to reach what lies on it
	Speed                [Modes][2]uint16
	Priority             [Modes][2]uint8 // the choice of a route divides the duration by it: PriorityUnit or less
	Side                 Side            // as tagged on the road
	BikeOnLeft           [2]uint16       // Speed[Bike] if traffic keeps left: cycle lanes are on the sides of roads
	FerryDuration        time.Duration   // of the whole way, of a ferry, train or movable bridge; 0: by Speed
}

// IsOpen reports whether a mode may use the way in a direction.
func (w *Way) IsOpen(m Mode, d Direction) bool { return w.Speed[m][d] > 0 }

// ReadWay reads the tags of a way. It returns false if the way is not a road of any mode.
func ReadWay(tags Tags) (Way, bool) {
	k, ok := readKind(tags)
	if !ok {
		return Way{}, false
	}
	car, side := readCar(tags, k), readSide(tags)
	w := Way{
		Class: k.class, IsLink: k.isLink, IsRoundabout: isRoundabout(tags),
		IsTunnel: isSet(tags.Get("tunnel")), IsBridge: isSet(tags.Get("bridge")),
		HasToll: hasToll(tags), IsRestricted: car.isRestricted,
		Speed: [Modes][2]uint16{Car: car.speed, Foot: readFoot(tags, k), Bike: readBike(tags, k, side == Left)},
		Side:  side, BikeOnLeft: readBike(tags, k, side != Right),
		Priority: [Modes][2]uint8{Car: car.priority, Foot: wholePriority, Bike: bikePriority(tags, k, side == Left)},
	}
	if w.Speed == ([Modes][2]uint16{}) {
		return Way{}, false
	}
	if k.isFerry() || k.isMovable {
		w.FerryDuration = parseDuration(tags.Get("duration"))
	}
	readNames(&w, tags)
	return w, true
}

// wholePriority is the priority of a road that counts by its duration only.
var wholePriority = [2]uint8{PriorityUnit, PriorityUnit}

func isSet(value string) bool { return value != "" && value != "no" }

func isRoundabout(tags Tags) bool {
	value := tags.Get("junction")
	return value == "roundabout" || value == "circular"
}

// tollKeys are the tags of a toll for cars, by precedence. A toll only for lorries does not count.
var tollKeys = []string{"toll:motorcar", "toll:motor_vehicle", "toll"}

// hasToll reports whether cars pay, in at least one direction.
func hasToll(tags Tags) bool {
	for _, key := range tollKeys {
		if v := tags.Get(key); v != "" {
			return v == "yes"
		}
	}
	return tags.Get("toll:forward") == "yes" || tags.Get("toll:backward") == "yes"
}
