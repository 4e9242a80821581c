package guide

import (
	"fmt"
	"strings"
	"testing"

	"lieudit/schemas/plan"
)

// TestTheGuideHasTheTableOfPlans holds the chapter on the first start to the table that the program works with.
func TestTheGuideHasTheTableOfPlans(t *testing.T) {
	t.Parallel()
	all, err := Chapters()
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, c := range all {
		if c.Name == "start" {
			text = c.Text
		}
	}
	row := func(name string, cell func(plan.Plan) string) {
		line := "| " + name + " |"
		for _, p := range plan.All() {
			line += " " + cell(p) + " |"
		}
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the chapter lacks %s", line)
		}
	}
	row("plan", func(p plan.Plan) string { return string(p.Name) })
	row("requests a month, unless an account has its own number", func(p plan.Plan) string { return thousands(int(p.DefaultQuota)) })
	row("active sites", func(p plan.Plan) string { return thousands(p.SiteCapacity) })
	row("referentials", func(p plan.Plan) string { return fmt.Sprint(p.MaxReferentials) })
	row("publishable keys", func(p plan.Plan) string { return fmt.Sprint(p.MaxPublishableKeys) })
	for name, service := range map[string]plan.Service{
		"addresses and communes": plan.Addresses, "sites": plan.Locations,
		"matrices, isochrones, the nearest, tours": plan.RouteTools, "routes": plan.RouteDirect,
	} {
		row(name, func(p plan.Plan) string {
			if p.Allows(service) {
				return "yes"
			}
			return "no"
		})
	}
}

// thousands writes a number as the tables of the guide do.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
