package metering

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
)

// logTotals is what the log says.
type logTotals struct {
	countedByKey   map[string]int64  // by key
	instanceByKey  map[string]string // by key: who counted for it
	endedInstances map[string]bool   // incarnations that told their end
	maxCounted     int64             // that ever counted at once
	events         int64             // of usage
	ticks, void    int64             // and those ticks that do not count
	refunded       int64             // requests
}

// foldLog reads the whole log of a node, and says what it comes to.
func foldLog(ctx context.Context, socket string) (_ *logTotals, err error) {
	store, err := esdb.Open(ctx, "esdb+unix://"+socket, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	totals := &logTotals{countedByKey: map[string]int64{}, instanceByKey: map[string]string{}, endedInstances: map[string]bool{}}
	periods := map[string]*ledger.PeriodUsage{}
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
	for _, b := range periods {
		for at, n := range b.Lines {
			totals.countedByKey[at.Key] += n
		}
	}
	return totals, nil
}

func (y *logTotals) applyRecord(periods map[string]*ledger.PeriodUsage, r eventstore.RecordedEvent, e event.Event) {
	switch e := e.(type) {
	case event.InstanceStarted:
		return
	case event.InstanceEnded:
		y.endedInstances[e.InstanceID] = true
		return
	}
	b := periods[r.Stream]
	if b == nil {
		b = ledger.NewPeriodUsage()
		periods[r.Stream] = b
	}
	verdict := b.Apply(e, r.Time)
	y.events++
	y.maxCounted = max(y.maxCounted, b.Used(b.Contract))
	switch e := e.(type) {
	case event.UsageTicked:
		y.ticks++
		if verdict != ledger.Counted {
			y.void++
		}
		for _, c := range e.Counts {
			y.instanceByKey[c.Key] = e.InstanceID
		}
	case event.UsageRefunded:
		for _, c := range e.Counts {
			y.refunded += c.Requests
		}
	}
}
