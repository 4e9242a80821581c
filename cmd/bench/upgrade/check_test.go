package upgrade

import (
	"strings"
	"testing"
)

func TestListsThatDifferAreViolations(t *testing.T) {
	t.Parallel()
	r := &run{}
	r.compareDigests("instance-2", map[string]string{"/accounts": "2 items, aa", "/keys": "1 items, bb"}, map[string]string{"/accounts": "2 items, aa"})
	if got := strings.Join(r.report.Violations, "; "); r.report.Compared != 1 || !strings.Contains(got, "instance-2 answers /keys") || len(r.report.Violations) != 1 {
		t.Errorf("%d lists are the same, violations: %s; want one of each", r.report.Compared, got)
	}
}
