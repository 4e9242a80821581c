package routeserver

import (
	"testing"

	"lieudit/queries/route"
)

func TestARoadIsTheSameByItsNameOrElseByItsNumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule        string
		before, now route.Step
		want        bool
	}{
		{"the same name", route.Step{Name: "Rue Foch"}, route.Step{Name: "Rue Foch", Ref: "D 12"}, true},
		{"another name", route.Step{Name: "Rue Foch", Ref: "D 12"}, route.Step{Name: "Rue Hoche", Ref: "D 12"}, false},
		{"no names, the same number", route.Step{Ref: "D 12"}, route.Step{Ref: "D 12"}, true},
		{"a name that begins", route.Step{Ref: "D 12"}, route.Step{Name: "Rue Foch", Ref: "D 12"}, false},
		{"neither name nor number", route.Step{}, route.Step{}, false},
		{"the end", route.Step{Name: "Rue Foch"}, route.Step{Name: "Rue Foch", Maneuver: route.Maneuver{Type: route.Arrive}}, false},
	} {
		steps := []route.Step{c.before, c.now}
		MarkSameRoads(steps)
		if got := steps[1].Maneuver.IsSameRoad; got != c.want || steps[0].Maneuver.IsSameRoad {
			t.Errorf("%s: got %t, want %t", c.rule, got, c.want)
		}
	}
}
