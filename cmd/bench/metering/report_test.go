package metering

import (
	"strings"
	"testing"

	"lieudit/schemas/body"
)

// newProcess returns a process with a tally of one account, "a".
func newProcess(killed bool) (*process, *tally) {
	t := &tally{key: "k"}
	return &process{name: "a process", killed: killed, tallies: []*tally{t}}, t
}

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
		p, answers := newProcess(c.killed)
		answers.served.Store(c.served)
		answers.broken.Store(c.broken)
		answers.openRefunds.Store(c.open)
		totals := &logTotals{countedByKey: map[string]int64{"k": c.counted}, instanceByKey: map[string]string{"k": "i"}, endedInstances: map[string]bool{"i": c.ended}}
		var rep Report
		rep.addProcess(p, []*account{{id: "a"}}, totals, 4)
		checkViolations(t, name, rep, c.want)
	}
}

// What one account has too much does not make up for what another one has too little.
func TestEachAccountOfAProcessIsCheckedAlone(t *testing.T) {
	t.Parallel()
	p := &process{name: "a process", tallies: []*tally{{key: "k"}, {key: "l"}}}
	for _, answers := range p.tallies {
		answers.served.Store(10)
	}
	totals := &logTotals{countedByKey: map[string]int64{"k": 11, "l": 9}}
	var rep Report
	rep.addProcess(p, []*account{{id: "a"}, {id: "b", number: 1}}, totals, 4)
	checkViolations(t, "a", rep, "a process, a: 1 requests are billed without an answer")
	checkViolations(t, "b", rep, "a process, b: 1 requests were served that the log does not count")
}

func checkViolations(t *testing.T, name string, rep Report, want string) {
	t.Helper()
	if got := strings.Join(rep.Violations, "; "); want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
}

func TestTheCapHoldsForAllProcessesTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sum   Contract
		chaos bool
		want  string
	}{
		"exact":                      {Contract{Served: 5, Refused: 4, MaxCounted: 5}, false, ""},
		"served beyond it":           {Contract{Served: 6, Refused: 3, MaxCounted: 5}, true, "6 requests were served"},
		"counted beyond it":          {Contract{Served: 5, Refused: 4, MaxCounted: 6}, true, "counted 6 at once"},
		"served below it":            {Contract{Served: 4, Refused: 5, MaxCounted: 5}, false, "not exactly 5"},
		"below it after a kill":      {Contract{Served: 4, Refused: 5, MaxCounted: 5}, true, ""},
		"refused below it":           {Contract{Served: 4, Refused: 5, MaxCounted: 4}, true, "5 requests were refused"},
		"refused early":              {Contract{Served: 5, Refused: 4, MaxCounted: 5, Early: 2}, true, "2 requests were refused although"},
		"a client without an answer": {Contract{Served: 5, Refused: 3, MaxCounted: 5}, true, "8 requests were answered"},
	} {
		one := newContracts(Options{Contracts: 1, Cap: 5, Requests: 9})[0]
		c.sum.ID, c.sum.Cap = one.id, one.cap
		var rep Report
		rep.addContract(c.sum, one, c.chaos)
		checkViolations(t, name, rep, c.want)
	}
}

// The agency may have 40 requests with its sub-clients, of which the first may have 5, the second 10.
func TestAnAgencyAndItsSubClientsHaveCapsOfTheirOwn(t *testing.T) {
	t.Parallel()
	contracts := newContracts(Options{Contracts: 2, Cap: 40, Requests: 80})
	agency := contracts[1]
	exact := []Contract{{Served: 12, Refused: 8, MaxCounted: 40}, {Served: 5, Refused: 15, MaxCounted: 5}, {Served: 10, Refused: 10, MaxCounted: 10}, {Served: 13, Refused: 7, MaxCounted: 13}}
	for name, c := range map[string]struct {
		change func(accounts []Contract)
		want   string
	}{
		"exact":                    {func([]Contract) {}, ""},
		"a sub-client beyond it":   {func(a []Contract) { a[1].Served, a[3].Served = 6, 12 }, "client-1: 6 requests were served, the cap is 5"},
		"counted beyond it":        {func(a []Contract) { a[2].MaxCounted = 11 }, "client-2: the log counted 11 at once"},
		"all together beyond it":   {func(a []Contract) { a[0].Served, a[0].Refused = 13, 7 }, "agency: 41 requests were served"},
		"all together below it":    {func(a []Contract) { a[0].Served, a[0].Refused = 11, 9 }, "agency: 39 requests were served, not exactly 40"},
		"a sub-client, too early":  {func(a []Contract) { a[0].MaxCounted, a[1].MaxCounted = 39, 4 }, "client-1: 15 requests were refused"},
		"refused by the agency's":  {func(a []Contract) { a[3].MaxCounted = 12 }, ""},
		"a sub-client, no other":   {func(a []Contract) { a[0].Refused, a[3].Refused, a[0].Served, a[0].MaxCounted = 0, 0, 11, 39 }, "agency: 39 requests were served, not exactly 40"},
		"a request without answer": {func(a []Contract) { a[3].Refused-- }, "agency: 79 requests were answered, 80 were sent"},
	} {
		sum := Contract{ID: agency.id, Cap: agency.cap}
		for n, one := range exact {
			one.ID, one.Cap = agency.accounts[n].id, agency.accounts[n].quota
			sum.Accounts = append(sum.Accounts, one)
		}
		c.change(sum.Accounts)
		for _, one := range sum.Accounts {
			sum.Served, sum.Refused = sum.Served+one.Served, sum.Refused+one.Refused
		}
		sum.MaxCounted = sum.Accounts[0].MaxCounted
		var rep Report
		rep.addContract(sum, agency, false)
		checkViolations(t, name, rep, c.want)
		if strings.Contains(name, "no other") && strings.Contains(strings.Join(rep.Violations, "; "), "refused") {
			t.Errorf("%s: %q, but only sub-clients with used quotas were refused", name, rep.Violations)
		}
	}
}

// With two connections, one more request may be counted than was answered, or lost, when a refusal is sent, and one when it comes.
func TestARefusalIsEarlyWhileAPartOfEachQuotaIsLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		served, unanswered [4]int64
		wantEarly          [4]bool // by account: the agency, and its sub-clients with 5, 10 and 40
	}{
		"nothing used":      {[4]int64{}, [4]int64{}, [4]bool{true, true, true, true}},
		"a quota used":      {[4]int64{0, 3, 0, 0}, [4]int64{}, [4]bool{true, false, true, true}},
		"perhaps used":      {[4]int64{0, 1, 8, 0}, [4]int64{0, 2, 0, 0}, [4]bool{true, false, false, true}},
		"the agency's used": {[4]int64{20, 0, 0, 17}, [4]int64{1, 0, 0, 0}, [4]bool{}},
	} {
		agency := newContracts(Options{Contracts: 2, Cap: 40, Requests: 80})[1]
		for n, a := range agency.accounts {
			a.served.Store(c.served[n])
			a.unanswered.Store(c.unanswered[n])
		}
		for n, a := range agency.accounts {
			if got := !a.mayBeExhausted(2); got != c.wantEarly[n] {
				t.Errorf("%s, %s: early %v, want %v", name, a.id, got, c.wantEarly[n])
			}
		}
	}
}

// Every request of a plan is taken once, and each account sends as many as it is said to.
func TestAccountsSendTheirShareOfTheRequests(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Contracts: 1, Cap: 1, Requests: 3}, {Contracts: 4, Cap: 100, Requests: 150}, {Contracts: 3, Cap: 7, Requests: 11}} {
		numbers := map[int]bool{}
		for _, c := range newContracts(o) {
			sent := map[*account]int64{}
			for a := c.takeRequest(); a != nil; a = c.takeRequest() {
				sent[a]++
			}
			var all int64
			for _, a := range c.accounts {
				if sent[a] != a.requests || numbers[a.number] {
					t.Errorf("%+v: %s, number %d: sent %d, want %d", o, a.id, a.number, sent[a], a.requests)
				}
				numbers[a.number], all = true, all+a.requests
			}
			if all != o.Requests || c.cap > o.Cap || c.cap < 1 {
				t.Errorf("%+v: %s has a cap of %d and sends %d", o, c.id, c.cap, all)
			}
		}
	}
}

func TestAReconciliationThatDiffersFromTheLogIsAViolation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found  body.Reconciliation
		billed map[string]int64
		want   string
	}{
		"agrees":               {body.Reconciliation{Requests: 10, Unanswered: []body.Unanswered{{InstanceID: "killed", Requests: 1}}}, map[string]int64{"k": 10}, ""},
		"a difference":         {body.Reconciliation{Requests: 10, Differences: []body.UsageDifference{{Kind: "ligne"}}}, map[string]int64{"k": 10}, "ligne"},
		"too few":              {body.Reconciliation{Requests: 9}, map[string]int64{"k": 10}, "reconciles 9 requests, the log counts 10"},
		"billed too much":      {body.Reconciliation{Requests: 10}, map[string]int64{"k": 11}, "bills 11 requests with key k"},
		"billed for no reason": {body.Reconciliation{Requests: 10}, map[string]int64{"k": 10, "l": 1}, "with key l"},
		"one that still runs":  {body.Reconciliation{Requests: 10, Unanswered: []body.Unanswered{{InstanceID: "stopped", Requests: 1}}}, map[string]int64{"k": 10}, "which was not killed"},
	} {
		rep := Report{Processes: []Process{{InstanceID: "killed", Killed: true}, {InstanceID: "stopped"}}}
		rep.checkReconciliation(reconciliation{"instance 1", c.found, c.billed}, &logTotals{countedByKey: map[string]int64{"k": 10}})
		checkViolations(t, name, rep, c.want)
	}
}
