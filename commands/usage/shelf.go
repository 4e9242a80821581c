package usage

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/access"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// contract is who pays, and the book that is open for them.
type contract struct {
	id       string
	current  atomic.Pointer[activePeriod]
	switchAt atomic.Int64 // when to look for another one, Unix microseconds
}

func contractID(g access.Grant) string {
	if g.Agency != "" {
		return g.Agency
	}
	return g.Account
}

func (m *Meter) findOrAddContract(id string) *contract {
	if c, ok := m.contracts.Load(id); ok {
		return c.(*contract)
	}
	c, _ := m.contracts.LoadOrStore(id, &contract{id: id})
	return c.(*contract)
}

// currentPeriod is the open book of a grant's contract, in which the grant's account has its cap.
func (m *Meter) currentPeriod(ctx context.Context, g access.Grant, arrivedAt time.Time) (*activePeriod, error) {
	now := m.clock()
	c := m.findOrAddContract(contractID(g))
	p := c.current.Load()
	if p == nil || now.UnixMicro() >= c.switchAt.Load() || p.isRetired() {
		if err := m.openShared(ctx, g, c, now, arrivedAt); err != nil {
			return nil, err
		}
		p = c.current.Load()
	}
	p.lastUsedAt.Store(now.Unix())
	return p, p.ensureCap(ctx, g, now, arrivedAt)
}

// openShared waits until the contract's book is open. One that was put away is another contract than the one of the
// same id after it.
func (m *Meter) openShared(ctx context.Context, g access.Grant, c *contract, now, arrivedAt time.Time) error {
	return m.awaitShared(ctx, g.Account, fmt.Sprintf("open %s %p", c.id, c), arrivedAt, func(ctx context.Context) error {
		return m.switchPeriod(ctx, c, g.Anchor, now)
	})
}

func (p *activePeriod) isRetired() bool {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	return p.queue.isRetired
}

// switchPeriod opens the book of the period that an instant is in; one at a time does so for a contract. A clock that was set
// back never turns to an earlier one.
func (m *Meter) switchPeriod(ctx context.Context, c *contract, anchor plan.Date, now time.Time) error {
	current := c.current.Load()
	if current != nil && !current.isRetired() && now.UnixMicro() < c.switchAt.Load() {
		return nil // somebody was faster
	}
	period := plan.PeriodAt(anchor, now)
	if current != nil && period.Start().Before(current.period.Start()) {
		period = current.period
	}
	p, switchAt, err := m.openCountablePeriod(ctx, c.id, anchor, period)
	if err != nil {
		return err
	}
	if current == nil || current.isRetired() || current.stream != p.stream {
		c.current.Store(p)
	}
	c.switchAt.Store(switchAt.UnixMicro())
	return nil
}

// errEarly: the period has not begun by the log's clock.
type tooEarlyError struct{ by time.Duration }

func (e tooEarlyError) Error() string {
	return fmt.Sprintf("the period begins in %v by the log's clock", e.by)
}

// openCountablePeriod is the book of a period that requests can be counted in: the one given, a later one when that is closed already,
// the one before when the log says that it has not begun. It also says when to look again.
func (m *Meter) openCountablePeriod(ctx context.Context, id string, anchor plan.Date, period plan.Period) (*activePeriod, time.Time, error) {
	for lookAgainIn := time.Duration(0); ; {
		p, err := m.loadPeriod(ctx, id, period)
		early := tooEarlyError{}
		switch {
		case errors.As(err, &early) && lookAgainIn == 0:
			lookAgainIn = max(early.by-ledger.MaxEarlyOpening/2, time.Second)
			period = plan.PeriodAt(anchor, period.Start().Add(-time.Nanosecond))
		case err != nil:
			return nil, time.Time{}, err
		case p.fold.IsClosed() && lookAgainIn != 0:
			return nil, time.Time{}, early
		case p.fold.IsClosed():
			period = plan.PeriodAt(anchor, period.End())
		case lookAgainIn != 0:
			return p, m.clock().Add(lookAgainIn), nil
		default:
			return p, period.End(), nil
		}
	}
}

// loadPeriod folds the stream of a period, from its latest balance on, and opens it when nobody has.
func (m *Meter) loadPeriod(ctx context.Context, id string, period plan.Period) (*activePeriod, error) {
	p, err := m.readPeriod(ctx, ledger.StreamName(id, period.First))
	if err != nil {
		return nil, err
	}
	p.period = period
	for !p.fold.IsOpen() && !p.fold.IsClosed() {
		if err := p.openPeriod(ctx, id); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// readPeriod is the book of a stream as the log has it.
func (m *Meter) readPeriod(ctx context.Context, stream string) (*activePeriod, error) {
	p := &activePeriod{meter: m, stream: stream, fold: &ledger.PeriodState{}, revision: eventstore.NoStream, capCheckedAt: map[string]time.Time{}}
	for r, err := range m.store.ReadStream(ctx, stream, eventstore.End, eventstore.Backward) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		if r.Type != (event.UsageSnapshotTaken{}).EventType() {
			continue
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			return nil, err
		}
		snapshot := e.(event.UsageSnapshotTaken)
		p.fold, p.revision = ledger.RestorePeriod(snapshot), eventstore.Revision(snapshot.AsOfRevision)
		break
	}
	return p, p.catchUp(ctx)
}

// openPeriod begins the period, or finds that somebody else has.
func (p *activePeriod) openPeriod(ctx context.Context, id string) error {
	requests, asOf, err := p.meter.quotas.QuotaAt(ctx, id, latest(p.meter.clock(), p.period.Start()))
	if err != nil {
		return err
	}
	opening := event.UsageOpened{Contract: id, First: p.period.First, Next: p.period.Next, Cap: requests, AsOfPosition: int64(asOf)}
	name := fmt.Sprintf("open %d", p.revision)
	proposed, err := p.meter.encodeEvents(ctx, p.stream, name, opening)
	if err != nil {
		return err
	}
	startedAt := p.meter.clock()
	if _, err = p.meter.appendUntilKnown(ctx, p.stream, p.revision, proposed); err != nil && !errors.Is(err, eventstore.ErrConflict) {
		return err
	}
	isOwn := err == nil
	if err := p.catchUp(ctx); err != nil || !isOwn || p.fold.IsOpen() {
		return err
	}
	return tooEarlyError{p.period.Start().Sub(startedAt) + p.logClockLag(ctx, startedAt)}
}

// logClockLag is how far the log's clock is logClockLag an instant at which something was appended to the book.
func (p *activePeriod) logClockLag(ctx context.Context, at time.Time) time.Duration {
	for r, err := range p.meter.store.ReadStream(ctx, p.stream, p.revision, eventstore.Forward) {
		if err == nil {
			return at.Sub(r.Time)
		}
	}
	return 0
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
