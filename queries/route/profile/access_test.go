package profile

import "testing"

// usersOf returns one letter for each mode that may use a way: car, foot, bike. A car that may only go to what lies there is a d,
// a bicycle that is pushed a p.
func usersOf(t *testing.T, tags string) string {
	t.Helper()
	w, _ := ReadWay(newTags(t, tags))
	users := ""
	if w.IsOpen(Car, Forward) {
		users = "c"
		if w.IsRestricted {
			users = "d"
		}
	}
	if w.IsOpen(Foot, Forward) {
		users += "f"
	}
	switch speed := w.Speed[Bike][Forward]; {
	case speed > pushing*SpeedUnit:
		users += "b"
	case speed > 0:
		users += "p"
	}
	return users
}

func TestAccessTagsSayWhoMayUseAWay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tags, want string }{
		{"highway=motorway", "c"},
		{"highway=trunk", "c"},
		{"highway=trunk_link", "c"},
		{"highway=trunk bicycle=yes foot=yes", "cfb"},
		{"highway=primary", "cfb"},
		{"highway=primary motorroad=yes", "c"},
		{"highway=living_street", "cfb"},
		{"highway=service", "cfb"},
		{"highway=track", "fb"},
		{"highway=path", "fb"},
		{"highway=cycleway", "b"},
		{"highway=cycleway foot=designated", "fb"},
		{"highway=footway", "fp"},
		{"highway=footway bicycle=yes", "fb"},
		{"highway=footway bicycle=no", "f"},
		{"highway=pedestrian", "fp"},
		{"highway=pedestrian motor_vehicle=destination", "fp"},
		{"highway=pedestrian motor_vehicle=yes", "cfp"},
		{"highway=steps", "fp"},
		{"highway=steps bicycle=no", "f"},
		{"highway=bridleway", ""},
		{"highway=bridleway foot=yes", "fp"},
		{"highway=busway", ""},
		{"highway=busway bicycle=yes", "b"},
		{"highway=road", ""},
		{"highway=road access=yes", "cfb"},
		{"railway=platform", "fp"},
		{"public_transport=platform", "fp"},
		{"man_made=pier", "fp"},

		// The value.
		{"highway=primary access=yes", "cfb"},
		{"highway=primary access=permissive", "cfb"},
		{"highway=primary access=designated", "cfb"},
		{"highway=primary access=destination", "dfb"},
		{"highway=primary access=customers", "dfb"},
		{"highway=primary access=permit", "dfb"},
		{"highway=primary access=private", "d"},
		{"highway=primary access=delivery", "d"},
		{"highway=primary access=agricultural", ""},
		{"highway=primary access=forestry", ""},
		{"highway=primary access=no", ""},
		{"highway=primary access=something", "cfb"},
		{"highway=primary motor_vehicle=bus", "fb"},
		{"highway=primary hov=designated", "dfb"},
		{"highway=track access=private", ""},
		{"highway=track motor_vehicle=private", "fb"},

		// The most specific tag counts.
		{"highway=primary access=no motorcar=yes", "c"},
		{"highway=primary access=no vehicle=yes", "cb"},
		{"highway=primary access=no foot=yes", "f"},
		{"highway=primary access=no bicycle=yes", "b"},
		{"highway=primary access=yes motor_vehicle=no", "fb"},
		{"highway=primary vehicle=no motor_vehicle=yes", "cf"},
		{"highway=primary motor_vehicle=no motorcar=yes", "cfb"},
		{"highway=primary vehicle=no", "f"},
		{"highway=primary vehicle=no bicycle=permissive", "fb"},
		{"highway=primary foot=no", "cb"},
		{"highway=primary foot=use_sidepath bicycle=use_sidepath", "c"},
		{"highway=primary bicycle=dismount", "cfp"},

		// In one direction.
		{"highway=primary motor_vehicle:forward=no", "fb"},
		{"highway=primary motor_vehicle:backward=no", "cfb"},
		{"highway=primary vehicle:forward=agricultural", "f"},

		// Lists and conditions.
		{"highway=primary access=no;destination", "dfb"},
		{"highway=primary access=agricultural;forestry", ""},
		{"highway=primary access=agricultural;something", ""},
		{"highway=primary access:conditional=no~@~(Mo-Fr)", "cfb"},

		// The tag access alone does not open a way to a mode that it is not made for.
		{"highway=footway access=yes", "fp"},
		{"highway=motorway access=yes", "c"},
		{"highway=track access=yes", "cfb"},
		{"highway=cycleway access=yes", "fb"},

		// Ferries.
		{"route=ferry", "cfb"},
		{"route=ferry motor_vehicle=no", "fb"},
		{"route=ferry motorcar=no bicycle=no", "f"},
		{"route=ferry access=no motor_vehicle=yes", "c"},
		{"route=ferry access=private", ""},
		{"route=shuttle_train", "c"},
		{"route=shuttle_train bicycle=yes foot=yes", "cfb"},
		{"route=bus", ""},
	} {
		t.Run(tt.tags, func(t *testing.T) {
			t.Parallel()
			if got := usersOf(t, tt.tags); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
