package usage

import (
	"context"
	"errors"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
)

// strand refuses who waits in a ledger that has ended.
func (b *book) strand(waiting []*waiter) {
	b.queue.setStuck(true)
	for _, w := range waiting {
		w.done <- ErrUnavailable
	}
}

// resolve finds out what became of a batch, by sending it again until that is known, and takes back what it counted:
// the requests have been refused.
func (b *book) resolve(p batch) {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		v, err := b.fate(p)
		if err == nil || errors.Is(err, errGone) {
			if err == nil && p.charged != 0 && v == ledger.Counts {
				b.queue.again(p.refunds())
			}
			b.queue.setStuck(false)
			return
		}
		if !b.ledger.pause(wait) {
			return
		}
	}
}

func (b *book) fate(p batch) (ledger.Verdict, error) {
	ctx, cancel := context.WithTimeout(b.ledger.life, patience)
	defer cancel()
	_, err := b.ledger.store.Append(ctx, b.stream, eventstore.Any, p.proposed)
	if err == nil {
		err = b.forward(ctx)
	}
	if err != nil {
		return 0, err
	}
	return b.verdict(p)
}

// refunds takes back all that the tick of a batch counts.
func (p batch) refunds() []*waiter {
	tick := p.events[0].(event.UsageTicked)
	all := make([]*waiter, len(tick.Counts))
	for i, c := range tick.Counts {
		all[i] = &waiter{entry{tick.Day, c}, refund, make(chan error, 1)}
	}
	return all
}

// pause waits, and says whether the ledger goes on.
func (l *Ledger) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.life.Done():
		return false
	}
}
