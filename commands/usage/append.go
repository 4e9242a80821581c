package usage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/schemas/event"
	"lieudit/schemas/usagefold"
)

const (
	// firstRetryPause and retryInterval are the shortest and the longest pause between two attempts on the log. Pauses double.
	firstRetryPause = time.Millisecond
	retryInterval   = 50 * time.Millisecond

	// eventsPerSnapshot is the number of events after which a stream gets a snapshot. A reader that begins at the last snapshot reads
	// hardly more events than that.
	eventsPerSnapshot = 1000

	// A shared stream gets one after eventsPerItem events for each of its keys and periods, so that snapshots stay a small part of it, and
	// at the latest after one event for each and maxExtraEvents, which take a second to read from a log on a server.
	eventsPerItem  = 4
	maxExtraEvents = 6000
)

// EventsPerSharedSnapshot is the number of events after which a shared stream gets a snapshot. items are its keys and periods.
func EventsPerSharedSnapshot(items int) int {
	return max(eventsPerSnapshot, min(eventsPerItem*items, items+maxExtraEvents))
}

// preparedAppend is the encoded events of one append. The same bytes are sent until their outcome is known.
type preparedAppend struct {
	proposed     []eventstore.ProposedEvent
	events       []event.Event
	tickSequence int64 // sequence of the tick; 0 if there is none
}

// appendTick makes a tick and the batch's refunds durable, folds them, and answers those that they settle.
func (b *batch) appendTick(ctx context.Context, tick tickDraft) error {
	prepared, err := b.prepareAppend(ctx, tick, b.buildRefunds())
	if err == nil {
		err = b.appendUntilFolded(ctx, prepared)
	}
	if err != nil {
		return err
	}
	return b.respondFolded(prepared)
}

// periodRefund is a refund of one period.
type periodRefund struct {
	event.PeriodRef
	event.UsageRefunded
}

// buildRefunds returns the refunds of the batch, one event for a period and a day.
func (b *batch) buildRefunds() []periodRefund {
	var refunds []periodRefund
	var lines [][]usagefold.SharedLine
	for _, w := range b.refunds {
		i := slices.IndexFunc(refunds, func(r periodRefund) bool { return r.PeriodRef == w.period.ref && r.Day == w.day })
		if i < 0 {
			i = len(refunds)
			refunds, lines = append(refunds, periodRefund{w.period.ref, event.UsageRefunded{Day: w.day}}), append(lines, nil)
		}
		lines[i] = append(lines[i], lineOf(w))
	}
	for i := range refunds {
		refunds[i].Counts = countsOf(mergeLines(lines[i]))
	}
	return refunds
}

// prepareAppend encodes one append of a tick, refunds, and a snapshot or a part of one if that is due.
func (s *activeStream) prepareAppend(ctx context.Context, tick tickDraft, refunds []periodRefund) (preparedAppend, error) {
	var prepared preparedAppend
	instanceID, sequence := s.meter.instanceID.String(), s.meter.sequence.Add(1)
	if len(tick.lines) > 0 {
		prepared.tickSequence = sequence
		prepared.events = append(prepared.events, s.buildTick(instanceID, sequence, tick))
	}
	for _, r := range refunds {
		r.InstanceID, r.Sequence = instanceID, s.meter.sequence.Add(1)
		prepared.events = append(prepared.events, s.fold.Event(r.PeriodRef, r.UsageRefunded))
	}
	if part := s.nextSnapshotPart(instanceID); part != nil {
		prepared.events = append(prepared.events, part)
	}
	var err error
	prepared.proposed, err = s.meter.encodeEvents(ctx, s.name, strconv.FormatInt(sequence, 10), prepared.events...)
	s.lastPrepared = prepared
	clear(s.tickVerdicts)
	return prepared, err
}

// buildTick returns a tick in the form of the stream. That of one period records what this instance knew of the contract's cap.
func (s *activeStream) buildTick(instanceID string, sequence int64, tick tickDraft) event.Event {
	switch fold := s.fold.(type) {
	case *usagefold.SharedState:
		return fold.BuildTick(event.SharedUsageTicked{InstanceID: instanceID, Sequence: sequence, Day: tick.day, AsOfRevision: int64(s.revision)}, tick.lines)
	default:
		state := s.stateOf(tick.lines[0].PeriodRef)
		limit, _, _ := state.Cap(state.Contract)
		return event.UsageTicked{
			InstanceID: instanceID, Sequence: sequence, Day: tick.day, Counts: countsOf(tick.lines),
			AsOfRevision: int64(s.revision), Used: state.Used(state.Contract), Cap: limit,
		}
	}
}

// nextSnapshotPart returns the snapshot, or its next part, that the next append is to have, or nil. A stream with events that this
// program cannot decode gets none from it.
func (s *activeStream) nextSnapshotPart(instanceID string) event.Event {
	switch fold := s.fold.(type) {
	case *usagefold.OwnState:
		if s.eventsSinceSnapshot >= eventsPerSnapshot && fold.State.IsOpen() {
			return fold.State.Snapshot(int64(s.revision))
		}
	case *usagefold.SharedState:
		if len(s.snapshotParts) == 0 && s.eventsSinceSnapshot >= EventsPerSharedSnapshot(fold.Items()) && len(s.undecodable) == 0 {
			for _, part := range fold.Snapshot(instanceID, int64(s.revision)) {
				s.snapshotParts = append(s.snapshotParts, part)
			}
		}
		if len(s.snapshotParts) > 0 {
			part := s.snapshotParts[0]
			s.snapshotParts = s.snapshotParts[1:]
			return part
		}
	}
	return nil
}

// appendUntilFolded sends an append until it is on the log and in the fold. No other batch of the stream is appended before its outcome
// is known, whatever time that takes. It gives up only if certainly nothing was added, if the period is retired, or
// if the meter ends; mayBeOnLog then reports whether the events may be on the log.
func (b *batch) appendUntilFolded(ctx context.Context, prepared preparedAppend) error {
	sentAt := time.Now()
	done, err := eventstore.AppendUntilKnown(ctx, b.meter.store, b.name, eventstore.Any, prepared.proposed,
		eventstore.Resend{FirstPause: firstRetryPause, MaxPause: retryInterval, OnFailure: b.reportDelay})
	b.waited += time.Since(sentAt)
	if b.mayBeOnLog = err == nil || errors.Is(err, eventstore.ErrUnknown); err != nil {
		return err
	}
	b.meter.clearSilence()
	for pause := firstRetryPause; ; pause = min(2*pause, retryInterval) {
		if err = b.foldAppended(ctx, prepared, done); err == nil {
			b.mayBeOnLog = false
			return nil
		}
		failedAt := time.Now()
		if errors.Is(err, errRetired) {
			takeErr := b.takeBack(ctx, prepared)
			if takeErr == nil {
				return err
			}
			err = takeErr
		}
		b.reportDelay(err)
		if !clock.Sleep(ctx, pause) {
			return err
		}
		b.waited += time.Since(failedAt)
	}
}

// takeBack refunds the tick of an append that is on the log, if the log was restored from an older backup after the stream was
// folded. Its requests are counted again with the next period, and only this instance knows what the tick was.
func (b *batch) takeBack(ctx context.Context, prepared preparedAppend) error {
	if prepared.tickSequence != 0 {
		restored, err := b.meter.readStream(ctx, b.name, prepared)
		if err != nil {
			return err
		}
		for _, r := range b.countedLines(restored) {
			r.InstanceID, r.Sequence = b.meter.instanceID.String(), b.meter.sequence.Add(1)
			name := fmt.Sprint("restored ", prepared.tickSequence, " ", r.Contract)
			if _, err := b.meter.appendNamed(ctx, b.name, name, eventstore.Any, b.fold.Event(r.PeriodRef, r.UsageRefunded)); err != nil {
				return err
			}
		}
	}
	b.mayBeOnLog, b.refunds = false, nil // those of the append are on the log
	return nil
}

// countedLines returns the refunds of what the batch's tick counted by the verdicts of a fold.
func (b *batch) countedLines(by *activeStream) []periodRefund {
	counted := batch{activeStream: b.activeStream}
	for _, w := range b.ticked {
		if v, ok := by.tickVerdicts[w.period.ref]; ok && v == usagefold.Counted {
			counted.refunds = append(counted.refunds, w)
		}
	}
	return counted.buildRefunds()
}

// reportDelay logs that the log makes a batch wait, if that is new, and begins to count a silence.
func (b *batch) reportDelay(err error) {
	b.meter.reportHealth(b.name, err)
	b.meter.logSilence()
}

// foldAppended folds events that are on the log. If others appended before them, it reads the stream.
func (b *batch) foldAppended(ctx context.Context, prepared preparedAppend, done eventstore.AppendResult) error {
	if done.Revision != b.revision+eventstore.Revision(len(prepared.events)) {
		return b.catchUpWithLog(ctx)
	}
	for _, e := range prepared.events {
		b.applyEvent(e, b.revision+1, time.Time{})
	}
	b.lastEventID = prepared.proposed[len(prepared.proposed)-1].ID
	b.isFresh = true // nothing was on the log that was not folded
	return nil
}

// appendNamed appends one event that no batch appends, and sends it again until its outcome is known. Its id follows from this
// instance, the stream and the name. With eventstore.Any the log may hold it twice: the folds count it once.
func (m *Meter) appendNamed(ctx context.Context, stream, name string, expected eventstore.Revision, e event.Event) (done eventstore.AppendResult, err error) {
	proposed, err := m.encodeEvents(ctx, stream, name, e)
	if err == nil {
		done, err = m.appendUntilKnown(ctx, stream, expected, proposed)
	}
	return done, err
}

// appendUntilKnown is eventstore.AppendUntilKnown with the pauses of this package.
func (m *Meter) appendUntilKnown(ctx context.Context, stream string, expected eventstore.Revision, proposed []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	return eventstore.AppendUntilKnown(ctx, m.store, stream, expected, proposed, eventstore.Resend{FirstPause: firstRetryPause, MaxPause: retryInterval})
}

// encodeEvents encodes one append. The ids of its events follow from this instance, the stream and a name.
func (m *Meter) encodeEvents(ctx context.Context, stream, name string, events ...event.Event) ([]eventstore.ProposedEvent, error) {
	id := uuid.NewSHA1(m.instanceID, []byte(stream+" "+name))
	return m.codec.Encode(ctx, stream, id, eventstore.Metadata{Actor: eventstore.SystemActor}, events)
}
