package usage

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/eventstore"
	"lieudit/schemas/event"
)

const (
	idleTimeout       = 10 * time.Minute // after which a book that nobody asks for is put away
	idleSweepInterval = time.Minute

	// shutdownTimeout is how long an ending instance waits for what it has under way, and again for the log to take its end: as
	// long as a log that was just restarted needs to be found again.
	shutdownTimeout = 3 * time.Second
)

// Run keeps the books to what happens to accounts on the log core after a mark, and puts away those nobody asks for,
// until ctx ends. Then all that is under way comes to its end. Requests must not come any more by then.
func (m *Meter) Run(ctx context.Context, core eventstore.Store, after eventstore.Checkpoint) error {
	var parts errgroup.Group
	parts.Go(func() error { return m.appendInstanceStarted(ctx) })
	parts.Go(func() error { return m.followAccountsAcrossRestores(ctx, core, after) })
	parts.Go(func() error { return m.evictIdlePeriods(ctx) })
	err := parts.Wait()
	m.stopServing()
	time.AfterFunc(shutdownTimeout, m.cancelRun)
	m.goroutines.Wait()
	endedInTime := m.runCtx.Err() == nil
	m.cancelRun()
	if endedInTime {
		m.appendInstanceEnded()
	}
	return err
}

// instanceStream is where the instance's own life is told.
func (m *Meter) instanceStream() string { return "incarnation-" + m.instanceID.String() }

func (m *Meter) appendInstanceStarted(ctx context.Context) error {
	for {
		proposed, err := m.encodeEvents(ctx, m.instanceStream(), "started", event.InstanceStarted{InstanceID: m.instanceID.String()})
		if err == nil {
			_, err = m.appendUntilKnown(ctx, m.instanceStream(), eventstore.Any, proposed)
		}
		if err == nil || !sleep(ctx, time.Second) {
			return nil
		}
	}
}

// appendInstanceEnded tells that nothing was left unanswered. Where it cannot be told, an audit will ask.
func (m *Meter) appendInstanceEnded() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	proposed, err := m.encodeEvents(ctx, m.instanceStream(), "ended", event.InstanceEnded{InstanceID: m.instanceID.String()})
	for err == nil {
		if _, err = m.appendUntilKnown(ctx, m.instanceStream(), eventstore.Any, proposed); err == nil {
			return
		}
		if errors.Is(err, eventstore.ErrUnavailable) && sleep(ctx, retryInterval) {
			err = nil
		}
	}
	m.log.Warn("the end of this instance's counting is not on the log", "incarnation", m.instanceID, "reason", err)
}

// sleep waits, and says whether the ledger goes on.
func (m *Meter) sleep(d time.Duration) bool { return sleep(m.runCtx, d) }

// sleep waits, and says whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// followAccounts carries the ends of keys and accounts, and new volumes, into the books that are open here, and after with it.
// Books that are opened later begin with what is so by then.
func (m *Meter) followAccounts(ctx context.Context, core eventstore.Store, after *eventstore.Checkpoint) error {
	for signal, err := range core.Subscribe(ctx, *after, eventstore.Filter{"account"}) {
		if err != nil {
			return ignoreIfCancelled(ctx, err)
		}
		if signal.Kind != eventstore.EventAppeared {
			*after = signal.Checkpoint
			continue
		}
		for err := m.onAccountEvent(ctx, signal.Event); err != nil; err = m.onAccountEvent(ctx, signal.Event) {
			if !sleep(ctx, retryInterval) {
				return nil
			}
		}
		*after = signal.Checkpoint
	}
	return nil
}

// onAccountEvent tells the books that have an account what happened to it.
func (m *Meter) onAccountEvent(ctx context.Context, r eventstore.RecordedEvent) error {
	account := eventstore.EntityID(r.Stream)
	e, err := event.Decode(r.Type, r.Data)
	if err != nil {
		return nil // whatever it is, it is not for the books
	}
	switch e := e.(type) {
	case event.KeyRevoked:
		return m.forEachPeriodOf(account, func(p *activePeriod) error {
			return p.appendAndFold(ctx, account, "revoked "+e.Key, event.UsageKeyRevoked{Account: account, Key: e.Key})
		})
	case event.AccountClosed:
		return m.forEachPeriodOf(account, func(p *activePeriod) error {
			return p.appendAndFold(ctx, account, "closed "+account, event.UsageAccountClosed{Account: account})
		})
	case event.PlanChanged:
		err = m.forEachPeriodOf(account, func(p *activePeriod) error { return p.refreshCap(ctx, account, m.clock()) })
		var unusable *eventstore.UnusableError
		if errors.As(err, &unusable) {
			m.log.Warn("an account's volume cannot be known", "account", account, "reason", err)
			return nil // its volume stays as it is; the others are not kept waiting
		}
		return err
	}
	return nil
}

// forEachPeriodOf does something in all open books that have an account.
func (m *Meter) forEachPeriodOf(account string, do func(*activePeriod) error) (err error) {
	m.contracts.Range(func(_, c any) bool {
		if p := c.(*contract).current.Load(); p != nil && p.hasAccount(account) && !p.isRetired() {
			err = do(p)
		}
		return err == nil || errors.Is(err, errRetired)
	})
	if errors.Is(err, errRetired) {
		return nil
	}
	return err
}

func (p *activePeriod) hasAccount(account string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, _, known := p.fold.Cap(account)
	return known
}

func ignoreIfCancelled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (m *Meter) evictIdlePeriods(ctx context.Context) error {
	for sleep(ctx, idleSweepInterval) {
		m.contracts.Range(func(id, c any) bool {
			p := c.(*contract).current.Load()
			if p != nil && m.clock().Unix()-p.lastUsedAt.Load() > int64(idleTimeout.Seconds()) && p.openReservations.Load() == 0 && p.queue.retireIfIdle() {
				m.contracts.CompareAndDelete(id, c)
			}
			return true
		})
	}
	return nil
}

// reportHealth says once that counting fails, and once that it works again.
func (m *Meter) reportHealth(stream string, err error) {
	switch {
	case errors.Is(err, errRetired):
	case err != nil && m.isFailing.CompareAndSwap(false, true):
		m.log.Warn("requests are not served: usage cannot be counted", "stream", stream, "reason", err)
	case err == nil && m.isFailing.Load() && m.isFailing.CompareAndSwap(true, false):
		m.log.Info("usage is counted again")
	}
}
