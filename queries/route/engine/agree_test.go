package engine

import (
	"errors"
	"math/rand/v2"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/osmpbf/osmtest"
)

// TestACellAndTheNearestAreTheRouteWhereverBoundsLie draws bounds next to all roads, those of pockets and islands too. In Bondy the
// border of the map cuts many streets.
func TestACellAndTheNearestAreTheRouteWhereverBoundsLie(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bondy", "monaco"} {
		e := open(t, osmtest.Path(t, name))
		for _, p := range []route.Profile{
			{Mode: route.Car, Optimization: route.Fastest}, {Mode: route.Car, Optimization: route.Shortest},
			{Mode: route.Foot, Optimization: route.Fastest}, {Mode: route.Bike, Optimization: route.Fastest, Avoid: route.Ferries},
		} {
			bounds := e.modes[p.Mode].drawAnywhere(rand.New(rand.NewPCG(7, 1)), 40)
			matrix, err := e.Matrix(t.Context(), route.MatrixQuery{Profile: p, Origins: bounds, Destinations: bounds})
			if err != nil {
				t.Fatal(err)
			}
			for i := range bounds {
				checkRow(t, e, p, bounds, i, &matrix)
			}
		}
	}
}

// checkRow compares a row of a matrix with the routes and the nearest from its origin. Where both bounds are near the main part there is
// a route.
func checkRow(t *testing.T, e *Engine, p route.Profile, bounds []route.Bound, origin int, m *route.Matrix) {
	t.Helper()
	nearest, err := e.Nearest(t.Context(), route.NearestQuery{Profile: p, Origin: bounds[origin], Destinations: bounds, Limit: len(bounds)})
	if err != nil {
		t.Fatal(err)
	}
	near := map[int]route.NearDestination{}
	for _, f := range nearest.Found {
		near[f.Index] = f
	}
	for j := range bounds {
		want := route.Route{Duration: route.Unreachable, Distance: route.Unreachable}
		a, err := e.Route(t.Context(), route.Query{Profile: p, Bounds: []route.Bound{bounds[origin], bounds[j]}})
		switch {
		case err == nil:
			want = a.Routes[0]
		case !errors.Is(err, route.ErrNoRoute) || e.modes[p.Mode].isNearMain(bounds[origin]) && e.modes[p.Mode].isNearMain(bounds[j]):
			t.Errorf("%s %s from %v to %v: %v", p.Mode, p.Optimization, bounds[origin].Point, bounds[j].Point, err)
		}
		f, isFound := near[j]
		isSame := m.Durations[origin][j] == want.Duration && m.Distances[origin][j] == want.Distance
		if !isSame || isFound != (err == nil) || isFound && (f.Duration != want.Duration || f.Distance != want.Distance) {
			t.Errorf("%s %s from %v to %v: matrix %v s, nearest %+v, route %v s, %v", p.Mode, p.Optimization, bounds[origin].Point, bounds[j].Point,
				m.Durations[origin][j], f, want.Duration, err)
		}
	}
}

func (m *modeEngine) isNearMain(b route.Bound) bool {
	_, ok := m.bestMain(b)
	return ok
}

// drawAnywhere draws positions within some metres of random edges, half of them of edges outside the main part.
func (m *modeEngine) drawAnywhere(r *rand.Rand, n int) (bounds []route.Bound) {
	for range 100_000 {
		edge := r.Uint32N(uint32(m.graph.Edges()))
		if len(bounds) == n {
			break
		}
		if m.graph.IsMain(edge) != (len(bounds)%2 == 0) {
			continue
		}
		s := m.graph.Segment[edge]
		p := cutLine(m.layer.AppendGeometry(nil, s>>1, s&1 == 1), r.Float64(), 1)[0]
		p.Lon, p.Lat = p.Lon+(r.Float64()-0.5)*2e-4, p.Lat+(r.Float64()-0.5)*2e-4
		bounds = append(bounds, route.Bound{Point: p})
	}
	return bounds
}
