package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/isochrone"
	"lieudit/queries/route/osmpbf/osmtest"
	"lieudit/schemas/geo"
)

func TestAreasAgreeWithTheMatrix(t *testing.T) {
	t.Parallel()
	e := open(t, osmtest.Path(t, "monaco"))
	m, r := e.modes[route.Car], rand.New(rand.NewPCG(21, 1))
	const limit = 300.0
	reached, beyond, wrongInside := 0, 0, 0
	for range 10 {
		center, positions := m.drawBound(r), make([]route.Bound, 100)
		for i := range positions {
			positions[i] = m.drawBound(r)
		}
		area, err := e.Isochrone(t.Context(), route.IsochroneQuery{
			Profile: route.Profile{Mode: route.Car}, Center: center, Cost: route.ByDuration, Limits: []float64{limit},
		})
		if err != nil {
			t.Fatal(err)
		}
		matrix, err := e.Matrix(t.Context(), route.MatrixQuery{
			Profile: route.Profile{Mode: route.Car, Optimization: route.Fastest}, Origins: []route.Bound{center}, Destinations: positions,
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range positions {
			isInside := contains(area.Areas[0], p.Point)
			switch duration := matrix.Durations[0][i]; {
			case duration == route.Unreachable || duration > 1.1*limit:
				beyond++
				if isInside {
					wrongInside++
				}
			case duration < limit:
				reached++
				if !isInside {
					t.Errorf("from %v %v takes %.1f s and lies outside the area", center.Point, p.Point, duration)
				}
			}
		}
	}
	t.Logf("%d positions within reach, all inside; %d beyond, %d of them inside", reached, beyond, wrongInside)
	if 50*wrongInside > reached+beyond { // a road beyond may lie within two squares of one that is reached
		t.Errorf("%d of %d positions beyond reach lie inside", wrongInside, beyond)
	}
}

func TestRoadsReadWhileTheyAreDrawnMakeTheSameAreas(t *testing.T) {
	t.Parallel()
	e := open(t, osmtest.Path(t, "monaco"))
	m, r := e.modes[route.Car], rand.New(rand.NewPCG(41, 1))
	limits := []float64{60, 200, 400}
	for range 20 {
		roads := &reachedRoads{mode: m, whole: make([]uint8, m.layer.Segments())}
		roads.begin(graph.DurationUnit, limits)
		center, _ := m.snap(m.drawBound(r))
		p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
		if err := m.searcher.Reach(t.Context(), p, center.from, 500*graph.DurationUnit, false, roads.add); err != nil {
			t.Fatal(err)
		}
		read := roads.read()
		all := isochrone.NewRoads(roads.readWhole(), roads.limits) // also the way of roads around the globe
		if read.Box != all.Box {
			t.Errorf("the box is %v, want %v", read.Box, all.Box)
		}
		got, err1 := new(isochrone.Drawer).Areas(read, roads.limits, func(time.Duration) error { return nil })
		want, err2 := new(isochrone.Drawer).Areas(all, roads.limits, func(time.Duration) error { return nil })
		if diff := cmp.Diff(want, got); diff != "" || err1 != nil || err2 != nil {
			t.Fatalf("%v, %v: %s", err1, err2, diff)
		}
	}
}

// drawBound is a junction of a random road of the largest component.
func (m *modeEngine) drawBound(r *rand.Rand) route.Bound {
	for {
		edge := r.Uint32N(uint32(m.graph.Edges()))
		if s := m.graph.Segment[edge]; m.graph.IsMain(edge) {
			return route.Bound{Point: m.layer.AppendGeometry(nil, s>>1, s&1 == 1)[0]}
		}
	}
}

// contains reports whether a point lies in an area: a line from it to the east crosses rings an odd number of times.
func contains(a route.Area, p geo.Point) (isInside bool) {
	for _, polygon := range a {
		for _, ring := range polygon {
			for i := 1; i < len(ring); i++ {
				from, to := ring[i-1], ring[i]
				if (from.Lat > p.Lat) != (to.Lat > p.Lat) && p.Lon < from.Lon+(p.Lat-from.Lat)/(to.Lat-from.Lat)*(to.Lon-from.Lon) {
					isInside = !isInside
				}
			}
		}
	}
	return isInside
}
