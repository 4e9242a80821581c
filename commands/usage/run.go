package usage

import (
	"context"
	"errors"
	"sync"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/schemas/event"
)

const (
	idleTimeout       = 10 * time.Minute // after which a period without requests is evicted from memory
	idleSweepInterval = time.Minute

	// shutdownTimeout is how long an ending instance waits for its batches, and again for the event of its end. That is enough to
	// reconnect to a log that was just restarted.
	shutdownTimeout = 3 * time.Second
)

// Run carries the account events of the log core after a checkpoint into the open periods, and evicts idle periods, until ctx ends.
// Then it waits for the batches under way and records the instance's end. Requests should have ended before ctx does: those that come
// after the last batch get ErrUnavailable.
func (m *Meter) Run(ctx context.Context, core eventstore.Store, after eventstore.Checkpoint) {
	var parts sync.WaitGroup
	parts.Go(func() { m.appendInstanceStarted(ctx) })
	parts.Go(func() { m.keepFollowingAccounts(ctx, core, after) })
	parts.Go(func() { m.evictIdlePeriods(ctx) })
	parts.Go(func() { m.keepClockCompared(ctx) })
	parts.Wait()
	m.stopServing()                              // idle workers end
	time.AfterFunc(shutdownTimeout, m.cancelRun) // the others get this long to finish their batches
	endedInTime := false
	m.goroutines.end(func() {
		endedInTime = m.runCtx.Err() == nil
		m.cancelRun()
	})
	if endedInTime && !m.hasCutRequests.Load() { // otherwise a request may have been counted and not answered
		m.appendInstanceEnded()
	}
}

// NoteCutRequests notes that requests were cut before they were answered. Run then does not record the instance's end, so that an audit
// lists its last ticks as possibly unanswered.
func (m *Meter) NoteCutRequests() { m.hasCutRequests.Store(true) }

// instanceStream returns the stream of this instance's start and end.
func (m *Meter) instanceStream() string { return "incarnation-" + m.instanceID.String() }

// appendInstanceStarted returns when the event is on the log or ctx has ended. Counting does not wait for it.
func (m *Meter) appendInstanceStarted(ctx context.Context) {
	_, _ = m.appendInstanceEvent(ctx, "started", event.InstanceStarted{InstanceID: m.instanceID.String()})
}

// appendInstanceEnded records that this instance left no request unanswered. If it cannot, an audit lists the instance's last
// ticks as possibly unanswered.
func (m *Meter) appendInstanceEnded() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if _, err := m.appendInstanceEvent(ctx, "ended", event.InstanceEnded{InstanceID: m.instanceID.String()}); err != nil {
		m.log.Warn("the end of this instance's counting is not on the log", "incarnation", m.instanceID, "reason", err)
	}
}

// appendInstanceEvent tries until ctx ends, even while the log is unavailable.
func (m *Meter) appendInstanceEvent(ctx context.Context, name string, e event.Event) (done eventstore.AppendResult, err error) {
	proposed, err := m.encodeEvents(ctx, m.instanceStream(), name, e)
	if err == nil {
		done, err = eventstore.AppendUntilKnown(ctx, m.store, m.instanceStream(), eventstore.Any, proposed,
			eventstore.Resend{FirstPause: firstRetryPause, MaxPause: retryInterval, WhenUnavailable: true})
	}
	return done, err
}

// keepFollowingAccounts is followAccounts until ctx ends. If a subscription fails it tries again every second, and if an older
// backup of the log was restored it continues from the end of that. The periods were folded from events that may be gone then,
// so all are retired and opened again. An opening reads the current quotas, and the key ring refuses revoked keys. A log with
// another identity has no events of these accounts: they are followed again once the right log is back.
func (m *Meter) keepFollowingAccounts(ctx context.Context, core eventstore.Store, after eventstore.Checkpoint) {
	for hasWarned := false; ctx.Err() == nil; {
		before := after
		err := m.followAccounts(ctx, core, &after)
		if diverged, ok := errors.AsType[*eventstore.DivergedError](err); ok && !diverged.IsOtherLog {
			m.log.Warn("accounts are followed from the end of a log that was restored", "reason", err)
			if after, err = readEndCheckpoint(ctx, core); err == nil {
				m.retireAllPeriods()
				continue
			}
			after = before // the end is read again after the next DivergedError
		}
		if hasWarned = hasWarned && after == before; !hasWarned && ctx.Err() == nil { // one line an incident
			m.log.Warn("accounts are not followed", "reason", err)
			hasWarned = true
		}
		clock.Sleep(ctx, time.Second)
	}
}

// retireAllPeriods makes the next request of each contract open its period again.
func (m *Meter) retireAllPeriods() {
	m.contracts.Range(func(_, c any) bool {
		if p := c.(*contract).current.Load(); p != nil {
			p.queue.retire()
		}
		return true
	})
}

// emptyCategory is a category of streams that no stream has.
const emptyCategory = "nobody"

// readEndCheckpoint waits until the end of a log can be read and returns its checkpoint. The filter lets no event through.
func readEndCheckpoint(ctx context.Context, log eventstore.Store) (end eventstore.Checkpoint, err error) {
	for s, err := range log.Subscribe(ctx, eventstore.Checkpoint{}, eventstore.Filter{emptyCategory}) {
		if err != nil || s.Kind == eventstore.CaughtUp {
			return s.Checkpoint, err
		}
	}
	return end, errEnded
}

// errEnded means that a subscription ended without an error.
var errEnded = errors.New("the subscription ended without saying why")

// followAccounts carries ended keys and accounts, and new quotas, into the periods that are open here, and advances after, until its
// subscription fails or ctx ends. Periods that are opened later begin with what is on the log by then.
func (m *Meter) followAccounts(ctx context.Context, core eventstore.Store, after *eventstore.Checkpoint) error {
	for signal, err := range core.Subscribe(ctx, *after, eventstore.Filter{"account"}) {
		if err != nil {
			return err
		}
		if signal.Kind != eventstore.EventAppeared {
			*after = signal.Checkpoint
			continue
		}
		for err := m.onAccountEvent(ctx, signal.Event); err != nil; err = m.onAccountEvent(ctx, signal.Event) {
			if !clock.Sleep(ctx, retryInterval) {
				return ctx.Err()
			}
		}
		*after = signal.Checkpoint
	}
	return errEnded
}

// onAccountEvent appends what happened to an account to the open periods that have it.
func (m *Meter) onAccountEvent(ctx context.Context, r eventstore.RecordedEvent) error {
	account := eventstore.EntityID(r.Stream)
	e, err := event.Decode(r.Type, r.Data)
	if err != nil {
		return nil // is passed over: the key ring stops the account
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
		err = m.forEachPeriodOf(account, func(p *activePeriod) error { return p.refreshCap(ctx, account, m.clock.Now()) })
		var unusable *eventstore.UnusableError
		if errors.As(err, &unusable) {
			m.log.Warn("an account's quota cannot be read", "account", account, "reason", err)
			return nil // the cap stays as it is; the events of other accounts must not wait
		}
		return err
	}
	return nil
}

// forEachPeriodOf calls do with all open periods that have an account. It skips a period that is retired meanwhile, and stops
// at the first other error.
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

// retireIfIdle retires a period in a shared stream at once, and one with a stream of its own unless that is being flushed. It returns whether
// the period is retired.
func (p *activePeriod) retireIfIdle() bool {
	if isShared(p.name) || p.queue.retireIfIdle() {
		p.isEvicted.Store(true)
	}
	return p.isEvicted.Load()
}

// evictIdlePeriods removes contracts whose period has had no request for idleTimeout, and has no batch and no open charge.
func (m *Meter) evictIdlePeriods(ctx context.Context) {
	for clock.Sleep(ctx, idleSweepInterval) {
		m.contracts.Range(func(id, c any) bool {
			p := c.(*contract).current.Load()
			if p != nil && time.Since(m.epoch)-time.Duration(p.lastUsedAt.Load()) > idleTimeout && p.openCharges.Load() == 0 && p.retireIfIdle() {
				m.contracts.CompareAndDelete(id, c)
			}
			return true
		})
		m.evictIdleStreams()
	}
}

// reportHealth logs once that counting fails, and once that it works again.
func (m *Meter) reportHealth(stream string, err error) {
	switch {
	case errors.Is(err, errRetired):
	case err != nil && m.isFailing.CompareAndSwap(false, true):
		m.log.Warn("requests are not served: usage cannot be counted", "stream", stream, "reason", err)
	case err == nil && m.isFailing.Load() && m.isFailing.CompareAndSwap(true, false):
		m.log.Info("usage is counted again")
	}
}
