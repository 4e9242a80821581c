package upgrade

import (
	"strings"
	"testing"
	"time"
)

func TestListsThatDifferAreViolations(t *testing.T) {
	t.Parallel()
	r := &run{}
	r.compareDigests("instance-2", map[string]string{"/accounts": "2 items, aa", "/keys": "1 items, bb"}, map[string]string{"/accounts": "2 items, aa"})
	if got := strings.Join(r.report.Violations, "; "); r.report.Compared != 1 || !strings.Contains(got, "instance-2 answers /keys") || len(r.report.Violations) != 1 {
		t.Errorf("%d lists are the same, violations: %s; want one of each", r.report.Compared, got)
	}
}

// An agency pays for its sub-clients: what they get counts towards its cap.
func TestAContractThatPassesItsCapOrNeverReachesItIsAViolation(t *testing.T) {
	t.Parallel()
	account := func(id, agency string, served, counted, spent int64) *metered {
		a := &metered{id: id, agency: agency, quota: 10, counted: counted}
		a.served.Store(served)
		a.spent.Store(spent)
		return a
	}
	for _, c := range []struct {
		rule     string
		accounts []*metered
		want     string // of the violation; "" if there is none
	}{
		{"an account at its cap", []*metered{account("a", "", 10, 10, 1)}, ""},
		{"an account that never reached it", []*metered{account("a", "", 10, 10, 0)}, "contract a: its cap was never reached"},
		{"an agency at its cap", []*metered{account("a", "", 4, 4, 0), account("b", "a", 6, 6, 1)}, ""},
		{"an agency whose clients were served too much", []*metered{account("a", "", 4, 4, 0), account("b", "a", 7, 6, 1)}, "contract a: 11 were served and 10 counted"},
		{"an agency whose clients were counted too much", []*metered{account("a", "", 4, 4, 0), account("b", "a", 6, 7, 1)}, "contract a: 10 were served and 11 counted"},
	} {
		r := &run{accounts: c.accounts}
		r.checkContracts()
		if got := strings.Join(r.report.Violations, "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.rule, got, c.want)
		}
	}
}

func TestTheUpgradeIsFinishedAfterALookAtTheFormat(t *testing.T) {
	t.Parallel()
	for running, want := range map[time.Duration]time.Duration{
		0: time.Second, time.Second: 0, 1500 * time.Millisecond: 4500 * time.Millisecond, 12 * time.Second: 4 * time.Second, 15 * time.Second: time.Second,
	} {
		if got := untilAfterLook(running); got != want {
			t.Errorf("after %v: %v, want %v", running, got, want)
		}
	}
}
