package usage

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// batch is one turn of a book: it answers all that waited when it began, and are still there.
type batch struct {
	*activePeriod
	charges, refunds, probes []*pendingRequest
	isFresh                  bool // the fold holds all that was on the log when the flight began
	mayBeOnLog               bool // the last batch may be on the log, and was not folded
}

// flush answers waiters, however long the log takes: they mind their own time. It says whether it got through.
func (p *activePeriod) flush(pending []*pendingRequest) (ok bool) {
	b := batch{activePeriod: p}
	for _, w := range pending {
		switch {
		case w.kind == refundRequest:
			b.refunds = append(b.refunds, w)
		case w.isAbandoned():
		case w.kind == chargeRequest:
			b.charges = append(b.charges, w)
		default:
			b.probes = append(b.probes, w)
		}
	}
	err := b.answerAll(p.meter.runCtx)
	p.meter.reportHealth(p.stream, err)
	if err != nil {
		b.failRequests(err)
		return false
	}
	if b.isFresh {
		p.meter.clearSilence() // who left meanwhile may have begun to count a silence that was over
	}
	return true
}

// answerAll goes on until everybody is answered: a tick that others' ticks left no room for is made again, smaller.
func (b *batch) answerAll(ctx context.Context) error {
	for {
		if len(b.probes) > 0 && !b.isFresh {
			if err := b.catchUpWithLog(ctx); err != nil {
				return err
			}
		}
		counts, refused := b.draftTick()
		if len(refused) > 0 && !b.isFresh { // nobody is refused on what is merely remembered
			if err := b.catchUpWithLog(ctx); err != nil {
				return err
			}
			continue
		}
		b.respondRefused(refused)
		b.respondProbes()
		if len(counts) == 0 && len(b.refunds) == 0 {
			return nil
		}
		if err := b.appendTick(ctx, counts); err != nil {
			return err
		}
	}
}

func (b *batch) catchUpWithLog(ctx context.Context) error {
	err := b.catchUp(ctx)
	if b.isFresh = err == nil; b.isFresh {
		b.meter.clearSilence()
	}
	return err
}

// refusedRequest is a waiter that would not count, and why.
type refusedRequest struct {
	*pendingRequest
	verdict ledger.Verdict
}

// draftTick is the tick for those who would count if it were next in the stream, and the others.
func (b *batch) draftTick() (counts []event.UsageCount, refused []refusedRequest) {
	b.charges = slices.DeleteFunc(b.charges, (*pendingRequest).isAbandoned)
	d := b.fold.DraftTick()
	for _, w := range b.charges {
		if v := d.AddRequest(w.count.Account, w.count.Key); v != ledger.Counted {
			refused = append(refused, refusedRequest{w, v})
			continue
		}
		counts = addCount(counts, w.count)
	}
	slices.SortFunc(counts, func(a, b event.UsageCount) int {
		return cmp.Or(strings.Compare(a.Account, b.Account), strings.Compare(a.Key, b.Key), strings.Compare(a.Endpoint, b.Endpoint))
	})
	return counts, refused
}

// addCount adds a count to counts.
func addCount(counts []event.UsageCount, c event.UsageCount) []event.UsageCount {
	for i := range counts {
		existing := &counts[i]
		if existing.Account == c.Account && existing.Key == c.Key && existing.Endpoint == c.Endpoint {
			existing.Requests += c.Requests
			return counts
		}
	}
	return append(counts, c)
}

func (b *batch) respondRefused(refused []refusedRequest) {
	for _, r := range refused {
		b.charges = slices.DeleteFunc(b.charges, func(w *pendingRequest) bool { return w == r.pendingRequest })
		r.respond(b.refusalError(r.count.Account, r.verdict))
	}
}

func (b *batch) respondProbes() {
	for _, w := range b.probes {
		if _, v := b.fold.Remaining(w.count.Account, w.count.Key); v != ledger.Counted {
			w.respond(b.refusalError(w.count.Account, v))
		} else {
			w.respond(nil)
		}
	}
	b.probes = nil
}

// refusalError is why a request that the fold gives no room to is not served.
func (b *batch) refusalError(account string, v ledger.Verdict) error {
	switch v {
	case ledger.CapReached:
		return &QuotaExceededError{b.fold.LimitingCap(account)}
	case ledger.KeyRevoked, ledger.AccountClosed:
		return ErrRevoked
	case ledger.PeriodClosed:
		b.queue.retire()
		return errRetired
	default:
		return ErrUnavailable
	}
}

// appendTick makes the tick and the refunds durable and answers those it settles.
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

// appendUntilFolded sends a batch until it is on the log and folded. What became of it is found out before anything else is
// appended to the stream, whatever that takes; only where certainly nothing was added it gives up.
func (b *batch) appendUntilFolded(ctx context.Context, prepared preparedAppend) error {
	var done eventstore.AppendResult
	isAppended := false
	for pause := time.Millisecond; ; pause = min(2*pause, retryInterval) {
		var err error
		if !isAppended {
			if done, err = b.meter.store.Append(ctx, b.stream, eventstore.Any, prepared.proposed); err == nil {
				isAppended = true
				b.meter.clearSilence()
			}
		}
		if isAppended {
			err = b.foldAppended(ctx, prepared, done)
		}
		if b.mayBeOnLog = err != nil && (b.mayBeOnLog || isAppended || errors.Is(err, eventstore.ErrUnknown)); !b.mayBeOnLog || errors.Is(err, errRetired) {
			return err
		}
		b.meter.reportHealth(b.stream, err)
		b.meter.logSilence() // begins to count
		if !b.meter.sleep(pause) {
			return err
		}
	}
}

// foldAppended folds a batch that is on the log, and what others appended before it.
func (b *batch) foldAppended(ctx context.Context, prepared preparedAppend, done eventstore.AppendResult) error {
	if done.Revision != b.revision+eventstore.Revision(len(prepared.events)) {
		return b.catchUpWithLog(ctx)
	}
	for _, e := range prepared.events {
		b.applyEvent(e, b.revision+1, done.Position, time.Time{})
	}
	b.lastEventID = prepared.proposed[len(prepared.proposed)-1].ID
	return nil
}

// respondFolded answers who was in a batch that the fold now holds. Those whose tick is void stay, to be tried again; what was
// counted for those who left meanwhile is taken back.
func (b *batch) respondFolded(prepared preparedAppend) error {
	b.meter.eventsAppended.Add(int64(len(prepared.events)))
	for _, w := range b.refunds {
		w.respond(nil)
	}
	b.refunds = nil
	v, err := b.verdictOf(prepared)
	if err != nil || v != ledger.Counted {
		b.isFresh = true
		return err
	}
	var lateRefunds []*pendingRequest
	for _, w := range b.charges {
		if !w.respond(nil) {
			lateRefunds = append(lateRefunds, newRefund(w.entry))
		}
	}
	b.meter.requestsCounted.Add(int64(len(b.charges) - len(lateRefunds)))
	b.charges = nil
	b.queue.requeue(lateRefunds)
	b.meter.clearSilence() // as in fly
	return nil
}

// assignTickDay is the day of the tick, that of its last request. It becomes the day of them all, for their refunds.
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

// buildRefunds are the refunds, those of one day together.
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

// failRequests refuses who is still waiting to be served, unless the log was only away for a moment: then they are tried again,
// until they leave by themselves. Refunds are always tried again, but those that may be on the log.
func (b *batch) failRequests(cause error) {
	unanswered := slices.Concat(b.charges, b.probes)
	if b.mayBeOnLog {
		b.refunds = nil
	} else if isTransient(cause) && b.meter.logSilence() < waitlimit.MaxSilence {
		b.queue.requeue(slices.Concat(b.refunds, unanswered))
		return
	}
	response := ErrUnavailable
	if errors.Is(cause, errRetired) {
		b.queue.retire()
		if !b.mayBeOnLog {
			response = errRetired
		}
	}
	for _, w := range unanswered {
		w.respond(response)
	}
	b.queue.requeue(b.refunds)
}
