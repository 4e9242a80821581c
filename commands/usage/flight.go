package usage

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// flight is one turn of a book: it answers all that waited when it began.
type flight struct {
	*book
	charges, refunds, probes []*waiter
	fresh                    bool   // the fold holds all that was on the log when the flight began
	unsettled                *batch // of unknown fate
}

// fly answers waiters, within patience whatever the log does. When the fate of its append is not known by then, it
// returns the batch: that has to be found out before the next flight. It says whether it got through.
func (b *book) fly(waiting []*waiter) (frozen *batch, ok bool) {
	ctx, cancel := context.WithTimeout(b.ledger.life, patience)
	defer cancel()
	f := flight{book: b}
	for _, w := range waiting {
		switch w.kind {
		case charge:
			f.charges = append(f.charges, w)
		case refund:
			f.refunds = append(f.refunds, w)
		default:
			f.probes = append(f.probes, w)
		}
	}
	err := f.run(ctx)
	b.ledger.report(b.stream, err)
	if err != nil {
		f.fail(err)
	}
	return f.unsettled, err == nil
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
	f.fresh = err == nil
	return err
}

// refusal is a waiter that would not count, and why.
type refusal struct {
	*waiter
	why ledger.Verdict
}

// draft is the tick for those who would count if it were next in the stream, and the others.
func (f *flight) draft() (counts []event.UsageCount, refused []refusal) {
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
		r.done <- f.problem(r.count.Account, r.why)
	}
}

func (f *flight) answerProbes() {
	for _, w := range f.probes {
		if _, v := f.fold.Room(w.count.Account, w.count.Key); v != ledger.Counts {
			w.done <- f.problem(w.count.Account, v)
		} else {
			w.done <- nil
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
	if err != nil {
		return err
	}
	done, err := f.ledger.append(ctx, f.stream, eventstore.Any, p.proposed)
	if err != nil && !errors.Is(err, eventstore.ErrUnknown) {
		return err // nothing was added
	}
	if err == nil {
		err = f.landed(ctx, p, done)
	}
	if err != nil {
		f.unsettled, f.refunds = &p, nil // the refunds are in it
		f.queue.setStuck(true)
		return err
	}
	return f.settle(p)
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

// settle answers who was in a batch that the fold now holds. Those whose tick is void stay, to be tried again.
func (f *flight) settle(p batch) error {
	f.ledger.events.Add(int64(len(p.events)))
	for _, w := range f.refunds {
		w.done <- nil
	}
	f.refunds = nil
	v, err := f.verdict(p)
	if err != nil || v != ledger.Counts {
		f.fresh = true
		return err
	}
	f.ledger.requests.Add(int64(len(f.charges)))
	for _, w := range f.charges {
		w.done <- nil
	}
	f.charges = nil
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

// fail refuses who is still waiting to be served. Refunds are tried again.
func (f *flight) fail(cause error) {
	answer := ErrUnavailable
	if errors.Is(cause, errGone) {
		f.queue.close()
		if f.unsettled == nil {
			answer = errGone
		}
	}
	for _, w := range slices.Concat(f.charges, f.probes) {
		w.done <- answer
	}
	f.queue.again(f.refunds)
}
