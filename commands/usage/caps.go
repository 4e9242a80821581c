package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
)

// recheck is how soon an account whose key ring and book disagree is looked up again: one of them is about to
// hear what the other knows.
const recheck = 100 * time.Millisecond

// agree sees to it that the book has the cap of a grant's account.
func (b *book) agree(ctx context.Context, g grant.Grant, now, came time.Time) error {
	b.mu.RLock()
	requests, _, known := b.fold.Cap(g.Account)
	checked := b.checked[g.Account]
	b.mu.RUnlock()
	if known && (requests == g.Quota || now.Sub(checked) < recheck && !now.Before(checked)) {
		return nil
	}
	return b.shareRecap(ctx, g.Account, now, came)
}

// shareRecap waits until the cap of an account was looked up.
func (b *book) shareRecap(ctx context.Context, account string, now, came time.Time) error {
	return b.ledger.share(ctx, account, "cap "+b.stream+" "+account, came, func(ctx context.Context) error {
		if err := b.recap(ctx, account, now); err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.checked[account] = now
		return nil
	})
}

// recap writes what an account may use into the book, when its own stream has something newer than the book.
func (b *book) recap(ctx context.Context, account string, now time.Time) error {
	requests, asOf, err := b.ledger.terms.Volume(ctx, account, latest(now, b.period.Start()))
	if err != nil {
		return err
	}
	b.mu.RLock()
	had, known, ok := b.fold.Cap(account)
	b.mu.RUnlock()
	if ok && (known >= int64(asOf) || had == requests) {
		return nil
	}
	e := event.UsageCapSet{Account: account, Cap: requests, AsOf: int64(asOf)}
	return b.tell(ctx, account, fmt.Sprintf("cap %s %d", account, asOf), e)
}

// tell appends an event about an account that is not counted, whatever the stream holds, and returns once the fold has
// it. Said twice it is said once.
func (b *book) tell(ctx context.Context, account, name string, e event.Event) error {
	proposed, err := b.ledger.encode(ctx, b.stream, name, e)
	if err == nil {
		_, err = b.ledger.append(ctx, b.stream, eventstore.Any, proposed)
	}
	if err != nil {
		return err
	}
	_, err = b.pass(ctx, probe, entry{count: event.UsageCount{Account: account}}, time.Now())
	if spent := new(SpentError); errors.As(err, &spent) || errors.Is(err, ErrRevoked) {
		return nil
	}
	return err
}
