package engine

import (
	"slices"
	"strings"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/guidance"
	"lieudit/schemas/geo"
)

func TestExitsAreCountedFromTheLeftWhereTrafficKeepsLeft(t *testing.T) {
	t.Parallel()
	london, paris := [2]int32{-1_000_000, 515_000_000}, [2]int32{23_500_000, 488_500_000}
	// n, e and s lie north, east and south of a roundabout abcd, which is entered from the west.
	grid := "      n\n\n\n      c\n\nw   b   d   e\n\n      a\n\n\n      s"
	arms := "wb highway=residential name=West%s|cn highway=residential name=North%s|de highway=residential name=East%s|as highway=residential name=South%s"
	for _, tt := range []struct {
		rule      string
		origin    [2]int32
		ring, tag string
		to        byte
		want      string
	}{
		{"Paris, the last", paris, "badcb", "", 'n', "At the roundabout, take the third exit onto North"},
		{"Paris, the first", paris, "badcb", "", 's', "At the roundabout, take the first exit onto South"},
		{"London, the first", london, "bcdab", "", 'n', "At the roundabout, take the first exit onto North"},
		{"London, straight on", london, "bcdab", "", 'e', "At the roundabout, take the second exit onto East"},
		{"London, the last", london, "bcdab", "", 's', "At the roundabout, take the third exit onto South"},
		{"a mini roundabout in London", london, "", "", 'n', "At the roundabout, take the first exit onto North"},
		{"the last of a mini roundabout in London", london, "", "", 's', "At the roundabout, take the third exit onto South"},
		{"a mini roundabout in Paris", paris, "", "", 'n', "At the roundabout, take the third exit onto North"},
		{"a tag in Paris", paris, "", " driving_side=left", 'n', "At the roundabout, take the first exit onto North"},
		{"a tag in London", london, "", " driving_side=right", 'n', "At the roundabout, take the third exit onto North"},
	} {
		w := &town{grid: grid, origin: tt.origin, ways: strings.Split(strings.ReplaceAll(arms, "%s", tt.tag), "|")}
		if tt.ring != "" {
			w.ways = append(w.ways, tt.ring+" highway=residential junction=roundabout"+tt.tag)
		} else {
			w.grid = "      n\n\n\n\n\nw     x     e\n\n\n\n\n      s"
			w.nodes = []string{"x highway=mini_roundabout"}
			for i, arm := range w.ways {
				w.ways[i] = strings.NewReplacer("wb ", "wx ", "cn ", "xn ", "de ", "xe ", "as ", "xs ").Replace(arm)
			}
		}
		if got := stepsBetween(t, open(t, w.writeMap(t)), w, route.Car, guidance.English, 'w', tt.to); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: got %q, want %q", tt.rule, got, tt.want)
		}
	}
}

func TestATurnAcrossTheOncomingTrafficTakesLonger(t *testing.T) {
	t.Parallel()
	grid := "      n\n\n\n\n\nw     x     e\n\n\n\n\n      s"
	for name, origin := range map[string][2]int32{"London": {-1_000_000, 515_000_000}, "Paris": {23_500_000, 488_500_000}} {
		w := &town{grid: grid, origin: origin, ways: []string{"wx highway=residential", "xn highway=residential", "xe highway=residential", "xs highway=residential"}}
		e := open(t, w.writeMap(t))
		durationTo := func(to byte) float64 {
			q := route.Query{Profile: route.Profile{Mode: route.Car, Optimization: route.Fastest}}
			for _, letter := range []byte{'w', to} {
				lon, lat, _ := w.position(letter)
				q.Bounds = append(q.Bounds, route.Bound{Point: geo.Point{Lon: float64(lon) / 1e7, Lat: float64(lat) / 1e7}})
			}
			a, err := e.Route(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			return a.Routes[0].Duration
		}
		left, right := durationTo('n'), durationTo('s')
		if keepsLeft := name == "London"; (left < right) != keepsLeft {
			t.Errorf("%s: %.1f s to the left, %.1f s to the right", name, left, right)
		}
	}
}

func TestALaneForBicyclesIsOnTheSideOfItsTraffic(t *testing.T) {
	t.Parallel()
	for name, origin := range map[string][2]int32{"London": {-1_000_000, 515_000_000}, "Paris": {23_500_000, 488_500_000}} {
		// The direct way may be ridden along its lane alone.
		w := &town{grid: "a b c\n d e", origin: origin, ways: []string{
			"abc highway=busway foot=no cycleway:left=lane", "adec highway=residential"}}
		e := open(t, w.writeMap(t))
		distance := func(from, to byte) float64 {
			q := route.Query{Profile: route.Profile{Mode: route.Bike, Optimization: route.Shortest}}
			for _, letter := range []byte{from, to} {
				lon, lat, _ := w.position(letter)
				q.Bounds = append(q.Bounds, route.Bound{Point: geo.Point{Lon: float64(lon) / 1e7, Lat: float64(lat) / 1e7}})
			}
			a, err := e.Route(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			return a.Routes[0].Distance
		}
		along, back := distance('a', 'c'), distance('c', 'a')
		if keepsLeft := name == "London"; (along < back) != keepsLeft || along == back {
			t.Errorf("%s: %.0f m along the road, %.0f m back", name, along, back)
		}
	}
}
