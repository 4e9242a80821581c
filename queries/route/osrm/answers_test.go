package osrm

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/routertest"
	"lieudit/queries/route/routeserver"
	"lieudit/schemas/geo"
)

// step is a step of an answer in a test.
func step(kind, modifier, name string, exit int) stepAnswer {
	return stepAnswer{Distance: 100, Duration: 10, Name: name, Mode: "driving",
		Maneuver: maneuver{Type: kind, Modifier: modifier, Exit: exit, Location: []float64{2.5, 46.5}},
		points:   []geo.Point{{Lon: 2.5, Lat: 46.5}, {Lon: 2.5, Lat: 46.501}}}
}

func TestManeuversOfOSRMAreThoseOfRoutes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, modifier string
		want           route.Maneuver
	}{
		{"depart", "left", route.Maneuver{Type: route.Depart}},
		{"arrive", "right", route.Maneuver{Type: route.Arrive}},
		{"turn", "sharp left", route.Maneuver{Type: route.Turn, Modifier: route.SharpLeft}},
		{"end of road", "right", route.Maneuver{Type: route.Turn, Modifier: route.Right}},
		{"new name", "straight", route.Maneuver{Type: route.Continue, Modifier: route.Straight}},
		{"continue", "uturn", route.Maneuver{Type: route.UTurn, Modifier: route.Backwards}},
		{"turn", "uturn", route.Maneuver{Type: route.UTurn, Modifier: route.Backwards}},
		{"fork", "slight right", route.Maneuver{Type: route.Fork, Modifier: route.SlightRight}},
		{"on ramp", "slight left", route.Maneuver{Type: route.OnRamp, Modifier: route.SlightLeft}},
		{"off ramp", "right", route.Maneuver{Type: route.OffRamp, Modifier: route.Right}},
		{"merge", "slight left", route.Maneuver{Type: route.Merge, Modifier: route.SlightLeft}},
		{"roundabout", "right", route.Maneuver{Type: route.Roundabout, Exit: 2}},
		{"rotary", "", route.Maneuver{Type: route.Roundabout, Exit: 2}},
		{"roundabout turn", "left", route.Maneuver{Type: route.Roundabout, Exit: 2}},
		{"of a later release", "left", route.Maneuver{Type: route.Continue, Modifier: route.Left}},
	} {
		c.want.Point = geo.Point{Lon: 2.5, Lat: 46.5}
		steps, err := readSteps([]stepAnswer{step(c.kind, c.modifier, "", 2)})
		if err != nil || len(steps) != 1 || steps[0].Maneuver != c.want {
			t.Errorf("%s %s: got %+v, %v, want %+v", c.kind, c.modifier, steps, err, c.want)
		}
	}
}

func TestARoundaboutIsOneStep(t *testing.T) {
	t.Parallel()
	steps, err := readSteps([]stepAnswer{
		step("roundabout", "right", "Place Ronde", 3), step("exit roundabout", "right", "Rue d'Aval", 3), step("arrive", "", "Rue d'Aval", 0),
	})
	if err != nil || len(steps) != 2 {
		t.Fatalf("got %+v, %v", steps, err)
	}
	s := steps[0]
	if s.Name != "Rue d'Aval" || s.Distance != 200 || s.Duration != 20 || s.Maneuver.Exit != 3 || s.Maneuver.Type != route.Roundabout {
		t.Errorf("got %+v", s)
	}
}

func TestAFerryIsBoardedOnce(t *testing.T) {
	t.Parallel()
	first, second, after := step("notification", "", "Bac", 0), step("turn", "left", "Bac", 0), step("notification", "", "Rue", 0)
	first.Mode, second.Mode = ferryMode, ferryMode
	steps, err := readSteps([]stepAnswer{first, second, after})
	if err != nil || len(steps) != 3 {
		t.Fatalf("got %+v, %v", steps, err)
	}
	a, b, c := steps[0].Maneuver.Type, steps[1].Maneuver.Type, steps[2].Maneuver.Type
	if a != route.TakeFerry || b != route.Turn || c != route.Continue {
		t.Errorf("got %s, %s, %s", a, b, c)
	}
}

func TestDestinationsAreWithoutTheNumbersOfRoads(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"A 6: Lyon, Grenoble": "Lyon, Grenoble", "Lyon": "Lyon", "": "", "A 6, A 7: Lyon": "Lyon"} {
		if got := destinationsOf(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestAClassIsMeasuredFromWhereItBegins(t *testing.T) {
	t.Parallel()
	at := func(lat float64, classes ...string) intersection {
		return intersection{Location: []float64{2.5, lat}, Classes: classes}
	}
	s := stepAnswer{Distance: 400}
	for _, lat := range []float64{46.5, 46.501, 46.502, 46.504} {
		s.points = append(s.points, geo.Point{Lon: 2.5, Lat: lat})
	}
	for _, c := range []struct {
		intersections []intersection
		want          float64
	}{
		{[]intersection{at(46.5), at(46.501, "toll"), at(46.502)}, 100},
		{[]intersection{at(46.5, "toll"), at(46.502)}, 200},
		{[]intersection{at(46.5), at(46.502, "toll", "motorway")}, 200},
		{[]intersection{at(46.5, "toll"), at(46.502, "toll")}, 400},
		{[]intersection{at(46.5, "motorway"), at(46.502)}, 0},
		{nil, 0},
	} {
		s.Intersections = c.intersections
		if got := s.classDistance("toll"); math.Abs(got-c.want) > 0.1 {
			t.Errorf("%+v: got %.1f m, want %.1f", c.intersections, got, c.want)
		}
	}
}

func TestACellALittleBelowZeroIsWhatARouteHas(t *testing.T) {
	t.Parallel()
	at := []waypoint{{Location: []float64{2.5, 46.5}}}
	for _, c := range []struct {
		duration, distance         float64
		wantDuration, wantDistance float64
		wantErr                    error
	}{
		{duration: 0, distance: -0.4, wantDuration: 0, wantDistance: 0.4},
		{duration: -0.1, distance: -0.1, wantDuration: 0, wantDistance: 0.1},
		{duration: 12.5, distance: 140, wantDuration: 12.5, wantDistance: 140},
		{duration: 0, distance: -10.1, wantErr: route.ErrUnavailable},
		{duration: -1.1, distance: 5, wantErr: route.ErrUnavailable},
	} {
		places := []place{{at: geo.Point{Lon: 2.5, Lat: 46.5}}}
		m := newTable(nil, places, places)
		err := m.store(routeserver.Block{Rows: []int{0}, Columns: []int{0}}, answer{
			Sources: at, Destinations: at, Durations: [][]*float64{{&c.duration}}, Distances: [][]*float64{{&c.distance}},
		})
		if !errors.Is(err, c.wantErr) {
			t.Errorf("%v s, %v m: got %v, want %v", c.duration, c.distance, err, c.wantErr)
		}
		if duration, distance := m.Durations[0][0], m.Distances[0][0]; err == nil && (duration != c.wantDuration || distance != c.wantDistance) {
			t.Errorf("%v s, %v m: got %v s, %v m, want %v s, %v m", c.duration, c.distance, duration, distance, c.wantDuration, c.wantDistance)
		}
	}
}

// FuzzAnswer reads anything as an answer: an error is route.ErrUnavailable, and what is read is true of the question.
func FuzzAnswer(f *testing.F) {
	for _, e := range routertest.ReadRecording(f) {
		f.Add([]byte(e.Answer))
	}
	f.Add([]byte(`{"code": "Ok", "routes": [{"legs": [{"steps": [{"geometry": "", "maneuver": {"location": []}}]}]}], "waypoints": [{}, {}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var a answer
		if json.Unmarshal(body, &a) != nil {
			return
		}
		places := make([]place, 3)
		read, err := readAnswer(route.Query{Bounds: make([]route.Bound, 3), Geometry: true, Steps: true, Alternatives: 1}, places, a)
		if err != nil && !errors.Is(err, route.ErrUnavailable) || len(read.Routes) > 2 {
			t.Fatalf("%d routes, %v", len(read.Routes), err)
		}
		table := newTable(nil, places, places[:2])
		if err := table.store(routeserver.Block{Rows: []int{0, 2}, Columns: []int{1}}, a); err != nil && !errors.Is(err, route.ErrUnavailable) {
			t.Fatal(err)
		}
	})
}
