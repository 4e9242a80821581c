package usage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

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

// ContractPeriod is a period of a contract.
type ContractPeriod struct {
	Contract string
	plan.Period
}

// ClosePeriods closes periods permanently, each with its total and the digest of its lines. It is idempotent. It fails with
// ErrNotClosable if a period has not ended, if that is not known because the clock is in doubt, or if it was never opened. The caller
// must first leave time for late requests and their refunds to arrive.
//
// A period in a shared stream is closed in two steps. SharedUsageEnded ends the counting there, so that the lines are final; whoever
// folds them next states them on the period's own stream. A shared stream is folded once for all of its periods.
func (m *Meter) ClosePeriods(ctx context.Context, periods ...ContractPeriod) error {
	shared := map[string][]*foldedPeriod{}
	for _, p := range periods {
		switch now, err := m.clock.Read(); {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrNotClosable, err)
		case now.Before(p.End()):
			return fmt.Errorf("%w: it ends on %s", ErrNotClosable, p.Next)
		}
		f, err := m.closeOwn(ctx, event.PeriodRef{Contract: p.Contract, First: p.First})
		if err != nil {
			return err
		}
		if f.countedIn != "" && !f.IsClosed() {
			shared[f.countedIn] = append(shared[f.countedIn], f)
		}
	}
	for _, stream := range slices.Sorted(maps.Keys(shared)) {
		if err := m.closeShared(ctx, stream, shared[stream]); err != nil {
			return err
		}
	}
	return nil
}

// closeOwn closes a period that is counted in its own stream. It returns one that is counted in a shared stream as its own stream has it.
func (m *Meter) closeOwn(ctx context.Context, ref event.PeriodRef) (*foldedPeriod, error) {
	for {
		f, err := m.foldOwn(ctx, ref)
		switch {
		case err != nil || f.countedIn != "" || f.IsClosed():
			return f, err
		case !f.IsOpen():
			return nil, fmt.Errorf("%w: nobody has opened it", ErrNotClosable)
		}
		if err = m.appendClosing(ctx, f, f.Lines.ClosingEvent()); err != nil && !errors.Is(err, eventstore.ErrConflict) {
			return nil, err
		}
	}
}

// closeShared closes periods that are counted in a shared stream.
func (m *Meter) closeShared(ctx context.Context, stream string, periods []*foldedPeriod) error {
	fold := newSharedFold(stream, periods)
	if err := fold.readOn(ctx, m); err != nil {
		return err
	}
	for _, f := range periods {
		switch {
		case f.IsOpen():
			name := fmt.Sprintf("end %s %s", f.ref.Contract, f.ref.First)
			if _, err := m.appendNamed(ctx, stream, name, eventstore.Any, event.SharedUsageEnded{PeriodRef: f.ref}); err != nil {
				return err
			}
		case !f.IsEnded():
			return fmt.Errorf("%w: nobody has opened it", ErrNotClosable)
		}
	}
	if err := fold.readOn(ctx, m); err != nil {
		return err
	}
	for _, f := range periods {
		if err := m.stateAndClose(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// stateAndClose writes the lines of a period that has ended to its own stream, and closes it. Whatever another instance has written of
// that meanwhile is the same.
func (m *Meter) stateAndClose(ctx context.Context, f *foldedPeriod) error {
	for {
		err := m.appendClosing(ctx, f, f.nextStatement())
		if err != nil && !errors.Is(err, eventstore.ErrConflict) {
			return err
		}
		own, err := m.foldOwn(ctx, f.ref)
		if err != nil || own.IsClosed() {
			return err
		}
		f.revision, f.statements = own.revision, own.statements
	}
}

// appendClosing appends an event to the own stream of a period, which must be as it was folded.
func (m *Meter) appendClosing(ctx context.Context, f *foldedPeriod, e event.Event) error {
	_, err := m.appendNamed(ctx, f.stream, uuid.NewString(), f.revision, e)
	return err
}

// foldedPeriod is the fold of a period from its first event.
type foldedPeriod struct {
	*usagefold.PeriodUsage
	ref        event.PeriodRef
	stream     string              // the period's own
	revision   eventstore.Revision // of the last event of it, or eventstore.NoStream
	countedIn  string              // the shared stream in which its requests are counted, or ""
	statements int                 // how many UsageLinesStated the own stream has

	countedRevision eventstore.Revision // of the last event of the stream in which its requests are counted
}

// foldPeriod folds a period. Once it is closed its own stream holds everything; before, the requests of one in a shared stream are there.
func (m *Meter) foldPeriod(ctx context.Context, ref event.PeriodRef) (*foldedPeriod, error) {
	f, err := m.foldOwn(ctx, ref)
	if err != nil || f.countedIn == "" || f.IsClosed() {
		return f, err
	}
	return f, newSharedFold(f.countedIn, []*foldedPeriod{f}).readOn(ctx, m)
}

// foldOwn folds the own stream of a period.
func (m *Meter) foldOwn(ctx context.Context, ref event.PeriodRef) (*foldedPeriod, error) {
	f := &foldedPeriod{PeriodUsage: usagefold.NewPeriodUsage(), ref: ref, stream: usagefold.StreamName(ref.Contract, ref.First), revision: eventstore.NoStream}
	err := m.foldFrom(ctx, f.stream, 0, nil, func(e event.Event, r eventstore.RecordedEvent) {
		switch e := e.(type) {
		case event.UsageCountedIn:
			f.countedIn = e.Stream
		case event.UsageLinesStated:
			f.statements++
		}
		f.Apply(e, r.Time)
		f.revision = r.Revision
	})
	f.countedRevision = f.revision
	return f, err
}

// sharedFold is the fold of a shared stream for some of its periods.
type sharedFold struct {
	stream  string
	state   usagefold.SharedState
	periods map[event.PeriodRef]*foldedPeriod
	next    eventstore.Revision
}

// newSharedFold begins a fold, which replaces what the own streams of the periods state.
func newSharedFold(stream string, periods []*foldedPeriod) *sharedFold {
	s := &sharedFold{stream: stream, periods: map[event.PeriodRef]*foldedPeriod{}}
	for _, f := range periods {
		f.PeriodUsage = usagefold.NewPeriodUsage()
		s.periods[f.ref] = f
	}
	return s
}

// readOn folds the events after the last one that was read. One that cannot be decoded stops its own period alone.
func (s *sharedFold) readOn(ctx context.Context, m *Meter) error {
	isOther := func(r eventstore.RecordedEvent) bool {
		ref, ok := event.DecodePeriodRef(r.Data)
		return ok && s.periods[ref] == nil
	}
	err := m.foldFrom(ctx, s.stream, s.next, isOther, func(e event.Event, r eventstore.RecordedEvent) {
		for _, part := range s.state.Apply(e, r.Time) {
			if f := s.periods[part.PeriodRef]; f != nil {
				f.Lines.Apply(part.Event, part.Verdict)
			}
		}
		s.next = r.Revision + 1
	})
	for ref, f := range s.periods {
		if state := s.state.Period(ref); state != nil {
			f.PeriodState = *state
		}
		f.countedRevision = s.next - 1
	}
	return err
}

// foldFrom calls fold with the events of a stream, from a revision on. It fails at an event that cannot be decoded, unless isOther says that
// it does not matter; fold then gets no event.
func (m *Meter) foldFrom(ctx context.Context, stream string, from eventstore.Revision, isOther func(eventstore.RecordedEvent) bool, fold func(event.Event, eventstore.RecordedEvent)) error {
	for r, err := range m.store.ReadStream(ctx, stream, from, eventstore.Forward) {
		if err != nil {
			return fmt.Errorf("read %s: %w", stream, err)
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil && (isOther == nil || !isOther(r)) {
			return fmt.Errorf("%s@%d: %w", stream, r.Revision, err)
		}
		fold(e, r)
	}
	return nil
}

// nextStatement returns what the own stream of an ended period lacks next: a statement of its lines, or the closing after all of them.
func (f *foldedPeriod) nextStatement() event.Event {
	if all := f.Statements(); f.statements < len(all) {
		return all[f.statements]
	}
	return f.Lines.ClosingEvent()
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
	commandID := uuid.New()
	for attempt := byte(0); ; attempt++ {
		f, err := m.foldPeriod(ctx, event.PeriodRef{Contract: a.Contract, First: a.First})
		if err == nil {
			err = a.checkRules(f.PeriodUsage)
		}
		if err != nil {
			return AdjustedLine{}, err
		}
		proposed, err := m.codec.Encode(ctx, f.stream, uuid.NewSHA1(commandID, []byte{attempt}), meta.EventMetadata(commandID), []event.Event{event.UsageAdjusted{
			Day: a.Line.Day, Account: a.Line.Account, Key: a.Line.Key, Endpoint: a.Line.Endpoint, Requests: a.Requests,
		}})
		if err != nil {
			return AdjustedLine{}, err
		}
		done, err := m.appendUntilKnown(ctx, f.stream, f.revision, proposed)
		if err == nil {
			return AdjustedLine{f.Lines[a.Line] + a.Requests, done.Position}, nil
		}
		if !errors.Is(err, eventstore.ErrConflict) {
			return AdjustedLine{}, fmt.Errorf("adjust %s: %w", f.stream, err)
		}
	}
}

// checkRules returns the rule that an adjustment of a period breaks, if any. The period is checked first, then the line,
// then the number.
func (a Adjustment) checkRules(f *usagefold.PeriodUsage) error {
	_, _, known := f.Cap(a.Line.Account)
	day := a.Line.Day.Start()
	switch {
	case !f.IsOpen() && !f.IsEnded():
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
