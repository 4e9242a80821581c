package usage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// CheckQuota reports whether a request would count now, and counts nothing. A refusal is never decided on memory
// alone: the log is read first. The errors are those of Charge.
func (m *Meter) CheckQuota(ctx context.Context, wait *waitlimit.Wait, g grant.Grant, endpoint string) error {
	_, err := m.withPayingPeriod(ctx, wait, g, endpoint, func(p *activePeriod, e entry) (entry, error) {
		if p.hasQuotaLeft(e) {
			return e, nil
		}
		return p.submit(ctx, wait, probeRequest, e)
	})
	return err
}

// QuotaUsage is how many requests an account has used in a period, and how many it may use.
type QuotaUsage struct {
	Used, Limit int64
	Period      plan.Period
}

// Charge is the count of one request, or of several together. It is open until Settle.
type Charge struct {
	QuotaUsage // of the account, what was counted included
	period     *activePeriod
	entry      entry // as it was counted
}

// Charge counts n requests, at least one, durably: all of them or none. It waits as long as the request may. It fails with
// *QuotaExceededError, ErrRevoked or ErrUnavailable, and then the request must not be served. Otherwise Settle must be called
// once: until then the period is not evicted.
func (m *Meter) Charge(ctx context.Context, wait *waitlimit.Wait, g grant.Grant, endpoint string, n int64) (Charge, error) {
	c, err := m.withPayingPeriod(ctx, wait, g, endpoint, func(p *activePeriod, e entry) (entry, error) {
		e.count.Requests = n
		e, err := p.submit(ctx, wait, chargeRequest, e)
		if err == nil {
			p.openCharges.Add(1)
		}
		return e, err
	})
	if err == nil {
		c.QuotaUsage = c.period.quotaUsage(g.Account)
	}
	return c, err
}

// Settle ends a charge: n of its requests are refunded and the others stay counted. It returns when that is durable. If it fails,
// the refund is tried again in the background, unless it may be on the log already or the meter ends.
func (m *Meter) Settle(ctx context.Context, c Charge, n int64) error {
	defer c.period.openCharges.Add(-1)
	if n <= 0 {
		return nil
	}
	refund := c.entry
	refund.count.Requests = min(n, refund.count.Requests)
	_, err := c.period.submit(ctx, nil, refundRequest, refund)
	return err
}

// maxPeriodTries is how many retired periods a request may meet. One that was closed and one that was evicted are unusual
// already; more of them mean that the log is being restored.
const maxPeriodTries = 5

// withPayingPeriod calls do with the open period that pays for the grant's account and the entry of one request, and begins again with
// the next period if that one is found to be retired: by do, or before it, when a cap is read. The request has one wait for all of
// that.
func (m *Meter) withPayingPeriod(ctx context.Context, wait *waitlimit.Wait, g grant.Grant, endpoint string, do func(*activePeriod, entry) (entry, error)) (Charge, error) {
	defer wait.Begin(waitlimit.UncountedWait)()
	for tries := 1; ; tries++ {
		now, err := m.trustedTime(ctx, wait)
		if err != nil {
			return Charge{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		p, err := m.payingPeriod(ctx, wait, g, now)
		if err == nil {
			e := entry{p.billingDay(now), event.UsageCount{Account: g.Account, Key: g.KeyID, Endpoint: endpoint, Requests: 1}}
			if e, err = do(p, e); !errors.Is(err, errRetired) {
				return Charge{period: p, entry: e}, err
			}
		}
		if !errors.Is(err, errRetired) || tries == maxPeriodTries || ctx.Err() != nil {
			return Charge{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
}

// payingPeriod returns the open period that pays for a grant's account, with the caps of those that share it. Terms are those of the
// time that the period covers, which is not now if this instance's clock is behind or ahead of the log's, and not the time when the
// grant was read: so a sub-client that leaves its agency at the end of a period is paid for by one contract in each.
func (m *Meter) payingPeriod(ctx context.Context, wait *waitlimit.Wait, g grant.Grant, now time.Time) (*activePeriod, error) {
	p, err := m.currentPeriod(ctx, wait, g, now)
	if err != nil {
		return nil, err
	}
	if at := p.clamp(now); !at.Equal(now) || now.Sub(p.period.Start()) < longestRequest {
		if terms, ok := m.termsAt(g.Account, at); ok && terms.Agency != g.Agency {
			now, g.Terms = at, terms
			if p, err = m.currentPeriod(ctx, wait, g, now); err != nil {
				return nil, err
			}
		}
	}
	elapsed := time.Since(m.epoch)
	p.lastUsedAt.Store(int64(elapsed))
	p.usedAt.Store(int64(elapsed))
	return p, p.ensureCap(ctx, wait, g, now, elapsed)
}

// longestRequest is longer than a request takes from its authentication, which read its grant, until it is counted: with a large body
// that takes minutes. Memberships begin and end with a period, so that a grant can be older than one only so shortly after its start.
const longestRequest = time.Hour

// currentPeriod returns the current period of a grant's contract, after switching to the period of an instant if that is due.
func (m *Meter) currentPeriod(ctx context.Context, wait *waitlimit.Wait, g grant.Grant, at time.Time) (*activePeriod, error) {
	c := m.findOrAddContract(contractID(g))
	p := c.current.Load()
	if p == nil || c.isSwitchDue(at, time.Since(m.epoch)) || p.isRetired() {
		if err := m.openShared(ctx, wait, g, c, at); err != nil {
			return nil, err
		}
		p = c.current.Load()
	}
	return p, nil
}

// capRecheckInterval is how often the cap of an account is read again while the key ring and the period disagree on it. One of
// the two has not read the latest event of the account yet.
const capRecheckInterval = 100 * time.Millisecond

// ensureCap makes sure that the period has a cap for a grant's account, and that it is the grant's as soon as both know it; so too for
// the agency that pays. Quotas are read as of now, or as of the time of the period next to it; elapsed is the time since Meter.epoch.
func (p *activePeriod) ensureCap(ctx context.Context, wait *waitlimit.Wait, g grant.Grant, now time.Time, elapsed time.Duration) error {
	err := p.ensureCapOf(ctx, wait, g.Account, g.Quota, now, elapsed)
	if err == nil && g.AgencyQuota != 0 {
		err = p.ensureCapOf(ctx, wait, g.Agency, g.AgencyQuota, now, elapsed)
	}
	return err
}

// ensureCapOf is ensureCap for one account with a quota from the key ring.
func (p *activePeriod) ensureCapOf(ctx context.Context, wait *waitlimit.Wait, account string, quota int64, now time.Time, elapsed time.Duration) error {
	requests, _, known := p.capOf(account)
	if known && requests == quota {
		return nil
	}
	p.mu.Lock()
	checkedAt := p.capCheckedAt[account]
	p.mu.Unlock()
	if known && elapsed-checkedAt < capRecheckInterval {
		return nil
	}
	return p.refreshCapShared(ctx, wait, account, now)
}

// refreshCapShared waits for one refreshCap that all requests of the account share. It records the time even if the cap was right, so
// that a disagreement is not read again at once.
func (p *activePeriod) refreshCapShared(ctx context.Context, wait *waitlimit.Wait, account string, now time.Time) error {
	checkedAt := time.Since(p.meter.epoch)
	return p.meter.awaitShared(ctx, wait, "cap "+p.name+" "+p.ref.Contract+" "+account, func(ctx context.Context) error {
		if err := p.refreshCap(ctx, account, now); err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.capCheckedAt[account] = checkedAt
		return nil
	})
}

// refreshCap appends an account's quota to the period's stream as its cap, if the account's own stream has a newer one.
// An account with the same quota in a newer event keeps its cap.
func (p *activePeriod) refreshCap(ctx context.Context, account string, now time.Time) error {
	requests, asOf, err := p.meter.quotas.QuotaAt(ctx, account, p.clamp(now))
	if err != nil {
		return err
	}
	knownCap, knownAsOf, isKnown := p.capOf(account)
	if isKnown && (knownAsOf >= int64(asOf) || knownCap == requests) {
		return nil
	}
	e := event.UsageCapSet{Account: account, Cap: requests, AsOfPosition: int64(asOf)}
	return p.appendAndFold(ctx, account, fmt.Sprintf("cap %s %d", account, asOf), e)
}

// capOf returns the cap of an account as folded.
func (p *activePeriod) capOf(account string) (requests, asOf int64, known bool) {
	p.readState(func(s *usagefold.PeriodState) { requests, asOf, known = s.Cap(account) })
	return requests, asOf, known
}

// appendAndFold appends an event about an account that counts no requests, and returns once the period's fold has it. The id of
// the event follows from name: the same name again is the same event.
func (p *activePeriod) appendAndFold(ctx context.Context, account, name string, e event.Event) error {
	if _, err := p.meter.appendNamed(ctx, p.name, p.ref.Contract+" "+name, eventstore.Any, p.fold.Event(p.ref, e)); err != nil {
		return err
	}
	return p.awaitFold(ctx, account)
}

// awaitFold returns once the period's fold has all that is on the log now.
func (p *activePeriod) awaitFold(ctx context.Context, account string) error {
	wait := p.meter.waitLimiter.NewWait(account)
	defer wait.Begin(waitlimit.UncountedWait)()
	_, err := p.submit(ctx, wait, foldRequest, entry{count: event.UsageCount{Account: account}})
	return err
}
