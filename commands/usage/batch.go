package usage

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"

	"lieudit/eventstore/clock"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/event"
	"lieudit/schemas/usagefold"
)

// maxIdleWorkers is how many workers wait for the next period. They are kept because their stacks have grown already.
const maxIdleWorkers = 64

// startFlush gives a period to an idle worker, or to a new one.
func (m *Meter) startFlush(p *activePeriod) {
	select {
	case m.idleWorkers <- p:
	default:
		m.goroutines.Go(func() { m.runWorker(p) })
	}
}

// runWorker flushes one period after the other.
func (m *Meter) runWorker(p *activePeriod) {
	for {
		p.flushUntilEmpty()
		if m.idleWorkerCount.Add(1) > maxIdleWorkers {
			m.idleWorkerCount.Add(-1)
			return
		}
		select {
		case p = <-m.idleWorkers:
			m.idleWorkerCount.Add(-1)
		case <-m.servingCtx.Done():
			return
		}
	}
}

// flushUntilEmpty makes batches for as long as requests wait for the period. Only one worker at a time runs it for a period:
// see queue.isFlushing.
func (p *activePeriod) flushUntilEmpty() {
	for succeeded := true; ; {
		pending := p.queue.takePending(succeeded)
		if len(pending) == 0 {
			return
		}
		if p.meter.runCtx.Err() != nil { // the meter has ended
			for _, w := range pending {
				w.respond(ErrUnavailable)
			}
			continue
		}
		if succeeded = p.flushBatch(pending); succeeded {
			runtime.Gosched() // requests that are about to come share the next batch: a third fewer events under 64 connections
		} else {
			clock.Sleep(p.meter.runCtx, retryInterval)
		}
	}
}

// batch is the requests of one period that are answered together: all those that waited when it began.
type batch struct {
	*activePeriod
	charges, refunds, probes []*pendingRequest // those that are not answered yet
	isFresh                  bool              // the fold has all that was on the log when the batch began
	mayBeOnLog               bool              // the last append may be on the log but is not folded
}

// flushBatch answers requests, however long the log takes: a request whose time is over ends its own wait. It returns false if the
// batch failed.
func (p *activePeriod) flushBatch(pending []*pendingRequest) (succeeded bool) {
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
		p.meter.clearSilence() // a request that gave up meanwhile may have begun to count a silence that has ended
	}
	return true
}

// answerAll appends ticks until every request is answered. A tick that events of other instances have made void is made
// again without the requests that would not count. No request is refused on memory alone: the log is read first.
func (b *batch) answerAll(ctx context.Context) error {
	for {
		if len(b.probes) > 0 && !b.isFresh {
			if err := b.catchUpWithLog(ctx); err != nil {
				return err
			}
		}
		counts, refused := b.draftTick()
		if len(refused) > 0 && !b.isFresh {
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

// catchUpWithLog makes the batch fresh. A log that can be read is not silent.
func (b *batch) catchUpWithLog(ctx context.Context) error {
	err := b.catchUp(ctx)
	if b.isFresh = err == nil; b.isFresh {
		b.meter.clearSilence()
	}
	return err
}

// refusedRequest is a request that would not count, and why.
type refusedRequest struct {
	*pendingRequest
	verdict usagefold.Verdict
}

// draftTick returns the counts of the requests that would count if their tick were next in the stream, and the other requests.
func (b *batch) draftTick() (counts []event.UsageCount, refused []refusedRequest) {
	b.charges = slices.DeleteFunc(b.charges, (*pendingRequest).isAbandoned)
	d := b.fold.DraftTick()
	for _, w := range b.charges {
		if v := d.AddRequests(w.count.Account, w.count.Key, w.count.Requests); v != usagefold.Counted {
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

// addCount adds a count to those of the same account, key and endpoint. A batch has so few that a map would be slower.
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

// respondRefused answers requests that would not count, and takes them out of the batch.
func (b *batch) respondRefused(refused []refusedRequest) {
	for _, r := range refused {
		b.charges = slices.DeleteFunc(b.charges, func(w *pendingRequest) bool { return w == r.pendingRequest })
		r.respond(b.refusalError(r.count, r.verdict))
	}
}

// respondProbes is called on a fresh fold, so that the answers include what all instances have counted.
func (b *batch) respondProbes() {
	for _, w := range b.probes {
		if _, v := b.fold.Remaining(w.count.Account, w.count.Key); v != usagefold.Counted {
			w.respond(b.refusalError(w.count, v))
		} else {
			w.respond(nil)
		}
	}
	b.probes = nil
}

// refusalError returns the error of requests that do not count. A closed period is retired: they are tried again
// with the next one.
func (b *batch) refusalError(c event.UsageCount, v usagefold.Verdict) error {
	switch v {
	case usagefold.CapReached:
		return &QuotaExceededError{b.fold.LimitingCap(c.Account, max(c.Requests, 1))}
	case usagefold.KeyRevoked, usagefold.AccountClosed:
		return ErrRevoked
	case usagefold.PeriodClosed:
		b.queue.retire()
		return errRetired
	default:
		return ErrUnavailable
	}
}

// respondFolded answers the requests of an append that is in the fold. If the tick is void, its requests stay in the batch for
// another tick. What was counted for requests that were abandoned meanwhile is refunded.
func (b *batch) respondFolded(prepared preparedAppend) error {
	b.meter.eventsAppended.Add(int64(len(prepared.events)))
	for _, w := range b.refunds {
		w.respond(nil)
	}
	b.refunds = nil
	v, err := b.verdictOf(prepared)
	if err != nil || v != usagefold.Counted {
		b.isFresh = true
		return err
	}
	var lateRefunds []*pendingRequest
	for _, w := range b.charges {
		counted := w.entry // a copy: the request may be in the pool again once it is answered
		if !w.respond(nil) {
			lateRefunds = append(lateRefunds, newRefund(counted))
			continue
		}
		b.meter.requestsCounted.Add(counted.count.Requests)
	}
	b.charges = nil
	b.queue.requeue(lateRefunds)
	b.meter.clearSilence() // the log answered after reportDelay counted a silence
	return nil
}

// failRequests ends a batch that failed. If the log was unavailable for a moment, its requests are tried again with the next
// batch until they give up by themselves; otherwise they are refused. Refunds are always tried again, except for those that may
// be on the log: they must not be made twice, since the instance would refund more than it counted.
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
