package profile

import (
	"math"

	"lieudit/queries/route/graph"
)

// Turn is the shape of a turn from one road to another.
type Turn struct {
	Angle     float64 // degrees from straight on: positive to the right, ±180 back
	Roads     int     // roads that meet at the junction, of those that the mode may use in any direction
	IsUTurn   bool    // back on the same segment
	IsDeadEnd bool    // no other road leads on, or none is allowed
	KeepsLeft bool    // traffic keeps left there

	FromClass, ToClass           Class
	FromRoundabout, ToRoundabout bool
}

// The costs of turns, in seconds.
const (
	carTurn     = 7.5   // a car that nearly comes to rest
	carBias     = 1.075 // how much more a left turn costs
	oncoming    = 2     // waiting for a gap in the oncoming traffic
	uTurn       = 20
	bikeTurn    = 6
	bikeBias    = 1.4
	longestTurn = float64(graph.ForbiddenTurn-1) / graph.TurnUnit
)

// TurnCost is the cost of a turn for a mode, in graph.TurnUnit parts of a second, or graph.ForbiddenTurn. Turning back is forbidden
// except at dead ends. Pedestrians turn at no cost; for cars the cost follows the formula of OSRM's profile, a sigmoid of the
// angle, for bicycles the square of the angle. Staying in a roundabout costs nothing.
func TurnCost(m Mode, t Turn) uint8 {
	if t.IsUTurn && !t.IsDeadEnd {
		return graph.ForbiddenTurn
	}
	if t.KeepsLeft {
		t.Angle = -t.Angle // the oncoming traffic is on the other side
	}
	if t.FromRoundabout && t.ToRoundabout && !t.IsUTurn {
		return 0 // the bend of the circle is not a turn, however sharp it is between two exits
	}
	var seconds float64
	switch m {
	case Car:
		seconds = carTurnSeconds(t)
	case Bike:
		seconds = bikeTurnSeconds(t)
	}
	return uint8(math.Round(min(seconds, longestTurn) * graph.TurnUnit))
}

// carTurnSeconds is the cost for a car. Where only two roads meet, the road just bends: its speed already covers that.
func carTurnSeconds(t Turn) float64 {
	if t.Roads <= 2 && !t.IsUTurn && !t.changesMode() {
		return 0
	}
	seconds := carTurn * sigmoid(13/carBias*t.Angle/180-6.5*carBias)
	if t.Angle < 0 {
		seconds = carTurn * sigmoid(13*carBias*-t.Angle/180-6.5/carBias)
	}
	if t.IsUTurn {
		return seconds + uTurn
	}
	if t.Angle < 0 && t.Roads > 2 && !t.FromRoundabout && !t.ToRoundabout {
		seconds += oncoming * sigmoid(13*-t.Angle/180-3.25)
	}
	return seconds
}

// changesMode reports whether somebody drives onto a ferry or off it.
func (t Turn) changesMode() bool {
	return (t.FromClass == Ferry || t.FromClass == ShuttleTrain) != (t.ToClass == Ferry || t.ToClass == ShuttleTrain)
}

// bikeTurnSeconds is the cost for a bicycle: a left turn costs twice as much as a right one.
func bikeTurnSeconds(t Turn) float64 {
	if t.IsUTurn {
		return bikeTurn + uTurn
	}
	if t.Roads <= 2 {
		return 0
	}
	part := t.Angle / 90
	if t.Angle < 0 {
		return part * part * bikeTurn * bikeBias
	}
	return part * part * bikeTurn / bikeBias
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
