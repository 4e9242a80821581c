package usage

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/usagefold"
)

// ErrNotClosable means that the period has not ended, or was never opened.
var ErrNotClosable = errors.New("the period cannot be closed")

// ClosePeriod closes a period of a contract permanently, with its total and the digest of its lines. It is idempotent. It fails with
// ErrNotClosable if the period has not ended, if that is not known because the clock is in doubt, or if the period was never opened. The
// caller must first leave time for late requests and their refunds to arrive.
func (m *Meter) ClosePeriod(ctx context.Context, contract string, period plan.Period) error {
	switch now, err := m.clock.Read(); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotClosable, err)
	case now.Before(period.End()):
		return fmt.Errorf("%w: it ends on %s", ErrNotClosable, period.Next)
	}
	stream := usagefold.StreamName(contract, period.First)
	for {
		f, last, err := m.foldStream(ctx, stream)
		switch {
		case err != nil:
			return err
		case f.IsClosed():
			return nil
		case !f.IsOpen():
			return fmt.Errorf("%w: nobody has opened it", ErrNotClosable)
		}
		if err = m.appendNamed(ctx, stream, uuid.NewString(), last, f.Lines.ClosingEvent()); !errors.Is(err, eventstore.ErrConflict) {
			return err
		}
	}
}

// foldStream folds a stream from its first event and returns the revision of its last one. A stream that does not exist has the
// empty fold and eventstore.NoStream.
func (m *Meter) foldStream(ctx context.Context, stream string) (*usagefold.PeriodUsage, eventstore.Revision, error) {
	f, last := usagefold.NewPeriodUsage(), eventstore.NoStream
	for r, err := range m.store.ReadStream(ctx, stream, 0, eventstore.Forward) {
		if err != nil {
			return nil, 0, fmt.Errorf("read %s: %w", stream, err)
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			return nil, 0, fmt.Errorf("%s@%d: %w", stream, r.Revision, err)
		}
		f.Apply(e, r.Time)
		last = r.Revision
	}
	return f, last, nil
}

// ErrUnknownPeriod means that no period of the contract that begins on that day was opened. It is refusal.NotFound for the client.
var ErrUnknownPeriod = fmt.Errorf("no such period: %w", refusal.NotFound)

// Adjustment corrects one line of a closed period of a contract.
type Adjustment struct {
	Contract string
	First    plan.Date // first day of the period
	Line     usagefold.LineKey
	Requests int64 // to add, or to subtract if negative; not 0
}

// AdjustedLine is the line after an adjustment.
type AdjustedLine struct {
	Requests int64 // in all
	Position eventstore.Position
}

// AdjustPeriod corrects a closed period permanently. meta records by whom and why. The closing event is not changed: the total of the
// period is that of the event plus all adjustments. AdjustPeriod fails with ErrUnknownPeriod or a refusal. It reads the stream again after
// a conflict, so that concurrent adjustments cannot take a line below zero.
func (m *Meter) AdjustPeriod(ctx context.Context, meta commands.Metadata, a Adjustment) (AdjustedLine, error) {
	stream, commandID := usagefold.StreamName(a.Contract, a.First), uuid.New()
	for attempt := byte(0); ; attempt++ {
		f, last, err := m.foldStream(ctx, stream)
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

// checkRules returns the rule that an adjustment of a period breaks, if any. The period is checked first, then the line,
// then the number.
func (a Adjustment) checkRules(f *usagefold.PeriodUsage) error {
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
