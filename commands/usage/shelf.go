package usage

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// contract is who pays, and the book that is open for them.
type contract struct {
	id    string
	book  atomic.Pointer[book]
	until atomic.Int64 // when to look for another one, Unix microseconds
}

func contractOf(g grant.Grant) string {
	if g.Agency != "" {
		return g.Agency
	}
	return g.Account
}

func (l *Ledger) contract(id string) *contract {
	if c, ok := l.contracts.Load(id); ok {
		return c.(*contract)
	}
	c, _ := l.contracts.LoadOrStore(id, &contract{id: id})
	return c.(*contract)
}

// book is the open book of a grant's contract, in which the grant's account has its cap.
func (l *Ledger) book(ctx context.Context, g grant.Grant, came time.Time) (*book, error) {
	now := l.clock()
	c := l.contract(contractOf(g))
	b := c.book.Load()
	if b == nil || now.UnixMicro() >= c.until.Load() || b.isGone() {
		if err := l.shareOpening(ctx, g, c, now, came); err != nil {
			return nil, err
		}
		b = c.book.Load()
	}
	b.used.Store(now.Unix())
	return b, b.agree(ctx, g, now, came)
}

// shareOpening waits until the contract's book is open. One that was put away is another contract than the one of the
// same id after it.
func (l *Ledger) shareOpening(ctx context.Context, g grant.Grant, c *contract, now, came time.Time) error {
	return l.share(ctx, g.Account, fmt.Sprintf("open %s %p", c.id, c), came, func(ctx context.Context) error {
		return l.turnTo(ctx, c, g.Anchor, now)
	})
}

func (b *book) isGone() bool {
	b.queue.mu.Lock()
	defer b.queue.mu.Unlock()
	return b.queue.gone
}

// turnTo opens the book of the period that an instant is in; one at a time does so for a contract. A clock that was set
// back never turns to an earlier one.
func (l *Ledger) turnTo(ctx context.Context, c *contract, anchor plan.Date, now time.Time) error {
	open := c.book.Load()
	if open != nil && !open.isGone() && now.UnixMicro() < c.until.Load() {
		return nil // somebody was faster
	}
	period := plan.PeriodAt(anchor, now)
	if open != nil && period.Start().Before(open.period.Start()) {
		period = open.period
	}
	b, until, err := l.opened(ctx, c.id, anchor, period)
	if err != nil {
		return err
	}
	if open == nil || open.isGone() || open.stream != b.stream {
		c.book.Store(b)
	}
	c.until.Store(until.UnixMicro())
	return nil
}

// errEarly: the period has not begun by the log's clock.
type earlyError struct{ by time.Duration }

func (e earlyError) Error() string {
	return fmt.Sprintf("the period begins in %v by the log's clock", e.by)
}

// opened is the book of a period that requests can be counted in: the one given, a later one when that is closed already,
// the one before when the log says that it has not begun. It also says when to look again.
func (l *Ledger) opened(ctx context.Context, id string, anchor plan.Date, period plan.Period) (*book, time.Time, error) {
	for back := time.Duration(0); ; {
		b, err := l.load(ctx, id, period)
		early := earlyError{}
		switch {
		case errors.As(err, &early) && back == 0:
			back = max(early.by-ledger.Early/2, time.Second)
			period = plan.PeriodAt(anchor, period.Start().Add(-time.Nanosecond))
		case err != nil:
			return nil, time.Time{}, err
		case b.fold.Closed() && back != 0:
			return nil, time.Time{}, early
		case b.fold.Closed():
			period = plan.PeriodAt(anchor, period.End())
		case back != 0:
			return b, l.clock().Add(back), nil
		default:
			return b, period.End(), nil
		}
	}
}

// load folds the stream of a period, from its latest balance on, and opens it when nobody has.
func (l *Ledger) load(ctx context.Context, id string, period plan.Period) (*book, error) {
	b, err := l.read(ctx, ledger.Stream(id, period.First))
	if err != nil {
		return nil, err
	}
	b.period = period
	for !b.fold.Opened() && !b.fold.Closed() {
		if err := b.open(ctx, id); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// read is the book of a stream as the log has it.
func (l *Ledger) read(ctx context.Context, stream string) (*book, error) {
	b := &book{ledger: l, stream: stream, fold: &ledger.Book{}, revision: eventstore.NoStream, checked: map[string]time.Time{}}
	for r, err := range l.store.ReadStream(ctx, stream, eventstore.End, eventstore.Backward) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", stream, err)
		}
		if r.Type != (event.UsageBalanced{}).EventType() {
			continue
		}
		e, err := event.Decode(r.Type, r.Data)
		if err != nil {
			return nil, err
		}
		balance := e.(event.UsageBalanced)
		b.fold, b.revision = ledger.Resume(balance), eventstore.Revision(balance.AsOf)
		break
	}
	return b, b.forward(ctx)
}

// open begins the period, or finds that somebody else has.
func (b *book) open(ctx context.Context, id string) error {
	requests, asOf, err := b.ledger.terms.Volume(ctx, id, latest(b.ledger.clock(), b.period.Start()))
	if err != nil {
		return err
	}
	opening := event.UsageOpened{Contract: id, First: b.period.First, Next: b.period.Next, Cap: requests, AsOf: int64(asOf)}
	name := fmt.Sprintf("open %d", b.revision)
	proposed, err := b.ledger.encode(ctx, b.stream, name, opening)
	if err != nil {
		return err
	}
	begun := b.ledger.clock()
	if _, err = b.ledger.append(ctx, b.stream, b.revision, proposed); err != nil && !errors.Is(err, eventstore.ErrConflict) {
		return err
	}
	mine := err == nil
	if err := b.forward(ctx); err != nil || !mine || b.fold.Opened() {
		return err
	}
	return earlyError{b.period.Start().Sub(begun) + b.behind(ctx, begun)}
}

// behind is how far the log's clock is behind an instant at which something was appended to the book.
func (b *book) behind(ctx context.Context, at time.Time) time.Duration {
	for r, err := range b.ledger.store.ReadStream(ctx, b.stream, b.revision, eventstore.Forward) {
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
