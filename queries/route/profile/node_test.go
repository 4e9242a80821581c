package profile

import "testing"

func TestANodeStopsModes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tags, want string }{ // the modes that pass
		{"barrier=bollard", "fb"},
		{"barrier=bollard bollard=rising", "cfb"},
		{"barrier=block", "fb"},
		{"barrier=something", "fb"},
		{"barrier=cycle_barrier", "fb"},
		{"barrier=gate", "cfb"},
		{"barrier=lift_gate", "cfb"},
		{"barrier=swing_gate", "fb"},
		{"barrier=toll_booth", "cfb"},
		{"barrier=cattle_grid", "cfb"},
		{"barrier=border_control", "cfb"},
		{"barrier=entrance", "cfb"},
		{"barrier=wall", ""},
		{"barrier=fence", ""},
		{"barrier=yes", ""},
		{"barrier=fence sensory=audible", "cfb"},
		{"barrier=kerb", "fb"},
		{"barrier=kerb kerb=lowered", "cfb"},
		{"barrier=kerb highway=crossing", "cfb"},
		{"barrier=height_restrictor", "cfb"},
		{"barrier=height_restrictor maxheight=1.9", "fb"},
		{"barrier=height_restrictor maxheight=2.2", "cfb"},
		{"barrier=gate access=no", ""},
		{"barrier=gate access=private", "c"},
		{"barrier=gate access=no foot=yes", "f"},
		{"barrier=gate access=no bicycle=yes foot=yes", "fb"},
		{"barrier=bollard motor_vehicle=yes", "cfb"},
		{"barrier=wall access=yes", "cfb"},
		{"barrier=gate vehicle=no", "f"},
		{"access=agricultural;forestry", ""},
		{"highway=crossing bicycle=no", "cfb"},
		{"highway=traffic_signals", "cfb"},
	} {
		t.Run(tt.tags, func(t *testing.T) {
			t.Parallel()
			n, _ := ReadNode(newTags(t, tt.tags))
			got := ""
			for m, letter := range "cfb" {
				if !n.Closed[m] {
					got += string(letter)
				}
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAGateForThoseWhoGoBehindItIsRestricted(t *testing.T) {
	t.Parallel()
	for _, barrier := range []string{"gate", "lift_gate", "swing_gate", "bollard", "chain"} {
		for tags, want := range map[string]bool{
			"": false, "access=yes": false, "access=no": false, "access=private": true, "access=destination": true, "access=customers": true,
			"access=delivery": true, "motor_vehicle=private": true, "motorcar=permit": true, "access=private motor_vehicle=yes": false,
			"bicycle=private": false, "foot=private": false,
		} {
			n, _ := ReadNode(newTags(t, "barrier="+barrier+" "+tags))
			if n.IsRestricted != want || want && n.Closed[Car] {
				t.Errorf("barrier=%s %s: restricted %v, closed %v, want restricted %v", barrier, tags, n.IsRestricted, n.Closed[Car], want)
			}
		}
	}
	if n, _ := ReadNode(newTags(t, "access=private")); n.IsRestricted {
		t.Error("a node without a barrier is restricted")
	}
}

func TestANodeDelaysModes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule, tags                  string
		car, carBackward, foot, bik uint16 // hundredths of a second
	}{
		{"signals", "highway=traffic_signals", 200, 200, 200, 200},
		{"signals for one direction", "highway=traffic_signals direction=forward", 200, 0, 200, 200},
		{"their own direction counts", "highway=traffic_signals direction=forward traffic_signals:direction=backward", 0, 200, 0, 0},
		{"a stop sign", "highway=stop direction=forward", 200, 0, 0, 0},
		{"a stop sign that faces nobody known", "highway=stop", 100, 100, 0, 0},
		{"a give-way sign", "highway=give_way direction=backward", 0, 100, 0, 0},
		{"a gate is opened", "barrier=gate", 6000, 6000, 0, 0},
		{"a gate that is said to be open", "barrier=gate access=yes", 0, 0, 0, 0},
		{"a toll booth", "barrier=toll_booth", 0, 0, 0, 0},
		{"a crossing", "highway=crossing", 0, 0, 0, 0},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			n, _ := ReadNode(newTags(t, tt.tags))
			got := [4]uint16{n.DelayOf(Car, Forward), n.DelayOf(Car, Backward), n.DelayOf(Foot, Forward), n.DelayOf(Bike, Forward)}
			if want := [4]uint16{tt.car, tt.carBackward, tt.foot, tt.bik}; got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestANodeWithoutMeaningIsLeftOut(t *testing.T) {
	t.Parallel()
	for tags, want := range map[string]bool{
		"highway=crossing": false, "amenity=bench": false, "highway=bus_stop": false, "barrier=entrance": false,
		"highway=mini_roundabout": true, "barrier=toll_booth": true, "highway=motorway_junction ref=12": true,
		"highway=motorway_junction": false,
	} {
		if _, got := ReadNode(newTags(t, tags)); got != want {
			t.Errorf("%s: got %v, want %v", tags, got, want)
		}
	}
	n, _ := ReadNode(newTags(t, "highway=motorway_junction ref=12"))
	if n.Exit != "12" {
		t.Errorf("got exit %q, want 12", n.Exit)
	}
}

func TestAGateHasTheRuleOfItsAccess(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		access                 string
		isClosed, isRestricted bool
		delay                  uint16 // seconds
	}{
		{"", false, false, 60}, {"yes", false, false, 0}, {"permissive", false, false, 0}, {"designated", false, false, 0},
		{"private", false, true, 0}, {"destination", false, true, 0}, {"customers", false, true, 0}, {"delivery", false, true, 0},
		{"permit", false, true, 0}, {"residents", false, true, 0},
		{"no", true, false, 0}, {"agricultural", true, false, 0}, {"forestry", true, false, 0}, {"emergency", true, false, 0},
	} {
		for _, barrier := range []string{"gate", "lift_gate"} {
			for _, key := range []string{"access", "vehicle", "motor_vehicle", "motorcar"} {
				n, _ := ReadNode(tagList{"barrier": barrier, key: tt.access})
				if n.Closed[Car] != tt.isClosed || n.IsRestricted != tt.isRestricted || n.Delay[Car] != tt.delay*DelayUnit {
					t.Errorf("%s %s=%s: got %+v, want %+v", barrier, key, tt.access, n, tt)
				}
			}
		}
	}
}
