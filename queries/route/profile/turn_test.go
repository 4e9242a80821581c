package profile

import (
	"testing"

	"lieudit/queries/route/graph"
)

// The seconds of cars are those of OSRM's formula, rounded to tenths.
func TestATurnCosts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule string
		mode Mode
		turn Turn
		want uint8 // tenths of a second
	}{
		{"straight on", Car, Turn{Roads: 4}, 0},
		{"a right turn", Car, Turn{Angle: 90, Roads: 4}, 21},
		{"a left turn waits for a gap", Car, Turn{Angle: -90, Roads: 4}, 73},
		{"a sharp right turn", Car, Turn{Angle: 150, Roads: 4}, 72},
		{"a bend without a choice", Car, Turn{Angle: -90, Roads: 2}, 0},
		{"into a roundabout nobody comes from ahead", Car, Turn{Angle: -90, Roads: 3, ToRoundabout: true}, 54},
		{"out of a roundabout", Car, Turn{Angle: 45, Roads: 3, FromRoundabout: true}, 1},
		{"onto a ferry", Car, Turn{Angle: 90, Roads: 2, FromClass: Tertiary, ToClass: Ferry}, 21},
		{"back, where a road goes on", Car, Turn{Angle: 180, Roads: 3, IsUTurn: true}, graph.ForbiddenTurn},
		{"back at a dead end", Car, Turn{Angle: 180, Roads: 1, IsUTurn: true, IsDeadEnd: true}, 254},
		{"on foot", Foot, Turn{Angle: -120, Roads: 5}, 0},
		{"on foot back at a dead end", Foot, Turn{Angle: 180, IsUTurn: true, IsDeadEnd: true}, 0},
		{"on foot back elsewhere", Foot, Turn{Angle: 180, Roads: 3, IsUTurn: true}, graph.ForbiddenTurn},
		{"by bicycle straight on", Bike, Turn{Roads: 4}, 0},
		{"by bicycle to the right", Bike, Turn{Angle: 90, Roads: 4}, 43},
		{"by bicycle to the left", Bike, Turn{Angle: -90, Roads: 4}, 84},
		{"by bicycle around a bend", Bike, Turn{Angle: -90, Roads: 2}, 0},
		{"by bicycle back at a dead end", Bike, Turn{Angle: 180, IsUTurn: true, IsDeadEnd: true}, 254},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			if got := TurnCost(tt.mode, tt.turn); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// The segments between the exits of a small circle are shorter than the distance over which bearings are taken.
func TestNobodyTurnsWhoStaysInARoundabout(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Car, Foot, Bike} {
		for _, keepsLeft := range []bool{false, true} {
			for angle := -120.0; angle <= 120; angle += 15 {
				turn := Turn{Angle: angle, Roads: 3, KeepsLeft: keepsLeft, FromRoundabout: true, ToRoundabout: true}
				if got := TurnCost(mode, turn); got != 0 {
					t.Errorf("mode %d, %v°, keeps left %v: got %d, want 0", mode, angle, keepsLeft, got)
				}
			}
		}
	}
	back := Turn{Angle: 180, Roads: 3, IsUTurn: true, FromRoundabout: true, ToRoundabout: true}
	if got := TurnCost(Car, back); got != graph.ForbiddenTurn {
		t.Errorf("back in a roundabout: got %d, want %d", got, graph.ForbiddenTurn)
	}
}

func TestASharperTurnCostsNoLess(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Car, Foot, Bike} {
		for _, side := range []float64{-1, 1} {
			before := uint8(0)
			for angle := 0.0; angle <= 180; angle += 5 {
				got := TurnCost(mode, Turn{Angle: side * angle, Roads: 4})
				if got < before || got == graph.ForbiddenTurn {
					t.Errorf("mode %d, %v°: got %d after %d", mode, side*angle, got, before)
				}
				before = got
			}
		}
	}
}
