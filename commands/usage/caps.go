package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/access"
	"lieudit/schemas/event"
)

// capRecheckInterval is how soon an account whose key ring and book disagree is looked up again: one of them is about to
// hear what the other knows.
const capRecheckInterval = 100 * time.Millisecond

// ensureCap sees to it that the book has the cap of a grant's account.
func (p *activePeriod) ensureCap(ctx context.Context, g access.Grant, now, arrivedAt time.Time) error {
	p.mu.RLock()
	requests, _, known := p.fold.Cap(g.Account)
	checked := p.capCheckedAt[g.Account]
	p.mu.RUnlock()
	if known && (requests == g.Quota || now.Sub(checked) < capRecheckInterval && !now.Before(checked)) {
		return nil
	}
	return p.refreshCapShared(ctx, g.Account, now, arrivedAt)
}

// refreshCapShared waits until the cap of an account was looked up.
func (p *activePeriod) refreshCapShared(ctx context.Context, account string, now, arrivedAt time.Time) error {
	return p.meter.awaitShared(ctx, account, "cap "+p.stream+" "+account, arrivedAt, func(ctx context.Context) error {
		if err := p.refreshCap(ctx, account, now); err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.capCheckedAt[account] = now
		return nil
	})
}

// refreshCap writes what an account may use into the book, when its own stream has something newer than the book.
func (p *activePeriod) refreshCap(ctx context.Context, account string, now time.Time) error {
	requests, asOf, err := p.meter.quotas.QuotaAt(ctx, account, latest(now, p.period.Start()))
	if err != nil {
		return err
	}
	p.mu.RLock()
	knownCap, knownAsOf, isKnown := p.fold.Cap(account)
	p.mu.RUnlock()
	if isKnown && (knownAsOf >= int64(asOf) || knownCap == requests) {
		return nil
	}
	e := event.UsageCapSet{Account: account, Cap: requests, AsOfPosition: int64(asOf)}
	return p.appendAndFold(ctx, account, fmt.Sprintf("cap %s %d", account, asOf), e)
}

// appendAndFold appends an event about an account that is not counted, whatever the stream holds, and returns once the fold has
// it. Said twice it is said once.
func (p *activePeriod) appendAndFold(ctx context.Context, account, name string, e event.Event) error {
	proposed, err := p.meter.encodeEvents(ctx, p.stream, name, e)
	if err == nil {
		_, err = p.meter.appendUntilKnown(ctx, p.stream, eventstore.Any, proposed)
	}
	if err != nil {
		return err
	}
	_, err = p.submit(ctx, probeRequest, entry{count: event.UsageCount{Account: account}}, time.Now())
	if spent := new(QuotaExceededError); errors.As(err, &spent) || errors.Is(err, ErrRevoked) {
		return nil
	}
	return err
}
