package metering

import (
	"fmt"
	"slices"
	"time"

	"lieudit/cmd/bench/loadclient"
)

// Report is what came of a trial.
type Report struct {
	Seed       uint64     `json:"seed"`
	Cap        int64      `json:"cap"`
	Answered   int64      `json:"answered"`    // whole answers that are no 5xx
	Served     int64      `json:"served"`      // of these, 200
	Refused    int64      `json:"refused_429"` // of these, 429
	Retried    int64      `json:"tried_again"` // answers of 503 and connections that broke
	Counted    int64      `json:"counted"`     // by the log, in the end
	Events     int64      `json:"events"`      // of usage on the log
	Ticks      int64      `json:"ticks"`
	VoidTicks  int64      `json:"ticks_void"`
	Refunded   int64      `json:"refunded"` // requests that were refused after all
	Seconds    float64    `json:"seconds"`
	PerSecond  float64    `json:"served_per_second"` // until the first was refused
	Instances  []Instance `json:"instances"`
	Processes  []Process  `json:"lives"`
	Incidents  []Incident `json:"incidents"`
	Violations []string   `json:"violations"`
}

// Instance is one instance, all its lives together.
type Instance struct {
	Name   string  `json:"name"`
	Served int64   `json:"served"`
	P50    float64 `json:"p50_ms"` // of what was served
	P99    float64 `json:"p99_ms"`
}

// Process is one process of an instance.
type Process struct {
	Name             string `json:"name"`
	InstanceID       string `json:"incarnation,omitempty"` // empty: it counted nothing
	Killed           bool   `json:"killed"`
	Served           int64  `json:"served"`
	Counted          int64  `json:"counted"`
	BilledUnanswered int64  `json:"billed_unanswered"`
	InFlight         int64  `json:"in_flight"` // requests that its end left without an answer
	OpenRefunds      int64  `json:"open"`      // requests told 503 whose tick it cannot have taken back before its end
}

// buildReport holds what clients were answered against what the log says.
func (r *run) buildReport(totals *logTotals, took time.Duration) Report {
	rep := Report{
		Seed: r.Seed, Cap: r.Cap, Served: r.served.Load(), Events: totals.events, Ticks: totals.ticks, VoidTicks: totals.void,
		Refunded: totals.refunded, Seconds: took.Seconds(), Incidents: r.incidents, Violations: []string{},
	}
	for _, p := range r.instances {
		rep.Instances = append(rep.Instances, p.summary())
		for _, l := range p.processes {
			rep.addProcess(l, totals, int64(r.Connections))
		}
	}
	until := took
	if full := r.firstRefusal.Load(); full > 0 {
		until = time.Duration(full)
	}
	rep.PerSecond = float64(min(rep.Served, r.Cap)) / until.Seconds()
	rep.Answered = rep.Served + rep.Refused
	rep.checkTotals(totals.maxCounted, r.Requests, r.Chaos)
	return rep
}

func (p *instance) summary() Instance {
	all := loadclient.Latencies(slices.Concat(p.latencies...))
	all.Sort()
	ms := func(share float64) float64 { return float64(all.Quantile(share).Microseconds()) / 1000 }
	return Instance{p.name, int64(len(all)), ms(0.5), ms(0.99)}
}

// addProcess judges one life: what it served is counted, and no more than what its end may have left unanswered besides.
func (rep *Report) addProcess(l *process, totals *logTotals, connections int64) {
	v := Process{
		Name: l.name, InstanceID: totals.instanceByKey[l.key], Killed: l.killed, Served: l.served.Load(),
		Counted: totals.countedByKey[l.key], InFlight: l.broken.Load(),
	}
	if l.killed {
		v.OpenRefunds = min(l.openRefunds.Load(), connections)
	}
	v.BilledUnanswered = v.Counted - v.Served
	rep.Refused += l.refused.Load()
	rep.Retried += l.unavailable.Load() + l.broken.Load()
	rep.Counted += v.Counted
	switch {
	case v.BilledUnanswered < 0:
		rep.addViolation("%s: %d requests were served that the log does not count", l.name, -v.BilledUnanswered)
	case v.BilledUnanswered > v.InFlight+v.OpenRefunds:
		rep.addViolation("%s: %d requests are billed without an answer, no more than %d can have been on their way", l.name, v.BilledUnanswered, v.InFlight+v.OpenRefunds)
	case !l.killed && v.InstanceID != "" && !totals.endedInstances[v.InstanceID]:
		rep.addViolation("%s: it ended in good order, but does not say so on the log", l.name)
	}
	if n := l.unexpected.Load(); n > 0 {
		rep.addViolation("%s: %d answers are neither 200 nor 429 nor 503", l.name, n)
	}
	if v.InstanceID != "" || v.Served > 0 || l.killed {
		rep.Processes = append(rep.Processes, v)
	}
}

// checkTotals judges all lives together.
func (rep *Report) checkTotals(maxCounted, requests int64, chaos bool) {
	switch {
	case rep.Served > rep.Cap:
		rep.addViolation("%d requests were served, the cap is %d", rep.Served, rep.Cap)
	case maxCounted > rep.Cap:
		rep.addViolation("the log counted %d at once, the cap is %d", maxCounted, rep.Cap)
	case !chaos && rep.Served != min(rep.Cap, requests):
		rep.addViolation("%d requests were served, not exactly %d", rep.Served, min(rep.Cap, requests))
	}
	if rep.Answered != requests {
		rep.addViolation("%d requests were answered, %d were sent", rep.Answered, requests)
	}
}

func (rep *Report) addViolation(format string, args ...any) {
	rep.Violations = append(rep.Violations, fmt.Sprintf(format, args...))
}
