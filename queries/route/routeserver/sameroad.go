package routeserver

import "lieudit/queries/route"

// MarkSameRoads sets Maneuver.IsSameRoad of the steps of a leg: servers name the road of each step, but do not say whether it is
// the same as before.
func MarkSameRoads(steps []route.Step) {
	for i := 1; i < len(steps); i++ {
		before, s := &steps[i-1], &steps[i]
		isSame := s.Name != "" && s.Name == before.Name || s.Name == "" && s.Ref != "" && s.Ref == before.Ref
		s.Maneuver.IsSameRoad = isSame && s.Maneuver.Type != route.Arrive
	}
}
