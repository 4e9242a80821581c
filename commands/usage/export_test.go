package usage

import (
	"context"
	"errors"

	"lieudit/schemas/grant"
)

// ReadQuotaUsage returns how much of its quota the grant's account has used in the current period, by all that is on the log.
// It counts nothing.
func (m *Meter) ReadQuotaUsage(ctx context.Context, g grant.Grant) (QuotaUsage, error) {
	wait := m.waitLimiter.NewWait(g.Account)
	c, err := m.withPayingPeriod(ctx, wait, g, "", func(p *activePeriod, e entry) (entry, error) {
		return p.submit(ctx, wait, probeRequest, e)
	})
	if exceeded := new(QuotaExceededError); err != nil && !errors.As(err, &exceeded) {
		return QuotaUsage{}, err
	}
	return c.period.quotaUsage(g.Account), nil
}

// QueuedRequests returns how many requests wait for a batch that has not begun.
func (m *Meter) QueuedRequests() (n int) {
	m.contracts.Range(func(_, c any) bool {
		if p := c.(*contract).current.Load(); p != nil {
			p.queue.mu.Lock()
			defer p.queue.mu.Unlock()
			n += len(p.queue.pending)
		}
		return true
	})
	return n
}

// IsLogSilent reports whether a silence of the log is being counted.
func (m *Meter) IsLogSilent() bool { return m.silentSince.Load() != 0 }

// EvictContract evicts an account's contract, as evictIdlePeriods does.
func (m *Meter) EvictContract(account string) { m.contracts.Delete(account) }
