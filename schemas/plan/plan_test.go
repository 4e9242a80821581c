package plan_test

import (
	"testing"

	"lieudit/schemas/plan"
)

// TestPlansAreThoseOfTheSpecification repeats section 8 of the specification, and the plan table for whatever it leaves open.
func TestPlansAreThoseOfTheSpecification(t *testing.T) {
	t.Parallel()
	type row struct {
		requests, most                                     int64
		sites, ceiling, referentials, keys                 int
		addresses, locations, routeTools, routeDirectBound bool
	}
	const trillion = 1_000_000_000_000
	want := map[plan.Name]row{
		"DISCOVERY": {20_000, 20_000, 0, 0, 0, 0, true, false, false, false},
		"STARTER":   {100_000, trillion, 200, 220, 5, 1, true, true, false, false},
		"GROWTH":    {500_000, trillion, 2_000, 2_200, 25, 5, true, true, true, false},
		"BUSINESS":  {2_000_000, trillion, 10_000, 11_000, 100, 20, true, true, true, true},
	}
	if len(plan.All()) != len(want) {
		t.Errorf("%d plans, want %d", len(plan.All()), len(want))
	}
	for name, w := range want {
		p, ok := plan.Lookup(name)
		got := row{
			p.DefaultQuota, p.MaxQuota, p.SiteCapacity, p.SiteCeiling(), p.MaxReferentials, p.MaxPublishableKeys,
			p.Allows(plan.Addresses), p.Allows(plan.Locations), p.Allows(plan.RouteTools), p.Allows(plan.RouteDirect),
		}
		if !ok || p.Name != name || got != w {
			t.Errorf("%s: %+v, want %+v", name, got, w)
		}
	}
}

func TestUnknownPlanIsNotFound(t *testing.T) {
	t.Parallel()
	for _, name := range []plan.Name{"", "growth", "GROWTH ", "PREMIUM"} {
		if p, ok := plan.Lookup(name); ok || p.Allows(plan.Addresses) {
			t.Errorf("Lookup(%q) = %+v, %v", name, p, ok)
		}
	}
}

func TestPlansAreOrderedBySize(t *testing.T) {
	t.Parallel()
	ordered := []plan.Name{"PREMIUM", plan.Discovery, plan.Starter, plan.Growth, plan.Business}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := a.IsAbove(b); got != (i > j) {
				t.Errorf("%s above %s: %v", a, b, got)
			}
		}
	}
}
