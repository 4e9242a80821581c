package routing

import (
	"slices"
	"testing"

	"lieudit/queries/route"
	"lieudit/schemas/body"
	"lieudit/schemas/geo"
)

func TestAPolylineIsOfFiveDecimals(t *testing.T) {
	t.Parallel()
	for want, points := range map[string][]geo.Point{
		"_p~iF~ps|U_ulLnnqC_mqNvxq`@": {{Lon: -120.2, Lat: 38.5}, {Lon: -120.95, Lat: 40.7}, {Lon: -126.453, Lat: 43.252}}, // the example of the format's description
		"??":                          {{}},
		"@???A@":                      {{Lat: -0.00001}, {Lat: -0.000011}, {Lon: -0.000005, Lat: 0}},
	} {
		if got := encodePolyline(points); got != want {
			t.Errorf("%v: got %q, want %q", points, got, want)
		}
	}
}

func TestABoxCrossesTheAntimeridianWhereTheWayDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		points []geo.Point
		want   []float64
	}{
		{nil, nil},
		{[]geo.Point{{Lon: 3, Lat: 44}}, []float64{3, 44, 3, 44}},
		{[]geo.Point{{Lon: 3.5, Lat: 44}, {Lon: 2, Lat: 45.1234567}, {Lon: 4, Lat: -1}}, []float64{2, -1, 4, 45.123457}},
		{[]geo.Point{{Lon: -1, Lat: 44}, {Lon: 1, Lat: 45}}, []float64{-1, 44, 1, 45}},
		{[]geo.Point{{Lon: 178, Lat: -17}, {Lon: 179.9, Lat: -16}, {Lon: -179.5, Lat: -18}}, []float64{178, -18, -179.5, -16}},
	} {
		if got := boundingBox(c.points); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.points, got, c.want)
		}
	}
}

func TestRequestsAreCountedByTwentyFive(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int64{1: 1, 2: 1, 25: 1, 26: 2, 48: 2, 50: 2, 51: 3, 624: 25, 625: 25} {
		if got := requestsFor(size); got != want {
			t.Errorf("%d: got %d, want %d", size, got, want)
		}
	}
}

func TestOnlyTheLastLegEndsAtTheDestination(t *testing.T) {
	t.Parallel()
	leg := route.Leg{Steps: []route.Step{
		{Maneuver: route.Maneuver{Type: route.Depart}}, {Maneuver: route.Maneuver{Type: route.Arrive, Modifier: route.Right}},
	}}
	ends := []string{
		"You have reached stop 1, on the right", "You have reached stop 2, on the right", "You have arrived: your destination is on the right",
	}
	for legs := 1; legs <= len(ends); legs++ {
		var got []string
		e := encoder{body.Drawing{Steps: true, Lang: "en", Geometry: noGeometry}}
		for _, shown := range e.path(route.Route{Legs: slices.Repeat([]route.Leg{leg}, legs)}).Legs {
			got = append(got, shown.Steps[len(shown.Steps)-1].Text)
		}
		if want := slices.Concat(ends[:legs-1], ends[2:]); !slices.Equal(got, want) {
			t.Errorf("%d legs: got %q, want %q", legs, got, want)
		}
	}
}
