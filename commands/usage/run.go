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
	idle  = 10 * time.Minute // after which a book that nobody asks for is put away
	sweep = time.Minute

	// farewell is how long an ending instance waits for what it has under way, and again for the log to take its end: as
	// long as a log that was just restarted needs to be found again.
	farewell = 3 * time.Second
)

// Run keeps the books to what happens to accounts on the log core after a mark, and puts away those nobody asks for,
// until ctx ends. Then all that is under way comes to its end. Requests must not come any more by then.
func (l *Ledger) Run(ctx context.Context, core eventstore.Store, after eventstore.Mark) error {
	var parts errgroup.Group
	parts.Go(func() error { return l.sayStarted(ctx) })
	parts.Go(func() error { return l.followOn(ctx, core, after) })
	parts.Go(func() error { return l.tidy(ctx) })
	err := parts.Wait()
	l.close()
	time.AfterFunc(farewell, l.end)
	l.flights.Wait()
	clean := l.life.Err() == nil
	l.end()
	if clean {
		l.sayEnded()
	}
	return err
}

// selfStream is where the instance's own life is told.
func (l *Ledger) selfStream() string { return "incarnation-" + l.incarnation.String() }

func (l *Ledger) sayStarted(ctx context.Context) error {
	for {
		proposed, err := l.encode(ctx, l.selfStream(), "started", event.IncarnationStarted{Incarnation: l.incarnation.String()})
		if err == nil {
			_, err = l.append(ctx, l.selfStream(), eventstore.Any, proposed)
		}
		if err == nil || !sleep(ctx, time.Second) {
			return nil
		}
	}
}

// sayEnded tells that nothing was left unanswered. Where it cannot be told, an audit will ask.
func (l *Ledger) sayEnded() {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	proposed, err := l.encode(ctx, l.selfStream(), "ended", event.IncarnationEnded{Incarnation: l.incarnation.String()})
	for err == nil {
		if _, err = l.append(ctx, l.selfStream(), eventstore.Any, proposed); err == nil {
			return
		}
		if errors.Is(err, eventstore.ErrUnavailable) && sleep(ctx, retryAfter) {
			err = nil
		}
	}
	l.log.Warn("the end of this instance's counting is not on the log", "incarnation", l.incarnation, "reason", err)
}

// pause waits, and says whether the ledger goes on.
func (l *Ledger) pause(d time.Duration) bool { return sleep(l.life, d) }

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

// follow carries the ends of keys and accounts, and new volumes, into the books that are open here, and after with it.
// Books that are opened later begin with what is so by then.
func (l *Ledger) follow(ctx context.Context, core eventstore.Store, after *eventstore.Mark) error {
	for signal, err := range core.Subscribe(ctx, *after, eventstore.Filter{"account"}) {
		if err != nil {
			return ended(ctx, err)
		}
		if signal.Kind != eventstore.Event {
			*after = signal.Mark
			continue
		}
		for err := l.hear(ctx, signal.Event); err != nil; err = l.hear(ctx, signal.Event) {
			if !sleep(ctx, retryAfter) {
				return nil
			}
		}
		*after = signal.Mark
	}
	return nil
}

// hear tells the books that have an account what happened to it.
func (l *Ledger) hear(ctx context.Context, r eventstore.Recorded) error {
	account := eventstore.Subject(r.Stream)
	e, err := event.Decode(r.Type, r.Data)
	if err != nil {
		return nil // whatever it is, it is not for the books
	}
	switch e := e.(type) {
	case event.KeyRevoked:
		return l.each(account, func(b *book) error {
			return b.tell(ctx, account, "revoked "+e.Key, event.UsageKeyRevoked{Account: account, Key: e.Key})
		})
	case event.AccountClosed:
		return l.each(account, func(b *book) error {
			return b.tell(ctx, account, "closed "+account, event.UsageAccountClosed{Account: account})
		})
	case event.PlanChanged:
		err = l.each(account, func(b *book) error { return b.recap(ctx, account, l.clock()) })
		var unusable *eventstore.UnusableError
		if errors.As(err, &unusable) {
			l.log.Warn("an account's volume cannot be known", "account", account, "reason", err)
			return nil // its volume stays as it is; the others are not kept waiting
		}
		return err
	}
	return nil
}

// each does something in all open books that have an account.
func (l *Ledger) each(account string, do func(*book) error) (err error) {
	l.contracts.Range(func(_, c any) bool {
		if b := c.(*contract).book.Load(); b != nil && b.has(account) && !b.isGone() {
			err = do(b)
		}
		return err == nil || errors.Is(err, errGone)
	})
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

func (b *book) has(account string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	_, _, known := b.fold.Cap(account)
	return known
}

func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (l *Ledger) tidy(ctx context.Context) error {
	for sleep(ctx, sweep) {
		l.contracts.Range(func(id, c any) bool {
			b := c.(*contract).book.Load()
			if b != nil && l.clock().Unix()-b.used.Load() > int64(idle.Seconds()) && b.held.Load() == 0 && b.queue.retire() {
				l.contracts.CompareAndDelete(id, c)
			}
			return true
		})
	}
	return nil
}

// report says once that counting fails, and once that it works again.
func (l *Ledger) report(stream string, err error) {
	switch {
	case errors.Is(err, errGone):
	case err != nil && l.failing.CompareAndSwap(false, true):
		l.log.Warn("requests are not served: usage cannot be counted", "stream", stream, "reason", err)
	case err == nil && l.failing.Load() && l.failing.CompareAndSwap(true, false):
		l.log.Info("usage is counted again")
	}
}
