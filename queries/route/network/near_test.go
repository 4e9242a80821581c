package network

import (
	"slices"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/schemas/geo"
)

func TestAPointThatFollowsItselfIsDroppedButTwoAreLeft(t *testing.T) {
	t.Parallel()
	a, b := geo.Point{Lon: 1}, geo.Point{Lon: 2}
	for _, tt := range []struct{ points, want []geo.Point }{
		{[]geo.Point{a, b}, []geo.Point{a, b}},
		{[]geo.Point{a, a, b, b, a}, []geo.Point{a, b, a}},
		{[]geo.Point{a, a}, []geo.Point{a, a}},
		{[]geo.Point{a, a, a}, []geo.Point{a, a}},
	} {
		before := []geo.Point{a}
		if got := dropRepeated(append(before, tt.points...), 1)[1:]; !slices.Equal(got, tt.want) {
			t.Errorf("%v: got %v, want %v", tt.points, got, tt.want)
		}
	}
}

func TestARoadHasTheFactsOfItsWay(t *testing.T) {
	t.Parallel()
	n := openTown(t, &town{grid: "abcdef", ways: []string{
		"ab highway=motorway_link name=Rue_Haute ref=D_1 toll=yes oneway=yes destination=Lyon", "bc highway=primary tunnel=yes junction=roundabout",
		"cd route=ferry", "de highway=service bridge=yes motor_vehicle=destination", "ef highway=residential"}})
	l := n.Layer(route.Car)
	got := map[string]Road{}
	for segment := range uint32(l.Segments()) {
		points := l.AppendGeometry(nil, segment, false)
		got[string(n.letterAt(points[0]))+string(n.letterAt(points[1]))] = l.Road(segment)
	}
	if r := got["ab"]; r.Name != "Rue Haute" || r.Ref != "D_1" || r.Destinations != "Lyon" || !r.IsLink || !r.HasToll || r.IsTunnel {
		t.Errorf("ab: %+v", r)
	}
	if r := got["bc"]; !r.IsTunnel || !r.IsRoundabout || r.Name != "" || r.IsBridge {
		t.Errorf("bc: %+v", r)
	}
	if r := got["cd"]; !r.IsFerry {
		t.Errorf("cd: %+v", r)
	}
	if r := got["de"]; !r.IsBridge || !r.IsRestricted {
		t.Errorf("de: %+v", r)
	}
	for segment := range uint32(l.Segments()) {
		forward, backward := l.SegmentEdges(segment)
		if isOneWay := l.Road(segment).IsLink || l.Road(segment).IsRoundabout; forward == graph.None || isOneWay != (backward == graph.None) {
			t.Errorf("%+v: edges %d and %d", l.Road(segment), forward, backward)
		}
	}
}

func TestAnEdgeCostsItsLengthItsSpeedAndItsSignals(t *testing.T) {
	t.Parallel()
	n := openTown(t, &town{grid: "abcdefgh", ways: []string{"abc highway=primary", "def highway=primary", "gh route=ferry duration=00:10"},
		nodes: []string{"b highway=traffic_signals"}})
	// 100 m at 65 km/h are 5.54 s; the ferry takes its 10 minutes.
	_, plain := n.way(t, route.Car, 'd', 'f')
	_, signals := n.way(t, route.Car, 'a', 'c')
	_, ferry := n.way(t, route.Car, 'g', 'h')
	if plain.Duration < 1100 || plain.Duration > 1115 || plain.Distance != 2000 {
		t.Errorf("200 m cost %v", plain)
	}
	if signals.Duration != plain.Duration+200 || ferry.Duration != 60_000 {
		t.Errorf("with signals %v, the ferry %v", signals, ferry)
	}
}

func TestKindsThatAreNotThereAreNotAvoided(t *testing.T) {
	t.Parallel()
	n := openTown(t, &town{grid: " b \na c\n d ", ways: []string{"abc highway=primary toll=yes", "adc highway=service"}})
	l := n.Layer(route.Car)
	metric := func(avoid route.Avoid) any {
		m, ok := l.Metric(route.Profile{Mode: route.Car, Optimization: route.Fastest, Avoid: avoid})
		if !ok {
			t.Errorf("no metric that avoids %d", avoid)
		}
		return m
	}
	if metric(0) != metric(route.Ferries) || metric(route.Tolls) != metric(route.Tolls|route.Motorways) || metric(0) == metric(route.Tolls) {
		t.Error("metrics are not shared by what is there")
	}
}
