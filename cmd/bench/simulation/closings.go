package simulation

import (
	"context"
	"encoding/json"

	"lieudit/cmd/bench/simulation/customers"
	"lieudit/cmd/bench/simulation/customers/model"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/usagefold"
)

// checkClosings compares what was billed of closed periods, when the usage log ended at a position, with what the log says of them: the
// total of the closing, and each correction after it. Answers alone do not show that: a request that is counted in a closed period is on
// the bill, and is missing from what was closed.
func (w *World) checkClosings(ctx context.Context, billed *model.Model, end eventstore.Position) {
	totals := map[string]int64{} // by stream, of closed periods
	for s, err := range w.usage.ReadAll(ctx, eventstore.Checkpoint{}, eventstore.Filter{"usage"}) {
		if err != nil {
			w.Report(customers.ClosedStays, "reading the usage log: %v", err)
			return
		}
		if s.Kind == eventstore.EventAppeared && s.Checkpoint.Position <= end {
			w.addToClosed(totals, s.Event)
		}
	}
	for stream, want := range totals {
		contract, first, _ := usagefold.ParseStreamName(stream)
		if got := billed.BilledOf(contract, first.String()); got != want {
			w.Report(customers.ClosedStays, "%s: %d are billed, %d were closed or corrected", stream, got, want)
		}
	}
}

// addToClosed adds what an event says of a closed period. A second closing changes nothing.
func (w *World) addToClosed(totals map[string]int64, e eventstore.RecordedEvent) {
	_, isClosed := totals[e.Stream]
	isClosing := e.Type == event.UsageClosed{}.EventType()
	if isClosing == isClosed || !isClosing && e.Type != (event.UsageAdjusted{}).EventType() {
		return
	}
	var said struct{ Total, Requests int64 }
	if err := json.Unmarshal(e.Data, &said); err != nil {
		w.Report(customers.ClosedStays, "%s@%d: %v", e.Stream, e.Revision, err)
	}
	totals[e.Stream] += said.Total + said.Requests
}
