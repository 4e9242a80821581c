package usage

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// ErrUnknownPeriod: nothing was ever counted for the contract in a period of that name.
var ErrUnknownPeriod = fmt.Errorf("no such period: %w", refusal.NotFound)

// Adjustment corrects a line of a closed period of a contract.
type Adjustment struct {
	Contract string
	First    plan.Date // the period
	Line     ledger.LineKey
	Requests int64 // more, or less; not 0
}

// AdjustedLine is what a correction came to.
type AdjustedLine struct {
	Requests int64 // what counts on the line from then on
	Position eventstore.Position
}

// AdjustPeriod corrects a closed period, for good; the envelope tells by whom and why. What the period was closed with stays.
func (m *Meter) AdjustPeriod(ctx context.Context, meta commands.Metadata, a Adjustment) (AdjustedLine, error) {
	stream, commandID := ledger.StreamName(a.Contract, a.First), uuid.New()
	for attempt := byte(0); ; attempt++ {
		f, last, err := m.FoldStream(ctx, stream)
		if err == nil {
			err = a.checkRules(f)
		}
		if err != nil {
			return AdjustedLine{}, err
		}
		proposed, err := m.codec.Encode(ctx, stream, uuid.NewSHA1(commandID, []byte{attempt}), meta.EventMetadata(commandID), []event.Event{event.UsageAdjusted{
			Day: a.Line.Day, Account: a.Line.Account, Key: a.Line.Key, Endpoint: a.Line.Endpoint, Requests: a.Requests,
		}})
		if err != nil {
			return AdjustedLine{}, err
		}
		done, err := m.appendUntilKnown(ctx, stream, last, proposed)
		if err == nil {
			return AdjustedLine{f.Lines[a.Line] + a.Requests, done.Position}, nil
		}
		if !errors.Is(err, eventstore.ErrConflict) {
			return AdjustedLine{}, fmt.Errorf("adjust %s: %w", stream, err)
		}
	}
}

// checkRules says which rule a correction of a period breaks, if any.
func (a Adjustment) checkRules(f *ledger.PeriodUsage) error {
	_, _, known := f.Cap(a.Line.Account)
	day := a.Line.Day.Start()
	switch {
	case !f.IsOpen() && !f.IsClosed():
		return ErrUnknownPeriod
	case !f.IsClosed():
		return refusal.PeriodNotClosed
	case day.Before(f.Period.Start()) || !day.Before(f.Period.End()):
		return refusal.DayOutsidePeriod
	case !known:
		return refusal.AccountNotInContract
	case f.Lines[a.Line]+a.Requests < 0:
		return refusal.AdjustmentBelowZero
	case a.Requests == 0:
		return refusal.AdjustmentZero
	}
	return nil
}
