package profile

import "testing"

func TestAPedestrianWalksBothWays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule, tags string
		want       [2]float64
	}{
		{"5 km/h", "highway=residential", [2]float64{5, 5}},
		{"whatever the limit", "highway=residential maxspeed=30", [2]float64{5, 5}},
		{"against a one-way street", "highway=residential oneway=yes", [2]float64{5, 5}},
		{"against a roundabout", "highway=residential junction=roundabout", [2]float64{5, 5}},
		{"but not against one for pedestrians", "highway=footway oneway:foot=yes", [2]float64{5, 0}},
		{"slower on stairs", "highway=steps", [2]float64{3, 3}},
		{"slower on gravel", "highway=path surface=gravel", [2]float64{3.8, 3.8}},
		{"slower in sand", "highway=path surface=sand", [2]float64{2.5, 2.5}},
		{"with an escalator", "highway=steps conveying=forward", [2]float64{3, 0}},
		{"with an escalator that comes down", "highway=steps conveying=backward", [2]float64{0, 3}},
		{"on an escalator that turns", "highway=steps conveying=reversible", [2]float64{3, 3}},
		{"with a moving walkway", "highway=footway conveying=forward", [2]float64{5, 0}},
		{"in one direction", "highway=path foot:backward=no", [2]float64{5, 0}},
		{"where the sidewalk is drawn apart", "highway=residential sidewalk=separate", [2]float64{5, 5}},
		{"along the border of a square", "highway=pedestrian area=yes", [2]float64{5, 5}},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			if got := readSpeeds(t, Foot, tt.tags); got != tt.want {
				t.Errorf("%s: got %v km/h, want %v", tt.tags, got, tt.want)
			}
		})
	}
}

func TestABicycleIsRiddenOrPushed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule, tags string
		want       [2]float64
	}{
		{"ridden at 15 km/h", "highway=residential maxspeed=50", [2]float64{15, 15}},
		{"not above a limit", "highway=living_street maxspeed=10", [2]float64{10, 10}},
		{"slower on a track", "highway=track", [2]float64{12, 12}},
		{"slower on a bad surface", "highway=track surface=gravel", [2]float64{6, 6}},
		{"pushed against a one-way street", "highway=residential oneway=yes", [2]float64{15, 4}},
		{"pushed against a one-way street that leads back", "highway=residential oneway=-1", [2]float64{4, 15}},
		{"but not where walking is forbidden", "highway=residential oneway=yes foot=no", [2]float64{15, 0}},
		{"nor against a roundabout", "highway=residential junction=roundabout", [2]float64{15, 0}},
		{"ridden where bicycles are exempt", "highway=residential oneway=yes oneway:bicycle=no", [2]float64{15, 15}},
		{"one-way for bicycles", "highway=residential oneway:bicycle=yes", [2]float64{15, 4}},
		{"one-way for bicycles, back", "highway=residential oneway:bicycle=-1", [2]float64{4, 15}},
		{"a lane against the traffic", "highway=residential oneway=yes cycleway=opposite", [2]float64{15, 15}},
		{"a lane against the traffic on the left", "highway=residential oneway=yes cycleway:left=opposite_lane", [2]float64{15, 15}},
		{"a lane with the traffic", "highway=residential oneway=yes cycleway=lane", [2]float64{15, 4}},
		{"a lane with the traffic that leads back", "highway=residential oneway=-1 cycleway=lane", [2]float64{4, 15}},
		{"a lane on the right of both directions", "highway=trunk cycleway:right=lane", [2]float64{15, 4}},
		{"a lane on the left of both directions", "highway=trunk cycleway:left=track", [2]float64{4, 15}},
		{"lanes on both sides", "highway=trunk cycleway:both=lane", [2]float64{15, 15}},
		{"pushed on a footway", "highway=footway", [2]float64{4, 4}},
		{"both ways", "highway=pedestrian oneway=yes", [2]float64{4, 4}},
		{"carried on stairs", "highway=steps", [2]float64{2, 2}},
		{"pushed where a sign says so", "highway=cycleway bicycle=dismount", [2]float64{4, 4}},
		{"pushed on a motorway that pedestrians may use", "highway=motorway foot=yes", [2]float64{4, 0}},
		{"a bridge that opens for ships", "highway=primary bridge=movable", [2]float64{5, 5}},
		{"on a ferry", "route=ferry", [2]float64{5, 5}},
		{"works beside an open road", "highway=primary construction=yes", [2]float64{15, 15}},
		{"works", "highway=construction construction=primary", [2]float64{0, 0}},
		{"access by direction", "highway=residential vehicle:backward=no", [2]float64{15, 0}},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			if got := readSpeeds(t, Bike, tt.tags); got != tt.want {
				t.Errorf("%s: got %v km/h, want %v", tt.tags, got, tt.want)
			}
		})
	}
}

func TestABusyRoadIsAWorseChoiceForBicyclesAndNoSlower(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule, tags string
		want       [2]uint8 // priorities
	}{
		{"a primary road", "highway=primary", [2]uint8{60, 60}},
		{"its ramp", "highway=primary_link", [2]uint8{60, 60}},
		{"a secondary road", "highway=secondary", [2]uint8{75, 75}},
		{"a tertiary road", "highway=tertiary", [2]uint8{90, 90}},
		{"a trunk road that is open to bicycles", "highway=trunk bicycle=yes", [2]uint8{50, 50}},
		{"a street", "highway=residential", [2]uint8{100, 100}},
		{"a track for bicycles", "highway=cycleway", [2]uint8{100, 100}},
		{"lanes on both sides", "highway=primary cycleway:both=lane", [2]uint8{100, 100}},
		{"a lane in one direction", "highway=primary cycleway:right=track", [2]uint8{100, 60}},
		{"a lane in the other direction where traffic keeps left", "highway=primary cycleway:right=track driving_side=left", [2]uint8{60, 100}},
		{"a lane on a one-way road", "highway=primary oneway=yes cycleway=lane", [2]uint8{100, 60}},
		{"a track drawn apart", "highway=primary cycleway=separate", [2]uint8{60, 60}},
		{"slow traffic", "highway=primary maxspeed=30", [2]uint8{100, 100}},
		{"slow traffic in one direction", "highway=primary maxspeed:forward=30 maxspeed=50", [2]uint8{100, 60}},
	} {
		w, _ := ReadWay(newTags(t, tt.tags))
		if got := w.Priority[Bike]; got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.rule, got, tt.want)
		}
		for d, speed := range w.Speed[Bike] {
			if w.Priority[Bike][d] < PriorityUnit && speed != cycling*SpeedUnit && speed != pushing*SpeedUnit {
				t.Errorf("%s: ridden at %d", tt.rule, speed)
			}
		}
	}
}
