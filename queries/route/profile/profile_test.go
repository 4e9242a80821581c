package profile

import (
	"strings"
	"testing"
)

// tagList is tags as a test writes them: "highway=primary maxspeed=50~mph". A tilde stands for a space.
type tagList map[string]string

func (t tagList) Get(key string) string { return t[key] }

func newTags(t *testing.T, text string) tagList {
	t.Helper()
	tags := tagList{}
	for _, field := range strings.Fields(text) {
		key, value, ok := strings.Cut(field, "=")
		if !ok {
			t.Fatalf("no tag: %q", field)
		}
		tags[key] = strings.ReplaceAll(value, "~", " ")
	}
	return tags
}

// readSpeeds returns the speeds of a mode on a way in km/h, forward and backward.
func readSpeeds(t *testing.T, m Mode, tags string) [2]float64 {
	t.Helper()
	w, _ := ReadWay(newTags(t, tags))
	return [2]float64{float64(w.Speed[m][0]) / SpeedUnit, float64(w.Speed[m][1]) / SpeedUnit}
}

func TestACarDrivesAtTheSpeedOfTheWay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule, tags string
		want       [2]float64
	}{
		{"a motorway is a one-way road", "highway=motorway", [2]float64{90, 0}},
		{"but for a tag that says otherwise", "highway=motorway oneway=no", [2]float64{90, 90}},
		{"a link is slower, and has two directions", "highway=motorway_link", [2]float64{45, 45}},
		{"a primary road", "highway=primary", [2]float64{65, 65}},
		{"a residential street", "highway=residential", [2]float64{25, 25}},
		{"four fifths of a limit are driven", "highway=residential maxspeed=50", [2]float64{40, 40}},
		{"a limit may differ by direction", "highway=primary maxspeed:forward=50 maxspeed=80", [2]float64{40, 64}},
		{"a limit in miles", "highway=primary maxspeed=50~mph", [2]float64{64.4, 64.4}},
		{"a limit by name", "highway=primary maxspeed=FR:urban", [2]float64{40, 40}},
		{"a rural limit", "highway=primary source:maxspeed=FR:rural", [2]float64{64, 64}},
		{"the limit of motorways", "highway=motorway maxspeed=FR:motorway", [2]float64{104, 0}},
		{"a zone 30", "highway=residential maxspeed:type=FR:zone30", [2]float64{24, 24}},
		{"an advised speed comes before the limit", "highway=primary maxspeed=80 maxspeed:advisory=50", [2]float64{40, 40}},
		{"a limit that is not known is none", "highway=primary maxspeed=signals", [2]float64{65, 65}},
		{"a bad surface slows", "highway=primary maxspeed=80 surface=cobblestone", [2]float64{30, 30}},
		{"the worst of the road's states counts", "highway=tertiary surface=gravel smoothness=very_bad tracktype=grade2", [2]float64{20, 20}},
		{"an impassable road is closed", "highway=tertiary smoothness=impassable", [2]float64{0, 0}},
		{"an access for rescue alone is closed", "highway=service service=emergency_access", [2]float64{0, 0}},
		{"a road that is too narrow", "highway=tertiary maxwidth=1.8", [2]float64{0, 0}},
		{"a bridge that is too low", "highway=tertiary maxheight=1.9", [2]float64{0, 0}},
		{"a bridge that is too weak", "highway=tertiary maxweight=1.5", [2]float64{0, 0}},
		{"a bridge that is strong enough, in kilograms", "highway=tertiary maxweight=3500~kg", [2]float64{40, 40}},
		{"a road that reverses by the hour is closed", "highway=tertiary oneway=reversible", [2]float64{0, 0}},
		{"a one-way road", "highway=tertiary oneway=yes", [2]float64{40, 0}},
		{"a one-way road against its nodes", "highway=tertiary oneway=-1", [2]float64{0, 40}},
		{"a one-way road for bicycles alone", "highway=tertiary oneway:bicycle=yes", [2]float64{40, 40}},
		{"a one-way road for cars", "highway=tertiary oneway:motor_vehicle=yes", [2]float64{40, 0}},
		{"a roundabout is a one-way road", "highway=tertiary junction=roundabout", [2]float64{40, 0}},
		{"a ferry", "route=ferry", [2]float64{5, 5}},
		{"a ferry for pedestrians", "route=ferry motor_vehicle=no", [2]float64{0, 0}},
		{"a train that carries cars", "route=shuttle_train", [2]float64{10, 10}},
		{"a bridge that opens for ships", "highway=primary bridge=movable", [2]float64{5, 5}},
		{"a bridge that opens for ships and has a limit", "highway=primary bridge=movable maxspeed=50", [2]float64{40, 40}},
		{"a square", "highway=residential area=yes", [2]float64{0, 0}},
		{"stairs", "highway=steps motor_vehicle=yes", [2]float64{0, 0}},
		{"a track", "highway=track", [2]float64{0, 0}},
		{"a track that is open", "highway=track motor_vehicle=yes", [2]float64{10, 10}},
		{"a footway that is open to all is not open to cars", "highway=footway access=yes", [2]float64{0, 0}},
		{"works", "highway=construction construction=primary", [2]float64{0, 0}},
		{"works beside an open road", "highway=primary construction=trunk", [2]float64{65, 65}},
		{"rails that are laid in an open road", "highway=primary railway=construction", [2]float64{65, 65}},
		{"a road that is to be widened", "highway=primary construction=widening", [2]float64{65, 65}},
		{"a road that is proposed to be another", "highway=tertiary proposed=secondary", [2]float64{40, 40}},
		{"a road that is proposed", "highway=proposed proposed=secondary", [2]float64{0, 0}},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			if got := readSpeeds(t, Car, tt.tags); got != tt.want {
				t.Errorf("%s: got %v km/h, want %v", tt.tags, got, tt.want)
			}
		})
	}
}

func TestAPriorityMakesARoadAWorseChoiceAndNoSlower(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule, tags string
		want       [2]uint8 // priorities
	}{
		{"an alley", "service=alley", [2]uint8{50, 50}},
		{"a drive", "service=driveway", [2]uint8{50, 50}},
		{"an aisle between parked cars that is one-way", "service=parking_aisle oneway=yes", [2]uint8{50, 50}},
		{"one lane for both directions", "lanes=1", [2]uint8{50, 50}},
		{"one lane for one direction", "lanes=1 oneway=yes", [2]uint8{100, 100}},
		{"a narrow road", "width=3.5", [2]uint8{60, 60}},
		{"a narrow one-way road", "width=3.5 oneway=yes", [2]uint8{100, 100}},
		{"a road without markings", "lane_markings=no", [2]uint8{75, 75}},
		{"a side road", "side_road=yes", [2]uint8{80, 80}},
		{"the direction that gives way", "priority=forward", [2]uint8{100, 70}},
		{"the least of the road's factors counts", "priority=backward lanes=1", [2]uint8{50, 50}},
		{"signals that let directions pass in turn", "oneway=alternating", [2]uint8{40, 40}},
		{"a road like any other", "surface=asphalt", [2]uint8{100, 100}},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			for _, highway := range []string{"service", "unclassified", "residential", "tertiary", "primary"} {
				w, _ := ReadWay(newTags(t, "highway="+highway+" "+tt.tags))
				plain, _ := ReadWay(newTags(t, "highway="+highway))
				if got := w.Priority[Car]; got != tt.want {
					t.Errorf("%s %s: got %v, want %v", highway, tt.tags, got, tt.want)
				}
				for d, speed := range w.Speed[Car] {
					if speed > 0 && speed != plain.Speed[Car][d] {
						t.Errorf("%s %s: %d, want the speed of the road, %d", highway, tt.tags, speed, plain.Speed[Car][d])
					}
				}
				if w.Priority[Foot] != wholePriority {
					t.Errorf("%s %s: %v on foot", highway, tt.tags, w.Priority[Foot])
				}
			}
		})
	}
}

func TestAWayThatIsNoRoadIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, tags := range []string{
		"building=yes", "highway=bus_stop", "highway=raceway", "highway=proposed proposed=primary", "railway=rail",
		"highway=primary access=no", "highway=primary impassable=yes", "waterway=river name=Loire",
	} {
		if w, ok := ReadWay(newTags(t, tags)); ok {
			t.Errorf("%s: got %+v, want no road", tags, w)
		}
	}
}
