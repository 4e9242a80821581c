package profile

import "testing"

func TestAWayHasTheNamesThatSignsShow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule, tags                    string
		name, ref, destinations, exit string
	}{
		{"its name and number", "highway=primary name=Rue~Foch ref=D~806", "Rue Foch", "D 806", "", ""},
		{"several numbers", "highway=motorway ref=A~6;A~46", "", "A 6; A 46", "", ""},
		{"where a ramp leads", "highway=motorway_link oneway=yes destination=Lyon;Grenoble", "", "", "Lyon, Grenoble", ""},
		{
			"with the number of the road", "highway=motorway_link oneway=yes destination=Lyon destination:ref=A~6",
			"", "", "A 6: Lyon", "",
		},
		{"the number alone", "highway=motorway_link oneway=yes destination:ref=A~6", "", "", "A 6", ""},
		{"a street", "highway=primary_link oneway=yes destination:street=Rue~Foch", "", "", "Rue Foch", ""},
		{"by direction", "highway=primary oneway=-1 destination:backward=Nantes destination:forward=Angers", "", "", "Nantes", ""},
		{"not on a road of both directions", "highway=primary destination=Lyon", "", "", "", ""},
		{"the number of an exit", "highway=motorway_link oneway=yes junction:ref=12", "", "", "", "12"},
		{"a sidewalk has the name of its road", "highway=footway footway=sidewalk street:name=Rue~Foch", "Rue Foch", "", "", ""},
		{"so has a side path", "highway=path is_sidepath=yes is_sidepath:of:name=Rue~Foch", "Rue Foch", "", "", ""},
		{"its own name counts", "highway=footway footway=sidewalk name=Allée street:name=Rue~Foch", "Allée", "", "", ""},
		{"a road has no side path's name", "highway=residential is_sidepath:of:name=Rue~Foch is_sidepath=yes", "", "", "", ""},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			w, _ := ReadWay(newTags(t, tt.tags))
			got := [4]string{w.Name, w.Ref, w.Destinations, w.Exit}
			if want := [4]string{tt.name, tt.ref, tt.destinations, tt.exit}; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestAWayIsMarkedForItsKind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tags string
		want func(Way) bool
	}{
		{"highway=motorway_link", func(w Way) bool { return w.IsLink && w.Class == Motorway }},
		{"highway=primary junction=roundabout", func(w Way) bool { return w.IsRoundabout }},
		{"highway=primary junction=circular", func(w Way) bool { return w.IsRoundabout }},
		{"highway=primary tunnel=yes", func(w Way) bool { return w.IsTunnel && !w.IsBridge }},
		{"highway=primary tunnel=no bridge=viaduct", func(w Way) bool { return !w.IsTunnel && w.IsBridge }},
		{"highway=motorway toll=yes", func(w Way) bool { return w.HasToll }},
		{"highway=motorway toll=no toll:hgv=yes", func(w Way) bool { return !w.HasToll }},
		{"highway=motorway toll=yes toll:motorcar=no", func(w Way) bool { return !w.HasToll }},
		{"highway=motorway toll=yes toll:motor_vehicle=no", func(w Way) bool { return !w.HasToll }},
		{"highway=motorway toll:motor_vehicle=no toll:motorcar=yes", func(w Way) bool { return w.HasToll }},
		{"highway=motorway toll=no toll:forward=yes", func(w Way) bool { return !w.HasToll }},
		{"highway=motorway toll:forward=yes", func(w Way) bool { return w.HasToll }},
		{"highway=primary toll:motorcar=yes", func(w Way) bool { return w.HasToll }},
		{"route=ferry", func(w Way) bool { return w.Class == Ferry }},
		{"highway=service access=private", func(w Way) bool { return w.IsRestricted }},
		{"highway=primary bicycle=private", func(w Way) bool { return !w.IsRestricted }},
	} {
		if w, ok := ReadWay(newTags(t, tt.tags)); !ok || !tt.want(w) {
			t.Errorf("%s: got %+v", tt.tags, w)
		}
	}
}
