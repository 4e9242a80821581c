package metering

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/schemas/event"
	"lieudit/schemas/usagefold"
)

// This file is the only one that knows in which events and streams requests are counted.

// tickType is in the bytes of each append of a tick: the protocol sends the type of an event as text.
var tickType = []byte(event.UsageTicked{}.EventType())

// hasTick reports whether bytes that an instance sends to a node contain a tick.
func hasTick(sent []byte) bool { return bytes.Contains(sent, tickType) }

// logTotals are the sums that foldLog finds on the log.
type logTotals struct {
	countedByKey   map[string]int64  // requests
	instanceByKey  map[string]string // the id of the instance that counted for the key
	endedInstances map[string]bool   // instances that appended that they ended
	maxCounted     map[string]int64  // requests of an account, the most at any position of the log; of an agency, with its sub-clients
	events         int64             // of usage
	ticks, void    int64             // void: the ticks that do not count
	refunded       int64             // requests
}

// foldLog reads the events of usage and of instances from the whole log of a node and folds them, as the service folds them.
// A contract has a stream for each of its periods.
func (r *run) foldLog(ctx context.Context) (_ *logTotals, err error) {
	store, err := esdb.Open(ctx, "esdb+unix://"+r.workDir.SocketPath(nodeName), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	totals := &logTotals{countedByKey: map[string]int64{}, instanceByKey: map[string]string{}, endedInstances: map[string]bool{}, maxCounted: map[string]int64{}}
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
	verdict := period.Apply(e, r.Time)
	t.events++
	switch e := e.(type) {
	case event.UsageTicked:
		t.ticks++
		if verdict != usagefold.Counted {
			t.void++
		}
		for _, c := range e.Counts {
			t.instanceByKey[c.Key] = e.InstanceID
			t.updateMax(period, c.Account)
		}
		t.updateMax(period, period.Contract)
	case event.UsageRefunded:
		for _, c := range e.Counts {
			t.refunded += c.Requests
		}
	}
}

// updateMax is called after each tick: a cap that was exceeded for a moment is a violation too.
func (t *logTotals) updateMax(period *usagefold.PeriodUsage, account string) {
	t.maxCounted[account] = max(t.maxCounted[account], period.Used(account))
}
