package valhalla

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

func TestErrorsOfTheServerAreErrorsOfRouters(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]error{
		442: route.ErrNoRoute, 170: route.ErrNoRoute, 154: route.ErrNoRoute, 171: errOffRoad,
		150: errTooBig, 155: errTooBig, 0: route.ErrUnavailable, 106: route.ErrUnavailable, 499: route.ErrUnavailable,
	} {
		if err := (refusal{Code: code}).error(); !errors.Is(err, want) {
			t.Errorf("%d: got %v, want %v", code, err, want)
		}
	}
	if !errors.Is(errTooBig, route.ErrUnavailable) {
		t.Error("too much for the server is not unavailable")
	}
}

func TestNumbersOfRoadsAreNoNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"D 806": true, "A6b": true, "M 6007": true, "N7": true, "E 15": true, "RD 7": true, "VC12": true,
		"": false, "Rue D 806": false, "DN": false, "D": false, "ABCD 1": false, "8 Mai": false, "Rue": false, "A la Croix": false, " 7": false,
	} {
		if got := isRef(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	if name, ref := splitNames([]string{"D 40", "Route des Quartiers", "E 5", "Grande Rue"}); name != "Route des Quartiers" || ref != "D 40" {
		t.Errorf("got %q, %q", name, ref)
	}
}

func TestAProfileIsACosting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		profile route.Profile
		want    string
	}{
		{route.Profile{Mode: route.Car}, `{"costing":"auto","costing_options":{"auto":{}}}`},
		{route.Profile{Mode: route.Foot, Optimization: route.Shortest}, `{"costing":"pedestrian","costing_options":{"pedestrian":{"shortest":true}}}`},
		{route.Profile{Mode: route.Bike, Avoid: route.Ferries}, `{"costing":"bicycle","costing_options":{"bicycle":{"use_ferry":0}}}`},
		{route.Profile{Mode: route.Car, Avoid: route.Tolls | route.Motorways}, `{"costing":"auto","costing_options":{"auto":{"use_highways":0,"use_tolls":0}}}`},
	} {
		got, err := costingOf(c.profile)
		text, err2 := json.Marshal(got)
		if err != nil || err2 != nil || string(text) != c.want {
			t.Errorf("%+v: got %s, %v, want %s", c.profile, text, err, c.want)
		}
	}
	if _, err := costingOf(route.Profile{Mode: "boat"}); !errors.Is(err, route.ErrUnsupported) {
		t.Errorf("got %v, want %v", err, route.ErrUnsupported)
	}
}

// edge is a road some metres north of the bound of a test.
func edge(metres float64, name, class, use string) nearEdge {
	e := nearEdge{Lon: 2.5, Lat: 46.5 + metres/111_195}
	e.Info.Names = []string{name}
	e.Edge.Classification.Class, e.Edge.Classification.Use = class, use
	return e
}

func TestAPositionIsWhereItIsAndNoFerry(t *testing.T) {
	t.Parallel()
	street := edge(60, "Un", "residential", "road")
	for use, want := range map[string]string{"ramp": "Bretelle", "road": "Bretelle", "ferry": "Un"} {
		at := geo.Point{Lon: 2.5, Lat: 46.5}
		p, err := bestPlace(route.Bound{Point: at}, []nearEdge{edge(10, "Bretelle", "motorway", use), street})
		if err != nil || p.access.Street != want {
			t.Errorf("%s: got %+v, %v, want %q", use, p, err, want)
		}
	}
}

func TestABoundIsMovedOntoTheRoadOfTheLeastCost(t *testing.T) {
	t.Parallel()
	pocket := edge(5, "Cour", "residential", "road")
	few := 3
	pocket.InboundReach = &few
	tunnel := edge(2, "Tunnel", "primary", "road")
	tunnel.Edge.Tunnel = true
	far := edge(1200, "Loin", "residential", "road")
	for _, c := range []struct {
		rule   string
		street string
		edges  []nearEdge
		want   string
	}{
		{"the nearest", "", []nearEdge{edge(20, "Deux", "residential", "road"), edge(10, "Un", "residential", "road")}, "Un"},
		{"its own within a walk", "RUE DEUX", []nearEdge{edge(10, "Un", "residential", "road"), edge(8+route.OtherNameCost, "Rue Deux", "residential", "road")}, "Rue Deux"},
		{"another where its own is farther", "RUE DEUX", []nearEdge{edge(10, "Un", "residential", "road"), edge(12+route.OtherNameCost, "Rue Deux", "residential", "road")}, "Un"},
		{"no motorway", "", []nearEdge{edge(10, "A 6", "motorway", "road"), edge(60, "Un", "residential", "road")}, "Un"},
		{"no ramp", "", []nearEdge{edge(10, "Bretelle", "primary", "ramp"), edge(60, "Un", "residential", "road")}, "Un"},
		{"no tunnel", "", []nearEdge{tunnel, edge(60, "Un", "residential", "road")}, "Un"},
		{"a motorway where nothing else is near", "", []nearEdge{edge(10, "Autoroute", "motorway", "road"), edge(80, "Un", "residential", "road")}, "Autoroute"},
		{"no road that leads nowhere", "", []nearEdge{pocket, edge(300, "Un", "residential", "road")}, "Un"},
		{"nothing that is too far", "", []nearEdge{far}, ""},
		{"nothing", "", nil, ""},
	} {
		p, err := bestPlace(route.Bound{Point: geo.Point{Lon: 2.5, Lat: 46.5}, IsAddress: true, Street: c.street}, c.edges)
		if err != nil || p.access.Street != c.want || p.isOnRoad != (c.want != "") || p.access.IsOnOwn != (c.want == "Rue Deux") {
			t.Errorf("%s: got %+v, %v, want %q", c.rule, p, err, c.want)
		}
	}
}

// square is a ring around a position, counter-clockwise unless it is turned.
func square(lon, lat, half float64, isTurned bool) []geo.Point {
	west, east, south, north := lon-half, lon+half, lat-half, lat+half
	ring := []geo.Point{{Lon: west, Lat: south}, {Lon: east, Lat: south}, {Lon: east, Lat: north}, {Lon: west, Lat: north}, {Lon: west, Lat: south}}
	if isTurned {
		ring[1], ring[3] = ring[3], ring[1]
	}
	return ring
}

func TestRingsBecomePolygonsWithHoles(t *testing.T) {
	t.Parallel()
	area := arrangeRings([][]geo.Point{
		square(0, 0, 1, false), square(0, 0, 8, true), square(0, 0, 4, false), square(20, 0, 2, true), square(0, 6, 1, false), square(5, 5, 0, false),
	})
	if len(area) != 3 || len(area[0]) != 3 || len(area[1]) != 1 || len(area[2]) != 1 {
		t.Fatalf("got %v", area)
	}
	for _, polygon := range area {
		for i, ring := range polygon {
			if (signedArea(ring) > 0) != (i == 0) || ring[0] != ring[len(ring)-1] {
				t.Errorf("ring %d of %v turns the wrong way or is open", i, polygon)
			}
		}
	}
	if half := area[2][0][1].Lon; math.Abs(half) != 1 {
		t.Errorf("the island in the hole is %v", area[2])
	}
}

// FuzzAnswers reads anything as an answer to any request: an error is route.ErrUnavailable.
func FuzzAnswers(f *testing.F) {
	for _, e := range routertest.ReadRecording(f) {
		f.Add([]byte(e.Answer))
	}
	f.Add([]byte(`{"trip": {"legs": [{"shape": "", "maneuvers": [{"begin_shape_index": -1, "end_shape_index": 7}]}]}}`))
	f.Add([]byte(`{"features": [{"properties": {"contour": 2}, "geometry": {"type": "MultiPolygon", "coordinates": [[[[1, 2], [3], []]]]}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var r routeAnswer
		var m matrixAnswer
		var a areaAnswer
		var near []locatedBound
		var errs []error
		if routeserver.Decode(body, &r) == nil {
			_, err := readRoute(route.Query{Geometry: true, Steps: true}, r.Trip)
			errs = append(errs, err)
		}
		if routeserver.Decode(body, &m) == nil {
			table := &table{Matrix: routeserver.NewMatrix(2, 2)}
			errs = append(errs, table.store(routeserver.Block{Rows: []int{0, 1}, Columns: []int{1}}, m))
		}
		if routeserver.Decode(body, &a) == nil {
			_, err := a.areaOf(2)
			errs = append(errs, err)
		}
		if routeserver.Decode(body, &near) == nil {
			for _, n := range near {
				_, err := bestPlace(route.Bound{}, n.Edges)
				errs = append(errs, err)
			}
		}
		for _, err := range errs {
			if err != nil && !errors.Is(err, route.ErrUnavailable) {
				t.Fatal(err)
			}
		}
	})
}
