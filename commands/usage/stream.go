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

// activeStream is this instance's fold of one stream, with the requests that wait for it: the stream of one period, or one that
// periods of many contracts share. Only the worker that flushes the stream changes the fold, so batches run one after the other;
// everybody may read it under mu.
type activeStream struct {
	meter  *Meter
	name   string
	load   *load
	queue  queue
	usedAt atomic.Int64 // nanoseconds after Meter.epoch

	mu                  sync.RWMutex // of what follows
	fold                usagefold.StreamState
	revision            eventstore.Revision                   // of the last folded event
	lastEventID         uuid.UUID                             // of the same; uuid.Nil after a snapshot was restored. Used by batches alone
	eventsSinceSnapshot int                                   // folded since the last snapshot, or part of one, in the stream
	snapshotParts       []event.Event                         // of a snapshot that is being written, those that are not on the log
	waited              time.Duration                         // how long the worker has waited for the log since its batch began
	undecodable         map[event.PeriodRef]bool              // periods that have an event which cannot be decoded; only in a shared stream
	lastPrepared        preparedAppend                        // the last append of this instance
	tickVerdicts        map[event.PeriodRef]usagefold.Verdict // on the tick of lastPrepared
}

// activePeriod is a period whose requests this instance counts, in its own stream or in a shared one.
type activePeriod struct {
	*activeStream
	ref         event.PeriodRef
	period      plan.Period
	isEvicted   atomic.Bool
	openCharges atomic.Int64 // those that may still be refunded
	lastUsedAt  atomic.Int64 // nanoseconds after Meter.epoch

	mu           sync.Mutex
	capCheckedAt map[string]time.Duration // by account: when its quota was last read, after Meter.epoch
}

// noPeriod is the state of a period of which its stream holds nothing.
var noPeriod usagefold.PeriodState

// stateOf returns the state of a period. The caller holds mu, or is the worker that flushes the stream.
func (s *activeStream) stateOf(ref event.PeriodRef) *usagefold.PeriodState {
	if state := s.fold.Period(ref); state != nil {
		return state
	}
	return &noPeriod
}

// readState calls read with the state of the period, which it must not keep.
func (p *activePeriod) readState(read func(*usagefold.PeriodState)) {
	p.activeStream.mu.RLock()
	defer p.activeStream.mu.RUnlock()
	read(p.stateOf(p.ref))
}

// hasQuotaLeft answers from memory. True may be slightly out of date. The caller must confirm false by the log.
func (p *activePeriod) hasQuotaLeft(e entry) (hasLeft bool) {
	p.readState(func(s *usagefold.PeriodState) {
		_, v := s.Remaining(e.count.Account, e.count.Key)
		hasLeft = v == usagefold.Counted
	})
	return hasLeft
}

// quotaUsage returns the usage of an account as folded.
func (p *activePeriod) quotaUsage(account string) (u QuotaUsage) {
	p.readState(func(s *usagefold.PeriodState) {
		limit, _, _ := s.Cap(account)
		u = QuotaUsage{Used: s.Used(account), Limit: limit, Period: p.period}
	})
	return u
}

// hasAccount reports whether the account has a cap in the period. It has one from its first request on.
func (p *activePeriod) hasAccount(account string) (known bool) {
	p.readState(func(s *usagefold.PeriodState) { _, _, known = s.Cap(account) })
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

// isRetired reports whether no more requests may be counted through the period.
func (p *activePeriod) isRetired() bool { return p.isEvicted.Load() || p.activeStream.isRetired() }

// retirePeriod ends the use of a period for all but refunds, and that of its stream if that is the period's own.
func (p *activePeriod) retirePeriod() {
	p.isEvicted.Store(true)
	if !isShared(p.name) {
		p.queue.retire()
	}
}

// isShared reports whether a stream is one that the periods of several contracts share.
func isShared(stream string) bool {
	_, _, ok := usagefold.ParseSharedStreamName(stream)
	return ok
}

// readTimeout ends a read that a server never answers. It is longer than waitlimit.MaxSilence, because a store itself gives up
// a silent log, or an unanswered append, before that.
const readTimeout = waitlimit.MaxSilence + waitlimit.MaxSilence/2

// newFold returns the fold of a stream without events.
func newFold(stream string) usagefold.StreamState {
	if isShared(stream) {
		return &usagefold.SharedState{}
	}
	contract, first, _ := usagefold.ParseStreamName(stream)
	return &usagefold.OwnState{Ref: event.PeriodRef{Contract: contract, First: first}, State: &usagefold.PeriodState{}}
}

// readStream folds a stream, from its latest snapshot on. last is the append whose tick needs a verdict, or zero.
func (m *Meter) readStream(ctx context.Context, name string, last preparedAppend) (*activeStream, error) {
	s := &activeStream{meter: m, name: name, load: m.loads.ofStream(name), fold: newFold(name), revision: eventstore.NoStream, lastPrepared: last}
	var parts usagefold.SnapshotParts
	for r, err := range m.store.ReadStream(ctx, name, eventstore.End, eventstore.Backward) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		isRestored, err := s.restoreFrom(r, &parts)
		if err != nil {
			return nil, fmt.Errorf("%s@%d: %w", name, r.Revision, err)
		}
		if isRestored {
			break
		}
	}
	return s, s.catchUp(ctx)
}

// restoreFrom takes the next event of a backward read. Once that completes a snapshot, it restores the fold from it and returns true.
func (s *activeStream) restoreFrom(r eventstore.RecordedEvent, parts *usagefold.SnapshotParts) (isRestored bool, err error) {
	switch r.Type {
	case (event.UsageSnapshotTaken{}).EventType(), (event.SharedUsageSnapshotTaken{}).EventType():
	default:
		return false, nil
	}
	e, err := event.Decode(r.Type, r.Data)
	if err != nil {
		return false, err
	}
	switch e := e.(type) {
	case event.UsageSnapshotTaken:
		s.fold.(*usagefold.OwnState).State, s.revision = usagefold.RestorePeriod(e), eventstore.Revision(e.AsOfRevision)
		return true, nil
	case event.SharedUsageSnapshotTaken:
		if all, isComplete := parts.Add(e); isComplete {
			s.fold, s.revision = usagefold.RestoreShared(all), eventstore.Revision(e.AsOfRevision)
			return true, nil
		}
	}
	return false, nil
}

// catchUp folds the events that all instances have appended since. It fails with errRetired if the stream is not the one that
// was folded.
func (s *activeStream) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for r, err := range s.readNewEvents(ctx) {
		if err != nil {
			return fmt.Errorf("read %s: %w", s.name, err)
		}
		if r.Revision != s.revision+1 {
			return fmt.Errorf("%w: %s continues at %d after %d", errRetired, s.name, r.Revision, s.revision)
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil && !s.stopPeriodOf(r) {
			return fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
		}
		s.applyEvent(e, r.Revision, r.Time)
		s.lastEventID = r.ID
	}
	return nil
}

// stopPeriodOf is for an event that cannot be decoded: it stops counting in the period that the event names. It returns false if the event
// names none; then nothing can be counted in the whole stream.
func (s *activeStream) stopPeriodOf(r eventstore.RecordedEvent) bool {
	ref, ok := event.DecodePeriodRef(r.Data)
	if !ok || !isShared(s.name) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.undecodable == nil {
		s.undecodable = map[event.PeriodRef]bool{}
	}
	if !s.undecodable[ref] {
		s.meter.log.Error("requests of a contract are not served: its usage has an event that this program cannot decode",
			"contract", ref.Contract, "period", ref.First, "stream", r.Stream, "revision", r.Revision, "type", r.Type)
	}
	s.undecodable[ref] = true
	return true
}

// readNewEvents yields the events after the last folded one. It reads that one too: if another event is in its place, the log
// was restored from a backup, and the sequence ends with errRetired.
func (s *activeStream) readNewEvents(ctx context.Context) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		from, isVerified := s.revision+1, true
		if s.lastEventID != uuid.Nil {
			from, isVerified = s.revision, false
		}
		for r, err := range s.timeReads(s.meter.store.ReadStream(ctx, s.name, from, eventstore.Forward)) {
			switch {
			case err == nil && !isVerified && (r.Revision != s.revision || r.ID != s.lastEventID):
				yield(r, fmt.Errorf("%w: another event is at %s@%d", errRetired, s.name, s.revision))
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
			yield(eventstore.RecordedEvent{}, fmt.Errorf("%w: %s ends before %d", errRetired, s.name, s.revision))
		}
	}
}

// timeReads adds to waited how long the log takes to yield events.
func (s *activeStream) timeReads(events iter.Seq2[eventstore.RecordedEvent, error]) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		askedAt := time.Now()
		for r, err := range events {
			s.waited += time.Since(askedAt)
			if !yield(r, err) {
				return
			}
			askedAt = time.Now()
		}
		s.waited += time.Since(askedAt)
	}
}

// applyEvent folds one event, or nil for one that is passed over. recordedAt is the log's time of it; it may be zero for an event of this
// instance's own batch.
func (s *activeStream) applyEvent(e event.Event, revision eventstore.Revision, recordedAt time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := s.fold.Apply(e, recordedAt)
	s.revision = revision
	s.eventsSinceSnapshot++
	for _, part := range parts {
		if tick, ok := part.Event.(event.UsageTicked); ok {
			s.recordVerdict(part.PeriodRef, tick, part.Verdict)
		}
	}
	switch e.(type) {
	case event.UsageSnapshotTaken, event.SharedUsageSnapshotTaken:
		s.eventsSinceSnapshot = 0
	}
}

// recordVerdict keeps the first verdict on what the last tick of this instance has for a period. The log may hold the tick a second time,
// and that changes nothing.
func (s *activeStream) recordVerdict(ref event.PeriodRef, tick event.UsageTicked, v usagefold.Verdict) {
	if s.lastPrepared.tickSequence != tick.Sequence || tick.InstanceID != s.meter.instanceID.String() {
		return
	}
	if _, isKnown := s.tickVerdicts[ref]; !isKnown {
		if s.tickVerdicts == nil {
			s.tickVerdicts = map[event.PeriodRef]usagefold.Verdict{}
		}
		s.tickVerdicts[ref] = v
	}
}

// checkTickFolded fails with errRetired if the stream does not have the tick of an append that was folded: the log was restored in between.
func (s *activeStream) checkTickFolded(prepared preparedAppend) error {
	if prepared.tickSequence != 0 && len(s.tickVerdicts) == 0 {
		return fmt.Errorf("%w: %s does not hold what was appended to it", errRetired, s.name)
	}
	return nil
}
