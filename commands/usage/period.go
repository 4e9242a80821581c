package usage

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// contract is the payer: an agency for itself and its sub-clients, or an account without an agency. It has one current period.
type contract struct {
	id      string
	current atomic.Pointer[activePeriod]
	endsAt  atomic.Int64 // when the current period ends, by the wall clock, Unix microseconds
	aheadTo atomic.Int64 // before this it is a period ahead, by the wall clock, Unix microseconds
	pauseTo atomic.Int64 // when a period that had not begun is tried again, in nanoseconds after Meter.epoch; 0 if there is none to try
}

// isSwitchDue reports whether switchPeriod must look at the contract. A period ends by the wall clock. The pause until a period
// that had not begun by the log's clock is elapsed time: whatever this instance's clock is set to, it lasts as long.
func (c *contract) isSwitchDue(now time.Time, elapsed time.Duration) bool {
	if pauseTo := c.pauseTo.Load(); pauseTo != 0 {
		return int64(elapsed) >= pauseTo
	}
	at := now.UnixMicro()
	return at >= c.endsAt.Load() || at < c.aheadTo.Load()
}

// maxAhead is how long before its beginning a period may be the current one, because an instance whose clock is set back stays in it.
// One that begins later than that is a period ahead: clocks were wrong when it was opened.
const maxAhead = 24 * time.Hour

// aheadUntil returns the time before which a period is a period ahead.
func aheadUntil(period plan.Period) time.Time { return period.Start().Add(-maxAhead) }

// aheadPause is how long a period ahead is the current one before it is looked at again. The one before it is closed then.
const aheadPause = time.Minute

// setCurrent makes a period the current one until its end or, if pause is not 0, until that much time has passed.
func (c *contract) setCurrent(p *activePeriod, pause, elapsed time.Duration) {
	c.current.Store(p)
	c.endsAt.Store(p.period.End().UnixMicro())
	c.aheadTo.Store(aheadUntil(p.period).UnixMicro())
	if pause != 0 {
		pause += elapsed
	}
	c.pauseTo.Store(int64(pause))
}

// contractID returns the agency of a sub-client, and otherwise the account itself.
func contractID(g grant.Grant) string {
	if g.Agency != "" {
		return g.Agency
	}
	return g.Account
}

// findOrAddContract returns the one contract of an id. It allocates nothing for a contract that is known: each request calls it.
func (m *Meter) findOrAddContract(id string) *contract {
	if c, ok := m.contracts.Load(id); ok {
		return c.(*contract)
	}
	c, _ := m.contracts.LoadOrStore(id, &contract{id: id})
	return c.(*contract)
}

// openShared waits for one switchPeriod that all requests of the contract share. The task's name includes the contract's address, to
// distinguish an evicted contract from a later one with the same id.
func (m *Meter) openShared(ctx context.Context, wait *waitlimit.Wait, g grant.Grant, c *contract, now time.Time) error {
	return m.awaitShared(ctx, wait, fmt.Sprintf("open %s %p", c.id, c), func(ctx context.Context) error {
		return m.switchPeriod(ctx, c, g.Anchor, now)
	})
}

// switchPeriod makes the period that contains an instant the contract's current one. It runs once at a time for a contract. A clock
// that was set back never causes a switch to an earlier period, unless the current one is a period ahead.
func (m *Meter) switchPeriod(ctx context.Context, c *contract, anchor plan.Date, now time.Time) error {
	current := c.current.Load()
	if current != nil && !current.isRetired() && !c.isSwitchDue(now, time.Since(m.epoch)) {
		return nil // another task has switched it
	}
	period := plan.PeriodAt(anchor, now)
	if current != nil && period.Start().Before(current.period.Start()) && !now.Before(aheadUntil(current.period)) {
		period = current.period // the clock was set back
	}
	p, pause, err := m.openCountablePeriod(ctx, c.id, anchor, period)
	if err != nil {
		return err
	}
	if current != nil && !current.isRetired() && current.ref == p.ref && (!isShared(p.name) || current.activeStream == p.activeStream) {
		p = current
	}
	if now.Before(aheadUntil(p.period)) {
		pause = max(pause, aheadPause)
	}
	c.setCurrent(p, pause, time.Since(m.epoch))
	return nil
}

// tooEarlyError means that the period has not begun by the log's clock, so that no fold opens it.
type tooEarlyError struct{ by time.Duration }

func (e tooEarlyError) Error() string {
	return fmt.Sprintf("the period begins in %v by the log's clock", e.by)
}

// openCountablePeriod returns a period in which requests can be counted: the given one, a later one if that is closed already, or the
// previous one if the given one has not begun by the log's clock. pause is not 0 only in the last case: after that time switchPeriod
// must look again. A fold accepts an opening up to usagefold.MaxEarlyOpening early; half of that is left as a margin.
func (m *Meter) openCountablePeriod(
	ctx context.Context, id string, anchor plan.Date, period plan.Period,
) (_ *activePeriod, pause time.Duration, _ error) {
	var early tooEarlyError
	for {
		p, err := m.loadPeriod(ctx, id, period)
		switch {
		case errors.As(err, &early) && pause == 0:
			pause = max(early.by-usagefold.MaxEarlyOpening/2, time.Second)
			period = plan.PeriodAt(anchor, period.Start().Add(-time.Nanosecond))
		case err != nil:
			return nil, 0, err
		case p.isEnded() && pause != 0:
			return nil, 0, early
		case p.isEnded():
			period = plan.PeriodAt(anchor, period.End())
		default:
			return p, pause, nil
		}
	}
}

// isEnded reports whether nothing counts in the period any more.
func (p *activePeriod) isEnded() (isEnded bool) {
	p.readState(func(s *usagefold.PeriodState) { isEnded = s.IsEnded() })
	return isEnded
}

// loadPeriod folds the stream in which a period is counted, and opens the period if nobody has. The first event of the period's own
// stream decides where it is counted: UsageCountedIn names a shared stream, and an opening means the stream itself. A log of a lower
// format than SharedUsageFormat has no shared streams.
func (m *Meter) loadPeriod(ctx context.Context, id string, period plan.Period) (*activePeriod, error) {
	ref := event.PeriodRef{Contract: id, First: period.First}
	own, err := m.readStream(ctx, usagefold.StreamName(id, period.First), preparedAppend{})
	if err != nil {
		return nil, err
	}
	p := newActivePeriod(own, ref, period)
	for {
		state, countedIn := own.ownState()
		switch {
		case state.IsOpen() || state.IsClosed(): // a shared stream may be gone once the period is closed
			return p, nil
		case countedIn != "":
			return m.loadSharedPeriod(ctx, countedIn, ref, period)
		}
		isShared, err := m.codec.HasFormat(ctx, event.SharedUsageFormat)
		switch {
		case err != nil:
		case isShared && own.revision == eventstore.NoStream:
			err = m.assignShared(ctx, own, ref)
		default:
			err = p.openOwn(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

func newActivePeriod(s *activeStream, ref event.PeriodRef, period plan.Period) *activePeriod {
	return &activePeriod{activeStream: s, ref: ref, period: period, capCheckedAt: map[string]time.Duration{}}
}

// ownState returns the state of the stream of one period, and the shared stream that it names instead, or "".
func (s *activeStream) ownState() (state *usagefold.PeriodState, countedIn string) {
	own := s.fold.(*usagefold.OwnState)
	return own.State, own.CountedIn
}

// buildOpening returns the event that opens the period, with the quota that its contract has now.
func (p *activePeriod) buildOpening(ctx context.Context) (event.UsageOpened, error) {
	requests, asOf, err := p.meter.quotas.QuotaAt(ctx, p.ref.Contract, p.clamp(p.meter.clock.Now()))
	return event.UsageOpened{Contract: p.ref.Contract, First: p.period.First, Next: p.period.Next, Cap: requests, AsOfPosition: int64(asOf)}, err
}

// openOwn appends the event that opens the period to its own stream, unless another instance has opened it. The fold ignores an opening
// that is too early by the log's clock; openOwn then fails with a tooEarlyError that says by how much.
func (p *activePeriod) openOwn(ctx context.Context) error {
	opening, err := p.buildOpening(ctx)
	if err != nil {
		return err
	}
	startedAt := p.meter.clock.Now()
	_, err = p.meter.appendNamed(ctx, p.name, fmt.Sprintf("open %d", p.revision), p.revision, opening)
	if err != nil && !errors.Is(err, eventstore.ErrConflict) {
		return err
	}
	isOwn := err == nil
	if err := p.catchUp(ctx); err != nil || !isOwn || p.stateOf(p.ref).IsOpen() {
		return err
	}
	return p.newTooEarlyError(ctx, startedAt, p.revision)
}

// newTooEarlyError returns the error of an opening that this instance appended at an instant, at a revision.
func (p *activePeriod) newTooEarlyError(ctx context.Context, startedAt time.Time, revision eventstore.Revision) error {
	return tooEarlyError{p.period.Start().Sub(startedAt) + p.logClockLag(ctx, startedAt, revision)}
}

// logClockLag returns how far the log's clock is behind this instance's. at is when this instance appended the event at a revision. It
// is 0 if that cannot be read.
func (p *activePeriod) logClockLag(ctx context.Context, at time.Time, revision eventstore.Revision) time.Duration {
	for r, err := range p.meter.store.ReadStream(ctx, p.name, revision, eventstore.Forward) {
		if err == nil {
			return at.Sub(r.Time)
		}
	}
	return 0
}
