package usage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// activePeriod is the ledger's own copy of one stream, with the requests that wait for it. Only a flight changes the fold;
// flights take turns.
type activePeriod struct {
	meter            *Meter
	stream           string
	period           plan.Period
	queue            queue
	openReservations atomic.Int64 // receipts that may still be refunded
	lastUsedAt       atomic.Int64 // when it was last asked for, Unix seconds

	mu                  sync.RWMutex // of what follows
	fold                *ledger.PeriodState
	revision            eventstore.Revision
	position            eventstore.Position  // of the event at revision
	lastEventID         uuid.UUID            // its id, noEvent where it was not read; flights alone use it
	eventsSinceSnapshot int                  // events since the last balance
	capCheckedAt        map[string]time.Time // by account: when its cap was last looked up
	lastPrepared        preparedAppend       // what was frozen last
	isTickFolded        bool                 // its tick was folded,
	tickVerdict         ledger.Verdict       // and came to this
}

func (p *activePeriod) hasQuotaLeft(e entry) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, v := p.fold.Remaining(e.count.Account, e.count.Key)
	return v == ledger.Counted
}

func (p *activePeriod) quotaUsage(account string) QuotaUsage {
	p.mu.RLock()
	defer p.mu.RUnlock()
	limit, _, _ := p.fold.Cap(account)
	return QuotaUsage{Used: p.fold.Used(account), Limit: limit, Position: p.position}
}

// billingDay is the day a request made now is kept under. A clock that is off does not carry it out of its period.
func (p *activePeriod) billingDay(now time.Time) plan.Date {
	switch {
	case now.Before(p.period.Start()):
		return p.period.First
	case now.Before(p.period.End()):
		return plan.DateOf(now)
	}
	return plan.DateOf(p.period.End().Add(-time.Nanosecond))
}

// catchUp folds what others, and this instance, have appended since. A stream that is not the one that was folded is
// errGone.
func (p *activePeriod) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for r, err := range func(yield func(eventstore.RecordedEvent, error) bool) { p.readNewEvents(ctx, yield) } {
		if err != nil {
			return fmt.Errorf("read %s: %w", p.stream, err)
		}
		if r.Revision != p.revision+1 {
			return fmt.Errorf("%w: %s goes on at %d after %d", errRetired, p.stream, r.Revision, p.revision)
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			return fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
		}
		p.applyEvent(e, r.Revision, r.Position, r.Time)
		p.lastEventID = r.ID
	}
	return nil
}

func (p *activePeriod) applyEvent(e event.Event, revision eventstore.Revision, position eventstore.Position, recorded time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.fold.Apply(e, recorded)
	p.revision, p.position = revision, position
	p.eventsSinceSnapshot++
	switch e := e.(type) {
	case event.UsageTicked:
		p.recordVerdict(e.InstanceID, e.Sequence, v)
	case event.UsageSnapshotTaken:
		p.eventsSinceSnapshot = 0
	}
}

// recordVerdict keeps the first verdict on the last tick of this instance: a repetition changes nothing.
func (p *activePeriod) recordVerdict(instanceID string, sequence int64, v ledger.Verdict) {
	if p.lastPrepared.tickSequence == sequence && !p.isTickFolded && instanceID == p.meter.instanceID.String() {
		p.isTickFolded, p.tickVerdict = true, v
	}
}

// verdictOf is what the tick of a batch came to, once that is folded.
func (p *activePeriod) verdictOf(prepared preparedAppend) (ledger.Verdict, error) {
	switch {
	case prepared.tickSequence == 0:
		return ledger.Counted, nil
	case !p.isTickFolded:
		return 0, fmt.Errorf("%w: %s does not hold what was appended to it", errRetired, p.stream)
	}
	return p.tickVerdict, nil
}

// preparedAppend is events that are frozen: whatever becomes of an append, the very same bytes are sent again.
type preparedAppend struct {
	proposed     []eventstore.ProposedEvent
	events       []event.Event
	tickSequence int64 // sequence of the tick; 0: there is none
}

// prepareAppend makes one append of a tick, refunds, and a balance when one is due.
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

// eventsPerSnapshot is after how many events a balance is due: a reader that begins there reads hardly more than that.
const eventsPerSnapshot = 1000

// encodeEvents makes one append whose ids follow from this incarnation, the stream and a name.
func (m *Meter) encodeEvents(ctx context.Context, stream, name string, events ...event.Event) ([]eventstore.ProposedEvent, error) {
	id := uuid.NewSHA1(m.instanceID, []byte(stream+" "+name))
	return m.codec.Encode(ctx, stream, id, eventstore.Metadata{Actor: "system"}, events)
}

// readTimeout ends a read that a server has forgotten. A log that is silent altogether is given up sooner by its store, and
// so is an append that got no answer.
const readTimeout = waitlimit.MaxSilence + waitlimit.MaxSilence/2

// appendUntilKnown appends a batch, and sends it again as long as its fate is not known and there is time.
func (m *Meter) appendUntilKnown(ctx context.Context, stream string, expected eventstore.Revision, proposed []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	isUnknown := false
	for pause := time.Millisecond; ; pause = min(2*pause, retryInterval) {
		done, err := m.store.Append(ctx, stream, expected, proposed)
		isUnknown = isUnknown || errors.Is(err, eventstore.ErrUnknown)
		switch {
		case err == nil || !isUnknown || errors.Is(err, eventstore.ErrConflict):
			return done, err
		case !sleep(ctx, pause):
			return done, fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
		}
	}
}
