package usage

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// activePeriod is this instance's fold of one period's stream, with the requests that wait for it. Only the worker that
// flushes the period changes the fold, so batches run one after the other; everybody may read it under mu.
type activePeriod struct {
	meter       *Meter
	stream      string
	period      plan.Period
	queue       queue
	openCharges atomic.Int64 // those that may still be refunded
	lastUsedAt  atomic.Int64 // nanoseconds after Meter.epoch

	mu                  sync.RWMutex // of what follows
	fold                *usagefold.PeriodState
	revision            eventstore.Revision      // of the last folded event
	lastEventID         uuid.UUID                // of the same; uuid.Nil after a snapshot was restored. Used by batches alone
	eventsSinceSnapshot int                      // folded since the last snapshot in the stream
	capCheckedAt        map[string]time.Duration // by account: when its quota was last read, after Meter.epoch
	lastPrepared        preparedAppend           // the last append of this instance
	isTickFolded        bool                     // the tick of lastPrepared is in the fold
	tickVerdict         usagefold.Verdict        // the fold's verdict on that tick, if isTickFolded
}

// hasQuotaLeft answers from memory. True may be slightly out of date. The caller must confirm false by the log.
func (p *activePeriod) hasQuotaLeft(e entry) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, v := p.fold.Remaining(e.count.Account, e.count.Key)
	return v == usagefold.Counted
}

// quotaUsage returns the usage of an account as folded.
func (p *activePeriod) quotaUsage(account string) QuotaUsage {
	p.mu.RLock()
	defer p.mu.RUnlock()
	limit, _, _ := p.fold.Cap(account)
	return QuotaUsage{Used: p.fold.Used(account), Limit: limit, Period: p.period}
}

// hasAccount reports whether the account has a cap in the period. It has one from its first request on.
func (p *activePeriod) hasAccount(account string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, _, known := p.fold.Cap(account)
	return known
}

// clamp returns an instant, or the nearest instant of the period. They differ if this instance's clock is wrong.
func (p *activePeriod) clamp(now time.Time) time.Time {
	if start := p.period.Start(); now.Before(start) {
		return start
	}
	if end := p.period.End(); !now.Before(end) {
		return end.Add(-time.Nanosecond)
	}
	return now
}

// billingDay returns the day under which a request made now is billed. It is always a day of the period.
func (p *activePeriod) billingDay(now time.Time) plan.Date { return plan.DateOf(p.clamp(now)) }

// readTimeout ends a read that a server never answers. It is longer than waitlimit.MaxSilence, because a store itself gives up
// a silent log, or an unanswered append, before that.
const readTimeout = waitlimit.MaxSilence + waitlimit.MaxSilence/2

// catchUp folds the events that all instances have appended since. It fails with errRetired if the stream is not the one that
// was folded.
func (p *activePeriod) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for r, err := range p.readNewEvents(ctx) {
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
		p.applyEvent(e, r.Revision, r.Time)
		p.lastEventID = r.ID
	}
	return nil
}

// readNewEvents yields the events after the last folded one. It reads that one too: if another event is in its place, the log
// was restored from a backup, and the sequence ends with errRetired.
func (p *activePeriod) readNewEvents(ctx context.Context) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		from, isVerified := p.revision+1, true
		if p.lastEventID != uuid.Nil {
			from, isVerified = p.revision, false
		}
		for r, err := range p.meter.store.ReadStream(ctx, p.stream, from, eventstore.Forward) {
			switch {
			case err == nil && !isVerified && (r.Revision != p.revision || r.ID != p.lastEventID):
				yield(r, fmt.Errorf("%w: another event is at %s@%d", errRetired, p.stream, p.revision))
				return
			case err == nil && !isVerified:
				isVerified = true
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
		if !isVerified {
			yield(eventstore.RecordedEvent{}, fmt.Errorf("%w: %s ends before %d", errRetired, p.stream, p.revision))
		}
	}
}

// applyEvent folds one event. recordedAt is the log's time of it; it may be zero for an event of this instance's own batch.
func (p *activePeriod) applyEvent(e event.Event, revision eventstore.Revision, recordedAt time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.fold.Apply(e, recordedAt)
	p.revision = revision
	p.eventsSinceSnapshot++
	switch e := e.(type) {
	case event.UsageTicked:
		p.recordVerdict(e.InstanceID, e.Sequence, v)
	case event.UsageSnapshotTaken:
		p.eventsSinceSnapshot = 0
	}
}

// recordVerdict keeps the first verdict on the last tick of this instance. The log may hold the tick a second time, and that
// changes nothing.
func (p *activePeriod) recordVerdict(instanceID string, sequence int64, v usagefold.Verdict) {
	if p.lastPrepared.tickSequence == sequence && !p.isTickFolded && instanceID == p.meter.instanceID.String() {
		p.isTickFolded, p.tickVerdict = true, v
	}
}

// verdictOf returns usagefold's verdict on the tick of an append that was folded. It fails with errRetired if the stream does
// not have the tick: the log was restored in between.
func (p *activePeriod) verdictOf(prepared preparedAppend) (usagefold.Verdict, error) {
	switch {
	case prepared.tickSequence == 0:
		return usagefold.Counted, nil
	case !p.isTickFolded:
		return 0, fmt.Errorf("%w: %s does not hold what was appended to it", errRetired, p.stream)
	}
	return p.tickVerdict, nil
}
