package metering

import (
	"fmt"
	"time"
)

// Report is the result of a run. Without violations, metering was exact. The JSON of a process names its instance id
// incarnation.
type Report struct {
	Seed       uint64     `json:"seed"`
	Cap        int64      `json:"cap"`         // of all contracts together
	Answered   int64      `json:"answered"`    // complete answers other than 5xx
	Served     int64      `json:"served"`      // of these, 200
	Refused    int64      `json:"refused_429"` // of these, 429
	Retried    int64      `json:"tried_again"` // answers of 503 and connections that broke
	Counted    int64      `json:"counted"`     // by the log
	Events     int64      `json:"events"`      // of usage on the log
	Ticks      int64      `json:"ticks"`
	VoidTicks  int64      `json:"ticks_void"`
	Refunded   int64      `json:"refunded"` // requests whose tick was refunded
	Unlisted   int64      `json:"unlisted"` // billed without an answer and not listed by reconcile
	Seconds    float64    `json:"seconds"`
	PerSecond  float64    `json:"served_per_second"` // until the first 429
	Contracts  []Contract `json:"contracts"`
	Instances  []Instance `json:"instances"`
	Processes  []Process  `json:"lives"`
	Incidents  []Incident `json:"incidents"`
	Violations []string   `json:"violations"`
}

// Contract is what clients got of a contract, and what the log counts of it. Accounts are those of an agency, itself the first;
// its Served and Counted are without its sub-clients there.
type Contract struct {
	ID         string     `json:"id"`
	Cap        int64      `json:"cap"`
	Served     int64      `json:"served"`
	Refused    int64      `json:"refused_429"`
	Early      int64      `json:"refused_early"` // of these, while a part of the quota was left
	Counted    int64      `json:"counted"`
	MaxCounted int64      `json:"counted_at_most"` // at any position of the log
	Accounts   []Contract `json:"accounts,omitempty"`
}

// Instance is the sum over all processes of an instance. The latencies are in milliseconds.
type Instance struct {
	Name   string  `json:"name"`
	Served int64   `json:"served"`
	P50    float64 `json:"p50_ms"` // of served requests
	P99    float64 `json:"p99_ms"`
}

// Process is one process of an instance: the answers that clients got from it, and the log's counts for it.
type Process struct {
	Name             string `json:"name"`
	InstanceID       string `json:"incarnation,omitempty"` // empty: it counted nothing
	Killed           bool   `json:"killed"`
	Served           int64  `json:"served"`
	Counted          int64  `json:"counted"`
	BilledUnanswered int64  `json:"billed_unanswered"` // Counted less Served
	InFlight         int64  `json:"in_flight"`         // requests that its end left unanswered
	OpenRefunds      int64  `json:"open"`              // requests answered with 503 whose tick it may not have refunded before its end
}

// buildReport compares the clients' answers with the log. Differences that the service does not promise to avoid are figures of the report; all
// others are violations. It may be called once.
func (r *run) buildReport(totals *logTotals, reconciled []reconciliation, took time.Duration) Report {
	rep := Report{
		Seed: r.Seed, Served: r.served.Load(), Events: totals.events, Ticks: totals.ticks, VoidTicks: totals.void,
		Refunded: totals.refunded, Seconds: took.Seconds(), Incidents: r.incidents, Violations: []string{},
	}
	for _, i := range r.instances {
		rep.Instances = append(rep.Instances, i.summary())
		for _, p := range i.processes {
			rep.addProcess(p, r.allAccounts(), totals, int64(r.Connections))
		}
	}
	for _, c := range r.contracts {
		rep.addContract(r.summarizeContract(c, totals), c, r.Chaos)
	}
	for _, got := range reconciled {
		rep.checkReconciliation(got, totals)
	}
	if len(reconciled) > 0 {
		listed := listedUnanswered(reconciled[0])
		for _, p := range rep.Processes {
			rep.Unlisted += max(p.BilledUnanswered-listed[p.InstanceID], 0)
		}
	}
	until := refusal{took, rep.Served}
	if first := r.firstRefusal.Load(); first != nil {
		until = *first
	}
	rep.PerSecond = float64(until.served) / until.after.Seconds()
	rep.Answered = rep.Served + rep.Refused
	return rep
}

// summarizeContract adds up the answers of all processes for a contract.
func (r *run) summarizeContract(c *contract, totals *logTotals) Contract {
	sum := Contract{ID: c.id, Cap: c.cap, MaxCounted: totals.maxCounted[c.id]}
	for _, a := range c.accounts {
		one := Contract{ID: a.id, Cap: a.quota, Early: a.earlyRefused.Load(), MaxCounted: totals.maxCounted[a.id]}
		sum.Early += one.Early
		for _, i := range r.instances {
			for _, p := range i.processes {
				t := p.tallies[a.number]
				one.Served += t.served.Load()
				one.Refused += t.refused.Load()
				one.Counted += totals.countedByKey[t.key]
			}
		}
		sum.Served, sum.Refused, sum.Counted = sum.Served+one.Served, sum.Refused+one.Refused, sum.Counted+one.Counted
		if c.isAgency() {
			sum.Accounts = append(sum.Accounts, one)
		}
	}
	return sum
}

// summary merges the latencies of all connections into those of the first. It may be called once.
func (i *instance) summary() Instance {
	i.latencies[0].Merge(i.latencies[1:]...)
	f := i.latencies[0].Figure()
	return Instance{i.name, int64(f.Samples), f.P50, f.P99}
}

// addProcess checks one process, account by account, and adds it to the report. A process that counted and served nothing and was not killed is
// omitted.
func (rep *Report) addProcess(p *process, accounts []*account, totals *logTotals, connections int64) {
	sum := Process{Name: p.name, Killed: p.killed}
	for _, a := range accounts {
		t := p.tallies[a.number]
		one := rep.checkTally(p.name+", "+a.id, t, totals.countedByKey[t.key], p.killed, connections)
		if id := totals.instanceByKey[t.key]; id != "" {
			sum.InstanceID = id
		}
		sum.Served, sum.Counted, sum.BilledUnanswered = sum.Served+one.Served, sum.Counted+one.Counted, sum.BilledUnanswered+one.BilledUnanswered
		sum.InFlight, sum.OpenRefunds = sum.InFlight+one.InFlight, sum.OpenRefunds+one.OpenRefunds
		rep.Refused += t.refused.Load()
		rep.Retried += t.unavailable.Load() + t.broken.Load()
	}
	rep.Counted += sum.Counted
	if !p.killed && sum.InstanceID != "" && !totals.endedInstances[sum.InstanceID] {
		rep.addViolation("%s: it ended in good order, but does not say so on the log", p.name)
	}
	if sum.InstanceID != "" || sum.Served > 0 || p.killed {
		rep.Processes = append(rep.Processes, sum)
	}
}

// checkTally checks the answers of one process for one account. The log must count the requests that it served, and beyond that at most those
// whose connection broke and, if it was killed, those that it answered with 503 and may not have refunded. The latter are at most one for each
// connection.
func (rep *Report) checkTally(name string, t *tally, counted int64, killed bool, connections int64) Process {
	one := Process{Served: t.served.Load(), Counted: counted, InFlight: t.broken.Load()}
	if killed {
		one.OpenRefunds = min(t.openRefunds.Load(), connections)
	}
	one.BilledUnanswered = one.Counted - one.Served
	switch {
	case one.BilledUnanswered < 0:
		rep.addViolation("%s: %d requests were served that the log does not count", name, -one.BilledUnanswered)
	case one.BilledUnanswered > one.InFlight+one.OpenRefunds:
		rep.addViolation("%s: %d requests are billed without an answer, no more than %d can have been on their way", name, one.BilledUnanswered, one.InFlight+one.OpenRefunds)
	}
	if n := t.unexpected.Load(); n > 0 {
		rep.addViolation("%s: %d answers are neither 200 nor 429 nor 503", name, n)
	}
	return one
}

// addContract checks the sums over all processes for a contract and its accounts, and adds them to the report. Without chaos, exactly
// as many requests are served as the caps allow; with chaos, requests without an answer may use up a part of them.
func (rep *Report) addContract(sum Contract, c *contract, chaos bool) {
	rep.Contracts = append(rep.Contracts, sum)
	rep.Cap += sum.Cap
	rep.checkCap(sum)
	accounts := sum.Accounts
	if len(accounts) == 0 {
		accounts = []Contract{sum}
	}
	for _, one := range accounts {
		rep.checkRefusals(one, sum)
		if one.ID != sum.ID { // the log's counts of the account that pays are those of the contract
			rep.checkCap(one)
		}
	}
	if want := c.expectServed(); !chaos && sum.Served != want {
		rep.addViolation("%s: %d requests were served, not exactly %d", sum.ID, sum.Served, want)
	}
	if answered := sum.Served + sum.Refused; answered != c.requests {
		rep.addViolation("%s: %d requests were answered, %d were sent", sum.ID, answered, c.requests)
	}
}

// checkCap checks that no more was served, and no more counted at any position of the log, than a contract or an account may have.
func (rep *Report) checkCap(of Contract) {
	switch {
	case of.Served > of.Cap:
		rep.addViolation("%s: %d requests were served, the cap is %d", of.ID, of.Served, of.Cap)
	case of.MaxCounted > of.Cap:
		rep.addViolation("%s: the log counted %d at once, the cap is %d", of.ID, of.MaxCounted, of.Cap)
	}
}

func (rep *Report) addViolation(format string, args ...any) {
	rep.Violations = append(rep.Violations, fmt.Sprintf(format, args...))
}

// checkRefusals checks that requests of an account were refused only when nothing of its quota, or of its contract's cap, was left.
func (rep *Report) checkRefusals(of, contract Contract) {
	switch {
	case of.Early > 0:
		rep.addViolation("%s: %d requests were refused although a part of the quota was left", of.ID, of.Early)
	case of.Refused > 0 && of.MaxCounted < of.Cap && contract.MaxCounted < contract.Cap:
		rep.addViolation("%s: %d requests were refused, but the log never counted its cap of %d", of.ID, of.Refused, of.Cap)
	}
}
