package usage

import (
	"context"
	"errors"
	"slices"
	"time"

	"lieudit/eventstore/clock"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// maxIdleWorkers is how many workers wait for the next stream. They are kept because their stacks have grown already.
const maxIdleWorkers = 64

// startFlush gives a stream to an idle worker, or to a new one. After the meter's end it answers the waiting
// requests itself, with ErrUnavailable.
func (m *Meter) startFlush(s *activeStream) {
	select {
	case m.idleWorkers <- s:
	default:
		if !m.goroutines.start(func() { m.runWorker(s) }) {
			s.flushUntilEmpty()
		}
	}
}

// runWorker flushes one stream after the other.
func (m *Meter) runWorker(s *activeStream) {
	for {
		s.flushUntilEmpty()
		if m.idleWorkerCount.Add(1) > maxIdleWorkers {
			m.idleWorkerCount.Add(-1)
			return
		}
		select {
		case s = <-m.idleWorkers:
			m.idleWorkerCount.Add(-1)
		case <-m.servingCtx.Done():
			return
		}
	}
}

// flushUntilEmpty makes batches for as long as requests wait for the stream. Only one worker at a time runs it for a stream:
// see queue.isFlushing.
func (s *activeStream) flushUntilEmpty() {
	for succeeded := true; ; {
		pending := s.queue.takePending(succeeded)
		if len(pending) == 0 {
			return
		}
		if s.meter.runCtx.Err() != nil { // the meter has ended
			for _, w := range pending {
				w.respond(ErrUnavailable)
			}
			continue
		}
		if succeeded = s.flushBatch(pending); succeeded {
			s.queue.awaitMore(len(pending))
		} else {
			clock.Sleep(s.meter.runCtx, retryInterval)
		}
	}
}

// batch is the requests of one stream that are answered together: all those that waited when it began.
type batch struct {
	*activeStream
	charges, refunds, probes []*pendingRequest // those that are not answered yet
	ticked                   []*pendingRequest // the charges that the tick has
	isFresh                  bool              // the fold has all that was on the log when the batch began
	mayBeOnLog               bool              // the last append may be on the log but is not folded
}

// flushBatch answers requests, however long the log takes: a request whose time is over ends its own wait. It returns false if the
// batch failed.
func (s *activeStream) flushBatch(pending []*pendingRequest) (succeeded bool) {
	b := batch{activeStream: s}
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
	startedAt := time.Now()
	s.waited = 0
	err := b.answerAll(s.meter.runCtx)
	s.load.work.Add(int64(time.Since(startedAt) - s.waited))
	s.meter.reportHealth(s.name, err)
	if err != nil {
		b.failRequests(err)
		return false
	}
	if b.isFresh {
		s.meter.clearSilence() // a request that gave up meanwhile may have begun to count a silence that has ended
	}
	return true
}

// answerAll appends ticks until every request is answered. A tick that events of other instances have made void is made
// again without the requests that would not count. No request is refused on memory alone: the log is read first, or a tick is appended,
// which shows as much of it. So one account whose quota is used up does not make the others wait for a read.
func (b *batch) answerAll(ctx context.Context) error {
	for {
		tick, refused := b.draftTick()
		appends := len(tick.lines) > 0 || len(b.refunds) > 0
		switch needsLog := len(refused) > 0 || len(b.probes) > 0; {
		case b.isFresh:
			b.respondRefused(refused)
			b.respondProbes()
		case needsLog && !appends:
			if err := b.catchUpWithLog(ctx); err != nil {
				return err
			}
			continue
		}
		if !appends {
			return nil
		}
		if err := b.appendTick(ctx, tick); err != nil {
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

// tickDraft is what a tick is to be made of: lines of one day, sorted.
type tickDraft struct {
	day   plan.Date
	lines []usagefold.SharedLine
}

// draftTick returns the lines of the requests that would count if their tick were next in the stream, and the requests that would not.
// A tick is of one day, that of its first request: requests of another day wait for the next tick.
func (b *batch) draftTick() (tick tickDraft, refused []refusedRequest) {
	b.charges = slices.DeleteFunc(b.charges, (*pendingRequest).isAbandoned)
	b.ticked = b.ticked[:0]
	drafts := map[event.PeriodRef]*usagefold.TickDraft{}
	for _, w := range b.charges {
		if len(b.ticked) > 0 && w.day != tick.day {
			continue
		}
		if b.undecodable[w.period.ref] {
			refused = append(refused, refusedRequest{w, usagefold.Unnumbered})
			continue
		}
		draft := drafts[w.period.ref]
		if draft == nil {
			draft = b.stateOf(w.period.ref).DraftTick()
			drafts[w.period.ref] = draft
		}
		if v := draft.AddRequests(w.count.Account, w.count.Key, w.count.Requests); v != usagefold.Counted {
			refused = append(refused, refusedRequest{w, v})
			continue
		}
		tick.day = w.day
		b.ticked = append(b.ticked, w)
		tick.lines = append(tick.lines, lineOf(w))
	}
	tick.lines = mergeLines(tick.lines)
	return tick, refused
}

// lineOf returns the line of a request.
func lineOf(w *pendingRequest) usagefold.SharedLine {
	return usagefold.SharedLine{
		UsedKey:  event.UsedKey{PeriodRef: w.period.ref, Account: w.count.Account, Key: w.count.Key},
		Endpoint: w.count.Endpoint, Requests: w.count.Requests,
	}
}

// mergeLines sorts lines and adds up those of the same key and endpoint.
func mergeLines(lines []usagefold.SharedLine) []usagefold.SharedLine {
	slices.SortFunc(lines, usagefold.CompareLines)
	merged := lines[:0]
	for _, l := range lines {
		if n := len(merged); n > 0 && usagefold.CompareLines(merged[n-1], l) == 0 {
			merged[n-1].Requests += l.Requests
			continue
		}
		merged = append(merged, l)
	}
	return merged
}

// countsOf returns lines as the counts of one period.
func countsOf(lines []usagefold.SharedLine) []event.UsageCount {
	counts := make([]event.UsageCount, len(lines))
	for i, l := range lines {
		counts[i] = event.UsageCount{Account: l.Account, Key: l.Key, Endpoint: l.Endpoint, Requests: l.Requests}
	}
	return counts
}

// respondRefused answers requests that would not count, and takes them out of the batch.
func (b *batch) respondRefused(refused []refusedRequest) {
	for _, r := range refused {
		b.charges = removeRequest(b.charges, r.pendingRequest)
		r.respond(b.refusalError(r.pendingRequest, r.verdict))
	}
}

// removeRequest takes a request out of a batch. Requests are answered in their order, so it is one of the first.
func removeRequest(all []*pendingRequest, w *pendingRequest) []*pendingRequest {
	if len(all) > 0 && all[0] == w {
		return all[1:]
	}
	return slices.DeleteFunc(all, func(other *pendingRequest) bool { return other == w })
}

// respondProbes is called on a fresh fold, so that the answers include what all instances have counted.
func (b *batch) respondProbes() {
	for _, w := range b.probes {
		if w.kind == foldRequest {
			w.respond(nil)
		} else if _, v := b.stateOf(w.period.ref).Remaining(w.count.Account, w.count.Key); v != usagefold.Counted {
			w.respond(b.refusalError(w, v))
		} else {
			w.respond(nil)
		}
	}
	b.probes = nil
}

// refusalError returns the error of requests that do not count. A period that has ended is retired: they are tried again
// with the next one.
func (b *batch) refusalError(w *pendingRequest, v usagefold.Verdict) error {
	switch v {
	case usagefold.CapReached:
		return &QuotaExceededError{b.stateOf(w.period.ref).LimitingCap(w.count.Account, max(w.count.Requests, 1))}
	case usagefold.KeyRevoked, usagefold.AccountClosed:
		return ErrRevoked
	case usagefold.PeriodClosed:
		w.period.retirePeriod()
		return errRetired
	default:
		return ErrUnavailable
	}
}

// respondFolded answers the requests of an append that is in the fold. If their lines are void, they stay in the batch for
// another tick. What was counted for requests that were abandoned meanwhile is refunded.
func (b *batch) respondFolded(prepared preparedAppend) error {
	b.load.events.Add(int64(len(prepared.events)))
	for _, w := range b.refunds {
		w.respond(nil)
	}
	b.refunds = nil
	if err := b.checkTickFolded(prepared); err != nil {
		b.isFresh = true
		return err
	}
	var lateRefunds []*pendingRequest
	answered := 0
	for _, w := range b.ticked {
		if b.tickVerdicts[w.period.ref] != usagefold.Counted {
			b.isFresh = true
			continue
		}
		counted, period := w.entry, w.period // copies: the request may be in the pool again once it is answered
		answered++
		b.charges = removeRequest(b.charges, w)
		if !w.respond(nil) {
			lateRefunds = append(lateRefunds, newRefund(period, counted))
			continue
		}
		b.load.requests.Add(counted.count.Requests)
	}
	b.queue.requeue(lateRefunds)
	if answered > 0 {
		b.meter.clearSilence() // the log answered after reportDelay counted a silence
	}
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
