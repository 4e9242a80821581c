package upgrade

import (
	"strings"
	"testing"
)

func TestAPhaseIsCountedAsItWasAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase Phase
		want  string // in the violation; "": none
	}{
		"exact":                         {Phase{Cap: 5, Served: 5, Spent: 3, Counted: 5}, ""},
		"an answer was lost":            {Phase{Cap: 5, Served: 4, Spent: 3, Counted: 5, Cut: 1}, ""},
		"counted without an answer":     {Phase{Cap: 5, Served: 3, Spent: 3, Counted: 5, Cut: 1}, "lost their answer"},
		"served and not counted":        {Phase{Cap: 5, Served: 5, Spent: 3, Counted: 4}, "only 4 counted"},
		"served beyond the cap":         {Phase{Cap: 5, Served: 6, Spent: 3, Counted: 5}, "the cap is 5"},
		"counted beyond the cap":        {Phase{Cap: 5, Served: 5, Spent: 3, Counted: 6, Cut: 1}, "the cap is 5"},
		"a cap that nobody came across": {Phase{Cap: 5, Served: 2, Counted: 2}, "never reached"},
	} {
		if got := c.phase.violation(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestListsThatDifferAreViolations(t *testing.T) {
	t.Parallel()
	r := &run{}
	r.compareDigests("instance-2", map[string]string{"/accounts": "2 items, aa", "/keys": "1 items, bb"}, map[string]string{"/accounts": "2 items, aa"})
	if got := strings.Join(r.report.Violations, "; "); r.report.Compared != 1 || !strings.Contains(got, "instance-2 answers /keys") || len(r.report.Violations) != 1 {
		t.Errorf("%d lists are the same, violations: %s; want one of each", r.report.Compared, got)
	}
}
