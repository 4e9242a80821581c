package usage

import (
	"context"
	"errors"
	"fmt"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// maxRefundedLines is how many lines one event takes back at most. An event of that size fits every log.
const maxRefundedLines = 1000

// VoidPeriodAhead takes back everything that was counted in a period ahead: one that does not begin within maxAhead and was opened by a
// wrong clock. The caller must make sure that the wrong clock is not that of this instance, which the log does not show. The period stays
// open, and counts from zero when it begins. VoidPeriodAhead returns how many requests it took back. It does nothing to other periods, or
// to one that was not opened or is closed. It fails while the clock is in doubt.
func (m *Meter) VoidPeriodAhead(ctx context.Context, contract string, period plan.Period) (requests int64, err error) {
	ref := event.PeriodRef{Contract: contract, First: period.First}
	for {
		now, err := m.clock.Read()
		if err != nil || !now.Before(aheadUntil(period)) {
			return requests, err
		}
		f, err := m.foldPeriod(ctx, ref)
		if err != nil || !f.IsOpen() || len(f.Lines) == 0 {
			return requests, err
		}
		refund := buildRefundOfDay(f.Lines)
		refund.InstanceID, refund.Sequence = m.instanceID.String(), m.sequence.Add(1)
		stream, e := f.stream, event.Event(refund)
		if f.countedIn != "" {
			stream, e = f.countedIn, (&usagefold.SharedState{}).Event(ref, refund)
		}
		if _, err = m.appendNamed(ctx, stream, fmt.Sprint("ahead ", refund.Sequence), f.countedRevision, e); err == nil {
			requests += countRequests(refund.Counts)
		} else if !errors.Is(err, eventstore.ErrConflict) {
			return requests, err
		}
	}
}

// buildRefundOfDay returns a refund of some lines of one day.
func buildRefundOfDay(lines usagefold.Lines) (refund event.UsageRefunded) {
	for _, at := range lines.SortedKeys() {
		if len(refund.Counts) == 0 {
			refund.Day = at.Day
		}
		if at.Day == refund.Day && len(refund.Counts) < maxRefundedLines {
			refund.Counts = append(refund.Counts, event.UsageCount{Account: at.Account, Key: at.Key, Endpoint: at.Endpoint, Requests: lines[at]})
		}
	}
	return refund
}

func countRequests(counts []event.UsageCount) (n int64) {
	for _, c := range counts {
		n += c.Requests
	}
	return n
}
