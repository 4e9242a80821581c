package usage

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/waiting"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// flight is one turn of a book: it answers all that waited when it began, and are still there.
type flight struct {
	*book
	charges, refunds, probes []*waiter
	fresh                    bool // the fold holds all that was on the log when the flight began
	sent                     bool // the last batch may be on the log, and was not folded
}

// fly answers waiters, however long the log takes: they mind their own time. It says whether it got through.
func (b *book) fly(all []*waiter) (ok bool) {
	f := flight{book: b}
	for _, w := range all {
		switch {
		case w.kind == refund:
			f.refunds = append(f.refunds, w)
		case w.hasLeft():
		case w.kind == charge:
			f.charges = append(f.charges, w)
		default:
			f.probes = append(f.probes, w)
		}
	}
	err := f.run(b.ledger.life)
	b.ledger.report(b.stream, err)
	if err != nil {
		f.fail(err)
		return false
	}
	if f.fresh {
		b.ledger.heard() // who left meanwhile may have begun to count a silence that was over
	}
	return true
}

// run goes on until everybody is answered: a tick that others' ticks left no room for is made again, smaller.
func (f *flight) run(ctx context.Context) error {
	for {
		if len(f.probes) > 0 && !f.fresh {
			if err := f.refresh(ctx); err != nil {
				return err
			}
		}
		counts, refused := f.draft()
		if len(refused) > 0 && !f.fresh { // nobody is refused on what is merely remembered
			if err := f.refresh(ctx); err != nil {
				return err
			}
			continue
		}
		f.refuse(refused)
		f.answerProbes()
		if len(counts) == 0 && len(f.refunds) == 0 {
			return nil
		}
		if err := f.append(ctx, counts); err != nil {
			return err
		}
	}
}

func (f *flight) refresh(ctx context.Context) error {
	err := f.forward(ctx)
	if f.fresh = err == nil; f.fresh {
		f.ledger.heard()
	}
	return err
}

// refusal is a waiter that would not count, and why.
type refusal struct {
	*waiter
	why ledger.Verdict
}

// draft is the tick for those who would count if it were next in the stream, and the others.
func (f *flight) draft() (counts []event.UsageCount, refused []refusal) {
	f.charges = slices.DeleteFunc(f.charges, (*waiter).hasLeft)
	d := f.fold.Draft()
	for _, w := range f.charges {
		if v := d.Take(w.count.Account, w.count.Key); v != ledger.Counts {
			refused = append(refused, refusal{w, v})
			continue
		}
		counts = plus(counts, w.count)
	}
	slices.SortFunc(counts, func(a, b event.UsageCount) int {
		return cmp.Or(strings.Compare(a.Account, b.Account), strings.Compare(a.Key, b.Key), strings.Compare(a.Endpoint, b.Endpoint))
	})
	return counts, refused
}

// plus adds a count to counts.
func plus(counts []event.UsageCount, c event.UsageCount) []event.UsageCount {
	for i := range counts {
		at := &counts[i]
		if at.Account == c.Account && at.Key == c.Key && at.Endpoint == c.Endpoint {
			at.Requests += c.Requests
			return counts
		}
	}
	return append(counts, c)
}

func (f *flight) refuse(refused []refusal) {
	for _, r := range refused {
		f.charges = slices.DeleteFunc(f.charges, func(w *waiter) bool { return w == r.waiter })
		r.answer(f.problem(r.count.Account, r.why))
	}
}

func (f *flight) answerProbes() {
	for _, w := range f.probes {
		if _, v := f.fold.Room(w.count.Account, w.count.Key); v != ledger.Counts {
			w.answer(f.problem(w.count.Account, v))
		} else {
			w.answer(nil)
		}
	}
	f.probes = nil
}

// problem is why a request that the fold gives no room to is not served.
func (f *flight) problem(account string, v ledger.Verdict) error {
	switch v {
	case ledger.Spent:
		return &SpentError{f.fold.Limit(account)}
	case ledger.Revoked, ledger.Shut:
		return ErrRevoked
	case ledger.Ended:
		f.queue.close()
		return errGone
	default:
		return ErrUnavailable
	}
}

// append makes the tick and the refunds durable and answers those it settles.
func (f *flight) append(ctx context.Context, counts []event.UsageCount) error {
	p, err := f.freeze(ctx, counts, f.today(), f.refundEvents())
	if err == nil {
		err = f.land(ctx, p)
	}
	if err != nil {
		return err
	}
	return f.settle(p)
}

// land sends a batch until it is on the log and folded. What became of it is found out before anything else is
// appended to the stream, whatever that takes; only where certainly nothing was added it gives up.
func (f *flight) land(ctx context.Context, p batch) error {
	var done eventstore.Committed
	stands := false
	for pause := time.Millisecond; ; pause = min(2*pause, retryAfter) {
		var err error
		if !stands {
			if done, err = f.ledger.store.Append(ctx, f.stream, eventstore.Any, p.proposed); err == nil {
				stands = true
				f.ledger.heard()
			}
		}
		if stands {
			err = f.landed(ctx, p, done)
		}
		if f.sent = err != nil && (f.sent || stands || errors.Is(err, eventstore.ErrUnknown)); !f.sent || errors.Is(err, errGone) {
			return err
		}
		f.ledger.report(f.stream, err)
		f.ledger.silence() // begins to count
		if !f.ledger.pause(pause) {
			return err
		}
	}
}

// landed folds a batch that is on the log, and what others appended before it.
func (f *flight) landed(ctx context.Context, p batch, done eventstore.Committed) error {
	if done.Revision != f.revision+eventstore.Revision(len(p.events)) {
		return f.refresh(ctx)
	}
	for _, e := range p.events {
		f.advance(e, f.revision+1, done.Position, time.Time{})
	}
	f.last = p.proposed[len(p.proposed)-1].ID
	return nil
}

// settle answers who was in a batch that the fold now holds. Those whose tick is void stay, to be tried again; what was
// counted for those who left meanwhile is taken back.
func (f *flight) settle(p batch) error {
	f.ledger.events.Add(int64(len(p.events)))
	for _, w := range f.refunds {
		w.answer(nil)
	}
	f.refunds = nil
	v, err := f.verdict(p)
	if err != nil || v != ledger.Counts {
		f.fresh = true
		return err
	}
	var late []*waiter
	for _, w := range f.charges {
		if !w.answer(nil) {
			late = append(late, newRefund(w.entry))
		}
	}
	f.ledger.requests.Add(int64(len(f.charges) - len(late)))
	f.charges = nil
	f.queue.again(late)
	f.ledger.heard() // as in fly
	return nil
}

// today is the day of the tick, that of its last request. It becomes the day of them all, for their refunds.
func (f *flight) today() plan.Date {
	n := len(f.charges)
	if n == 0 {
		return f.period.First
	}
	day := f.charges[n-1].day
	for _, w := range f.charges {
		w.day = day
	}
	return day
}

// refundEvents are the refunds, those of one day together.
func (f *flight) refundEvents() []event.UsageRefunded {
	var all []event.UsageRefunded
	for _, w := range f.refunds {
		i := slices.IndexFunc(all, func(r event.UsageRefunded) bool { return r.Day == w.day })
		if i < 0 {
			i = len(all)
			all = append(all, event.UsageRefunded{Day: w.day})
		}
		all[i].Counts = plus(all[i].Counts, w.count)
	}
	return all
}

// fail refuses who is still waiting to be served, unless the log was only away for a moment: then they are tried again,
// until they leave by themselves. Refunds are always tried again, but those that may be on the log.
func (f *flight) fail(cause error) {
	served := slices.Concat(f.charges, f.probes)
	if f.sent {
		f.refunds = nil
	} else if isPassing(cause) && f.ledger.silence() < waiting.Lost {
		f.queue.again(slices.Concat(f.refunds, served))
		return
	}
	answer := ErrUnavailable
	if errors.Is(cause, errGone) {
		f.queue.close()
		if !f.sent {
			answer = errGone
		}
	}
	for _, w := range served {
		w.answer(answer)
	}
	f.queue.again(f.refunds)
}
