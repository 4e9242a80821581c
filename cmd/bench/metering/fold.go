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

// tickTypes are in the bytes of the appends of ticks: the protocol sends the type of an event as text.
var tickTypes = [][]byte{[]byte(event.UsageTicked{}.EventType()), []byte(event.SharedUsageTicked{}.EventType())}

// hasTick reports whether bytes that an instance sends to a node contain a tick.
func hasTick(sent []byte) bool {
	return bytes.Contains(sent, tickTypes[0]) || bytes.Contains(sent, tickTypes[1])
}

// logTotals are the sums that foldLog finds on the log.
type logTotals struct {
	countedByKey   map[string]int64  // requests
	instanceByKey  map[string]string // the id of the instance that counted for the key
	endedInstances map[string]bool   // instances that appended that they ended
	maxCounted     map[string]int64  // requests of an account, the most at any position of the log; of an agency, with its sub-clients
	events         int64             // of usage
	ticks, void    int64             // void: the ticks that do not count, or not for each of their contracts
	refunded       int64             // requests
}

// foldLog reads the events of usage and of instances from the whole log of a node and folds them, as the service folds them.
// A contract has a stream for each of its periods, and may share one with others.
func (r *run) foldLog(ctx context.Context) (_ *logTotals, err error) {
	store, err := esdb.Open(ctx, "esdb+unix://"+r.workDir.SocketPath(nodeName), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	totals := &logTotals{countedByKey: map[string]int64{}, instanceByKey: map[string]string{}, endedInstances: map[string]bool{}, maxCounted: map[string]int64{}}
	fold := &logFold{logTotals: totals, lines: map[event.PeriodRef]usagefold.Lines{}}
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
		fold.applyRecord(signal.Event, e)
	}
	// Only the final counts are billed: refunds have lowered them by then.
	for _, lines := range fold.lines {
		for at, n := range lines {
			totals.countedByKey[at.Key] += n
		}
	}
	return totals, nil
}

// logFold is the fold of the streams of usage, with the lines of each period.
type logFold struct {
	*logTotals
	streams usagefold.StreamsState
	lines   map[event.PeriodRef]usagefold.Lines
}

// applyRecord folds one event with the fold of the service (package usagefold), which decides whether each tick counts. So this test does not
// check the rules of the fold. It checks that the answers to clients agree with it.
func (f *logFold) applyRecord(r eventstore.RecordedEvent, e event.Event) {
	switch e := e.(type) {
	case event.InstanceStarted:
		return
	case event.InstanceEnded:
		f.endedInstances[e.InstanceID] = true
		return
	}
	f.events++
	isTick, isVoid := false, false
	for _, part := range f.streams.Apply(r.Stream, int64(r.Revision), e, r.Time) {
		if _, ok := part.Event.(event.UsageTicked); ok {
			isTick, isVoid = true, isVoid || part.Verdict != usagefold.Counted
		}
		f.addPart(part)
	}
	if isTick {
		f.ticks++
	}
	if isVoid {
		f.void++
	}
}

// addPart adds what an event is to one period.
func (f *logFold) addPart(part usagefold.PeriodEvent) {
	if f.lines[part.PeriodRef] == nil {
		f.lines[part.PeriodRef] = usagefold.Lines{}
	}
	f.lines[part.PeriodRef].Apply(part.Event, part.Verdict)
	switch e := part.Event.(type) {
	case event.UsageTicked:
		for _, c := range e.Counts {
			f.instanceByKey[c.Key] = e.InstanceID
			f.updateMax(part.State, c.Account)
		}
		f.updateMax(part.State, part.Contract)
	case event.UsageRefunded:
		for _, c := range e.Counts {
			f.refunded += c.Requests
		}
	}
}

// updateMax is called after each tick: a cap that was exceeded for a moment is a violation too.
func (t *logTotals) updateMax(period *usagefold.PeriodState, account string) {
	if period != nil {
		t.maxCounted[account] = max(t.maxCounted[account], period.Used(account))
	}
}
