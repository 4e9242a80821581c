package metering

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/schemas/event"
	"lieudit/schemas/usagefold"
)

// Report is the result of a run. Without violations, metering was exact. The JSON of a process names its instance id
// incarnation.
type Report struct {
	Seed       uint64     `json:"seed"`
	Cap        int64      `json:"cap"`
	Answered   int64      `json:"answered"`    // complete answers other than 5xx
	Served     int64      `json:"served"`      // of these, 200
	Refused    int64      `json:"refused_429"` // of these, 429
	Retried    int64      `json:"tried_again"` // answers of 503 and connections that broke
	Counted    int64      `json:"counted"`     // by the log
	Events     int64      `json:"events"`      // of usage on the log
	Ticks      int64      `json:"ticks"`
	VoidTicks  int64      `json:"ticks_void"`
	Refunded   int64      `json:"refunded"` // requests whose tick was refunded
	Seconds    float64    `json:"seconds"`
	PerSecond  float64    `json:"served_per_second"` // until the first 429
	Instances  []Instance `json:"instances"`
	Processes  []Process  `json:"lives"`
	Incidents  []Incident `json:"incidents"`
	Violations []string   `json:"violations"`
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
func (r *run) buildReport(totals *logTotals, took time.Duration) Report {
	rep := Report{
		Seed: r.Seed, Cap: r.Cap, Served: r.served.Load(), Events: totals.events, Ticks: totals.ticks, VoidTicks: totals.void,
		Refunded: totals.refunded, Seconds: took.Seconds(), Incidents: r.incidents, Violations: []string{},
	}
	for _, i := range r.instances {
		rep.Instances = append(rep.Instances, i.summary())
		for _, p := range i.processes {
			rep.addProcess(p, totals, int64(r.Connections))
		}
	}
	until := took
	if refusedAfter := r.firstRefusal.Load(); refusedAfter > 0 {
		until = time.Duration(refusedAfter)
	}
	rep.PerSecond = float64(min(rep.Served, r.Cap)) / until.Seconds()
	rep.Answered = rep.Served + rep.Refused
	rep.checkTotals(totals.maxCounted, r.Requests, r.Chaos)
	return rep
}

// summary merges the latencies of all connections into those of the first. It may be called once.
func (i *instance) summary() Instance {
	i.latencies[0].Merge(i.latencies[1:]...)
	f := i.latencies[0].Figure()
	return Instance{i.name, int64(f.Samples), f.P50, f.P99}
}

// addProcess checks one process and adds it to the report. The log must count the requests that it served, and beyond that at most those whose
// connection broke and, if it was killed, those that it answered with 503 and may not have refunded. The latter are at most one for each
// connection. A process that counted and served nothing and was not killed is omitted.
func (rep *Report) addProcess(p *process, totals *logTotals, connections int64) {
	checked := Process{
		Name: p.name, InstanceID: totals.instanceByKey[p.key], Killed: p.killed, Served: p.served.Load(),
		Counted: totals.countedByKey[p.key], InFlight: p.broken.Load(),
	}
	if p.killed {
		checked.OpenRefunds = min(p.openRefunds.Load(), connections)
	}
	checked.BilledUnanswered = checked.Counted - checked.Served
	rep.Refused += p.refused.Load()
	rep.Retried += p.unavailable.Load() + p.broken.Load()
	rep.Counted += checked.Counted
	switch {
	case checked.BilledUnanswered < 0:
		rep.addViolation("%s: %d requests were served that the log does not count", p.name, -checked.BilledUnanswered)
	case checked.BilledUnanswered > checked.InFlight+checked.OpenRefunds:
		rep.addViolation("%s: %d requests are billed without an answer, no more than %d can have been on their way", p.name, checked.BilledUnanswered, checked.InFlight+checked.OpenRefunds)
	case !p.killed && checked.InstanceID != "" && !totals.endedInstances[checked.InstanceID]:
		rep.addViolation("%s: it ended in good order, but does not say so on the log", p.name)
	}
	if n := p.unexpected.Load(); n > 0 {
		rep.addViolation("%s: %d answers are neither 200 nor 429 nor 503", p.name, n)
	}
	if checked.InstanceID != "" || checked.Served > 0 || p.killed {
		rep.Processes = append(rep.Processes, checked)
	}
}

// checkTotals checks the sums over all processes. Without chaos, exactly as many requests are served as the cap allows; with
// chaos, requests without an answer may use up a part of it.
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

// logTotals are the sums that foldLog finds on the log.
type logTotals struct {
	countedByKey   map[string]int64  // requests
	instanceByKey  map[string]string // the id of the instance that counted for the key
	endedInstances map[string]bool   // instances that appended that they ended
	maxCounted     int64             // requests of the account, the most at any position of the log
	events         int64             // of usage
	ticks, void    int64             // void: the ticks that do not count
	refunded       int64             // requests
}

// foldLog reads the events of usage and of instances from the whole log of a node and folds them, as the service folds them.
// An account has a stream for each of its periods.
func foldLog(ctx context.Context, socket string) (_ *logTotals, err error) {
	store, err := esdb.Open(ctx, "esdb+unix://"+socket, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	totals := &logTotals{countedByKey: map[string]int64{}, instanceByKey: map[string]string{}, endedInstances: map[string]bool{}}
	periods := map[string]*usagefold.PeriodUsage{}
	for signal, err := range store.ReadAll(ctx, eventstore.Checkpoint{}, eventstore.Filter{"usage", "incarnation"}) {
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		if signal.Kind != eventstore.EventAppeared {
			continue
		}
		e, err := event.Decode(signal.Event.Type, signal.Event.Data)
		if err != nil {
			return nil, err
		}
		totals.applyRecord(periods, signal.Event, e)
	}
	// Only the final counts are billed: refunds have lowered them by then.
	for _, period := range periods {
		for at, n := range period.Lines {
			totals.countedByKey[at.Key] += n
		}
	}
	return totals, nil
}

// applyRecord folds one event with the fold of the service (package usagefold), which decides whether each tick counts. So this test does not
// check the rules of the fold. It checks that the answers to clients agree with it.
func (t *logTotals) applyRecord(periods map[string]*usagefold.PeriodUsage, r eventstore.RecordedEvent, e event.Event) {
	switch e := e.(type) {
	case event.InstanceStarted:
		return
	case event.InstanceEnded:
		t.endedInstances[e.InstanceID] = true
		return
	}
	period := periods[r.Stream]
	if period == nil {
		period = usagefold.NewPeriodUsage()
		periods[r.Stream] = period
	}
	// maxCounted is taken after each event: a cap that was exceeded for a moment is a violation too.
	verdict := period.Apply(e, r.Time)
	t.events++
	t.maxCounted = max(t.maxCounted, period.Used(period.Contract))
	switch e := e.(type) {
	case event.UsageTicked:
		t.ticks++
		if verdict != usagefold.Counted {
			t.void++
		}
		for _, c := range e.Counts {
			t.instanceByKey[c.Key] = e.InstanceID
		}
	case event.UsageRefunded:
		for _, c := range e.Counts {
			t.refunded += c.Requests
		}
	}
}
