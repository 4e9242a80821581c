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
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

const (
	// firstRetryPause and retryInterval are the shortest and the longest pause between two attempts on the log. Pauses double.
	firstRetryPause = time.Millisecond
	retryInterval   = 50 * time.Millisecond

	// eventsPerSnapshot is the number of events after which a period's stream gets a snapshot. A reader that begins at the last
	// snapshot reads hardly more events than that.
	eventsPerSnapshot = 1000
)

// preparedAppend is the encoded events of one append. The same bytes are sent until their outcome is known.
type preparedAppend struct {
	proposed     []eventstore.ProposedEvent
	events       []event.Event
	tickSequence int64 // sequence of the tick; 0 if there is none
}

// appendTick makes a tick of counts and the batch's refunds durable, folds them, and answers those that they settle.
func (b *batch) appendTick(ctx context.Context, counts []event.UsageCount) error {
	prepared, err := b.prepareAppend(ctx, counts, b.assignTickDay(), b.buildRefunds())
	if err == nil {
		err = b.appendUntilFolded(ctx, prepared)
	}
	if err != nil {
		return err
	}
	return b.respondFolded(prepared)
}

// assignTickDay returns the day of the tick, which is that of its last request. It becomes the day of all of them, since a
// refund names the day on which its request was counted. Without requests no tick is made, and the day is not used.
func (b *batch) assignTickDay() plan.Date {
	n := len(b.charges)
	if n == 0 {
		return b.period.First
	}
	day := b.charges[n-1].day
	for _, w := range b.charges {
		w.day = day
	}
	return day
}

// buildRefunds returns the refunds of the batch, one event a day.
func (b *batch) buildRefunds() []event.UsageRefunded {
	var refunds []event.UsageRefunded
	for _, w := range b.refunds {
		i := slices.IndexFunc(refunds, func(r event.UsageRefunded) bool { return r.Day == w.day })
		if i < 0 {
			i = len(refunds)
			refunds = append(refunds, event.UsageRefunded{Day: w.day})
		}
		refunds[i].Counts = addCount(refunds[i].Counts, w.count)
	}
	return refunds
}

// prepareAppend encodes one append of a tick, refunds, and a snapshot if one is due. The tick records what this instance knew of the
// contract's cap.
func (p *activePeriod) prepareAppend(ctx context.Context, counts []event.UsageCount, day plan.Date, refunds []event.UsageRefunded) (preparedAppend, error) {
	var prepared preparedAppend
	instanceID, sequence := p.meter.instanceID.String(), p.meter.sequence.Add(1)
	if len(counts) > 0 {
		limit, _, _ := p.fold.Cap(p.fold.Contract)
		prepared.tickSequence = sequence
		prepared.events = append(prepared.events, event.UsageTicked{
			InstanceID: instanceID, Sequence: sequence, Day: day, Counts: counts,
			AsOfRevision: int64(p.revision), Used: p.fold.Used(p.fold.Contract), Cap: limit,
		})
	}
	for _, r := range refunds {
		r.InstanceID, r.Sequence = instanceID, p.meter.sequence.Add(1)
		prepared.events = append(prepared.events, r)
	}
	if p.eventsSinceSnapshot >= eventsPerSnapshot && p.fold.IsOpen() {
		prepared.events = append(prepared.events, p.fold.Snapshot(int64(p.revision)))
	}
	var err error
	prepared.proposed, err = p.meter.encodeEvents(ctx, p.stream, strconv.FormatInt(sequence, 10), prepared.events...)
	p.lastPrepared, p.isTickFolded = prepared, false
	return prepared, err
}

// appendUntilFolded sends an append until it is on the log and in the fold. No other batch of the period is appended before its outcome
// is known, whatever time that takes. It gives up only if certainly nothing was added, if the period is retired, or
// if the meter ends; mayBeOnLog then reports whether the events may be on the log.
func (b *batch) appendUntilFolded(ctx context.Context, prepared preparedAppend) error {
	done, err := eventstore.AppendUntilKnown(ctx, b.meter.store, b.stream, eventstore.Any, prepared.proposed,
		eventstore.Resend{FirstPause: firstRetryPause, MaxPause: retryInterval, OnFailure: b.reportDelay})
	if b.mayBeOnLog = err == nil || errors.Is(err, eventstore.ErrUnknown); err != nil {
		return err
	}
	b.meter.clearSilence()
	for pause := firstRetryPause; ; pause = min(2*pause, retryInterval) {
		if err = b.foldAppended(ctx, prepared, done); err == nil {
			b.mayBeOnLog = false
			return nil
		}
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
	}
}

// takeBack refunds the tick of an append that is on the log, if the log was restored from an older backup after the period was
// folded. Its requests are counted again with the next period, and only this instance knows what the tick was.
func (b *batch) takeBack(ctx context.Context, prepared preparedAppend) error {
	if prepared.tickSequence != 0 {
		restored, err := b.meter.readPeriod(ctx, b.stream, prepared)
		if err != nil {
			return err
		}
		if restored.isTickFolded && restored.tickVerdict == usagefold.Counted {
			tick := prepared.events[0].(event.UsageTicked)
			refund := event.UsageRefunded{InstanceID: tick.InstanceID, Sequence: b.meter.sequence.Add(1), Day: tick.Day, Counts: tick.Counts}
			if err := b.meter.appendNamed(ctx, b.stream, fmt.Sprint("restored ", tick.Sequence), eventstore.Any, refund); err != nil {
				return err
			}
		}
	}
	b.mayBeOnLog, b.refunds = false, nil // those of the append are on the log
	return nil
}

// reportDelay logs that the log makes a batch wait, if that is new, and begins to count a silence.
func (b *batch) reportDelay(err error) {
	b.meter.reportHealth(b.stream, err)
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
	return nil
}

// appendNamed appends one event that no batch appends, and sends it again until its outcome is known. Its id follows from this
// instance, the stream and the name. With eventstore.Any the log may hold it twice: the folds count it once.
func (m *Meter) appendNamed(ctx context.Context, stream, name string, expected eventstore.Revision, e event.Event) error {
	proposed, err := m.encodeEvents(ctx, stream, name, e)
	if err == nil {
		_, err = m.appendUntilKnown(ctx, stream, expected, proposed)
	}
	return err
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
