package engine

import (
	"math/rand/v2"
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/graph"
	"lieudit/queries/route/profile"
	"lieudit/queries/route/routertest"
	"lieudit/schemas/geo"
)

// TestAPositionOnAMotorwayStartsThere draws positions on motorways, as vehicles send theirs, half a metre wrong: a route from there
// begins on the motorway or on a ramp that joins it there, wherever it leads. Carriageways that leave the map are not asked: there
// the nearest road has to do.
func TestAPositionOnAMotorwayStartsThere(t *testing.T) {
	t.Parallel()
	checkMotorways(t, open(t, routertest.WriteTown(t)), 60)
}

func checkMotorways(t *testing.T, e *Engine, n int) {
	t.Helper()
	m, r := e.modes[route.Car], rand.New(rand.NewPCG(60, 1))
	var motorways []uint32
	for s := range uint32(m.layer.Segments()) {
		edge, backward := m.layer.SegmentEdges(s)
		if edge == graph.None {
			edge = backward
		}
		if road := m.layer.Road(s); road.Class == profile.Motorway && !road.IsLink && m.graph.IsMain(edge) {
			motorways = append(motorways, s)
		}
	}
	p := route.Profile{Mode: route.Car, Optimization: route.Fastest}
	routed := 0
	for range n {
		segment := motorways[r.IntN(len(motorways))]
		at := cutLine(m.layer.AppendGeometry(nil, segment, false), r.Float64(), 1)[0]
		at.Lon, at.Lat = at.Lon+(r.Float64()-0.5)*1e-5, at.Lat+(r.Float64()-0.5)*1e-5
		for _, target := range m.drawAnywhere(r, 4) {
			a, err := e.Route(t.Context(), route.Query{Profile: p, Bounds: []route.Bound{{Point: at}, target}, Geometry: true})
			if err != nil {
				continue // the target cannot be reached from anywhere
			}
			routed++
			if access := a.Accesses[0]; access.Distance > apartRange || !m.isOnMotorway(access.Point) {
				t.Errorf("from %v to %v: it begins at %+v", at, target.Point, access)
			}
		}
	}
	if routed < 2*n {
		t.Errorf("only %d routes are found", routed)
	}
}

// isOnMotorway reports whether the road at a position on the network is a motorway or a ramp of one.
func (m *modeEngine) isOnMotorway(p geo.Point) (isOn bool) {
	for _, r := range m.findRoads(route.Bound{Point: p}).roads {
		edge := r.edges[0]
		if edge == graph.None {
			edge = r.edges[1]
		}
		road := m.layer.Road(m.graph.Segment[edge] >> 1)
		isOn = isOn || r.access.Distance < 0.5 && (road.Class == profile.Motorway || road.IsLink)
	}
	return isOn
}
