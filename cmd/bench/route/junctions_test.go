package route

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/engine"
	"lieudit/queries/route/network"
	"lieudit/queries/route/routertest"
	"lieudit/schemas/geo"
)

// The cost of one of our own routes equals the duration in its answer.
func TestTheReckoningOfAnOwnRouteIsItsDuration(t *testing.T) {
	t.Parallel()
	file, path := routertest.WriteTown(t), filepath.Join(t.TempDir(), "network")
	if _, err := network.Build(t.Context(), path, file, network.Options{}); err != nil {
		t.Fatal(err)
	}
	n, err := network.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	own, ways := engine.New(n), newWayReader(n.Layer(route.Car))
	q := &questions{layer: n.Layer(route.Car), random: rand.New(rand.NewPCG(3, 3))}
	understood := 0
	for range 300 {
		bounds := q.bounds(2)
		a, err := own.Route(t.Context(), route.Query{Profile: car, Bounds: bounds, Geometry: true})
		if err != nil {
			t.Fatal(err)
		}
		r := ways.reckon(a.Routes[0].Geometry)
		if !r.isOpen { // it begins with a U-turn at the end of a road, or has no length
			continue
		}
		understood++
		if want := a.Routes[0].Duration; math.Abs(r.duration()-want) > 0.3 {
			t.Errorf("from %v to %v: got %.2f s, want %.2f", bounds[0].Point, bounds[1].Point, r.duration(), want)
		}
	}
	if understood < 280 {
		t.Errorf("%d of 300 routes are understood", understood)
	}
}

func TestJunctionsAreDrawnWithAOneWayStreetAndTargetsWithout(t *testing.T) {
	t.Parallel()
	roads := drawnRoads(
		"00 10 20 highway=residential", "10 11 highway=residential oneway=yes", "20 21 highway=residential", "20 30 highway=residential",
		"30 31 highway=footway oneway=yes", "30 40 highway=residential",
	)
	pairs := roads.drawJunctionPairs(rand.New(rand.NewPCG(1, 1)), 10)
	if len(pairs) != 2*targetsOfJunction {
		t.Fatalf("got %d pairs, want those of one junction", len(pairs))
	}
	targets := map[geo.Point]bool{}
	for i, p := range pairs {
		junction, target := p[i%2], p[1-i%2]
		if junction != at("10") {
			t.Errorf("pair %d: got %v", i, p)
		}
		targets[target] = true
	}
	if len(targets) != 2 || !targets[at("10")] || !targets[at("20")] {
		t.Errorf("got targets %v", targets)
	}
}

func TestJunctionsAreCountedByTheirSlowestRoute(t *testing.T) {
	t.Parallel()
	var pairs []answeredPair
	for junction := range 3 {
		for i := range 2 * targetsOfJunction {
			p := answeredPair{answers: [3]route.Answer{answering("00 10", 1000, 100), answering("00 10", 1000, 100), answering("00 10", 1000, 100)}}
			if i == 2*junction { // one route from each
				p.answers[0].Routes[0].Duration += 20 * float64(junction)
			}
			if i == 1 && junction == 2 { // one to the last, for which OSRM starts elsewhere
				p.answers[0].Routes[0].Duration += 10
				p.answers[1].Accesses[0].Lat++
			}
			pairs = append(pairs, p)
		}
	}
	for i, want := range []map[string]float64{
		{"junctions": 3, "over 30 s slower": 1, "over 5 s, between the same ends": 2, "over 30 s, between the same ends": 1, "": 2},
		{"junctions": 3, "over 30 s slower": 0, "over 5 s, between the same ends": 0, "over 30 s, between the same ends": 0, "": 1},
	} {
		f := junctionFigures(pairs)[i]
		f.Extra[""] = f.Value
		for name, n := range want {
			if f.Extra[name] != n {
				t.Errorf("%s, %q: got %v, want %v", f.Label("a junction is the"), name, f.Extra[name], n)
			}
		}
	}
}
