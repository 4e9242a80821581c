package metering

import (
	"strings"
	"testing"
)

// The answers of one process are compared with the log's counts for it.
func TestAProcessWhoseCountsDifferIsAViolation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		counted, served, broken, open int64
		killed, ended                 bool
		want                          string // in the violation; empty: none
	}{
		"exact":                             {counted: 10, served: 10, ended: true},
		"served and not counted":            {counted: 9, served: 10, ended: true, want: "1 requests were served that the log does not count"},
		"counted without need":              {counted: 11, served: 10, ended: true, want: "billed without an answer"},
		"what a kill left unanswered":       {counted: 13, served: 10, broken: 3, killed: true},
		"more than a kill can have left":    {counted: 14, served: 10, broken: 3, killed: true, want: "no more than 3"},
		"refused, killed before the refund": {counted: 15, served: 10, broken: 3, open: 2, killed: true},
		"refused, not refunded, not killed": {counted: 12, served: 10, open: 2, ended: true, want: "billed without an answer"},
		"refused more than can have waited": {counted: 15, served: 10, open: 9, killed: true, want: "no more than 4"},
		"its end is not on the log":         {counted: 10, served: 10, want: "does not say so"},
	} {
		p := &process{name: "a process", key: "k", killed: c.killed}
		p.served.Store(c.served)
		p.broken.Store(c.broken)
		p.openRefunds.Store(c.open)
		totals := &logTotals{countedByKey: map[string]int64{"k": c.counted}, instanceByKey: map[string]string{"k": "i"}, endedInstances: map[string]bool{"i": c.ended}}
		var rep Report
		rep.addProcess(p, totals, 4)
		if got := strings.Join(rep.Violations, "; "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestTheCapHoldsForAllProcessesTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rep        Report
		maxCounted int64
		chaos      bool
		want       string
	}{
		"exact":                      {Report{Cap: 5, Served: 5, Answered: 9}, 5, false, ""},
		"served beyond it":           {Report{Cap: 5, Served: 6, Answered: 9}, 5, true, "6 requests were served"},
		"counted beyond it":          {Report{Cap: 5, Served: 5, Answered: 9}, 6, true, "counted 6 at once"},
		"refused below it":           {Report{Cap: 5, Served: 4, Answered: 9}, 4, false, "not exactly 5"},
		"below it after a kill":      {Report{Cap: 5, Served: 4, Answered: 9}, 5, true, ""},
		"a client without an answer": {Report{Cap: 5, Served: 5, Answered: 8}, 5, true, "8 requests were answered"},
	} {
		c.rep.checkTotals(c.maxCounted, 9, c.chaos)
		if got := strings.Join(c.rep.Violations, "; "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
