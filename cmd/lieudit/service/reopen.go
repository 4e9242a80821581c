package service

import (
	"context"
	"errors"
	"time"

	"lieudit/eventstore"
)

const (
	reopenInterval  = 5 * time.Second // how often unreadable accounts are tried
	reopenBatchSize = 100             // of them
	maxReopenPause  = 10 * time.Minute
)

// accountReopener has the rows of unreadable accounts written again once their keys are back. It tries a hundred accounts at a
// time, each for one question to the vault and one short read of the log; one that stops again although its key seems right is
// tried less and less often.
type accountReopener struct {
	unreadableAccounts func(ctx context.Context, after string, limit int) ([]string, error)
	checkKey           func(ctx context.Context, account string) error
	refold             func(ctx context.Context, unreadableAccounts ...string) error

	vaultChanged chan struct{} // another vault is there
	after        string
	attempts     map[string]attempt
}

// attempt is when an account may be refolded again.
type attempt struct {
	next  time.Time
	pause time.Duration
}

func (s *service) newReopener() *accountReopener {
	return &accountReopener{
		unreadableAccounts: s.projector.UnreadableAccounts, refold: s.projector.Refold,
		checkKey: func(ctx context.Context, account string) error {
			_, err := s.vault.Key(ctx, account, true)
			if errors.Is(err, eventstore.ErrDestroyed) { // then its fields are empty
				return nil
			}
			return err
		},
		vaultChanged: s.vaultChanged, attempts: map[string]attempt{},
	}
}

// run tries for as long as ctx goes on. What fails is tried again with the next round.
func (r *accountReopener) run(ctx context.Context) error {
	for {
		r.reopenDueAccounts(ctx, time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-r.vaultChanged:
			clear(r.attempts)
			r.after = ""
		case <-time.After(reopenInterval):
		}
	}
}

func (r *accountReopener) reopenDueAccounts(ctx context.Context, now time.Time) error {
	all, err := r.unreadableAccounts(ctx, r.after, reopenBatchSize)
	if err != nil {
		return err
	}
	if r.after = ""; len(all) == reopenBatchSize {
		r.after = all[len(all)-1]
	}
	var due []string
	for _, account := range all {
		if last := r.attempts[account]; now.Before(last.next) || r.checkKey(ctx, account) != nil {
			continue
		}
		due = append(due, account)
		r.scheduleRetry(account, now)
	}
	if len(due) == 0 {
		return nil
	}
	return r.refold(ctx, due...)
}

func (r *accountReopener) scheduleRetry(account string, now time.Time) {
	pause := min(max(2*r.attempts[account].pause, 2*reopenInterval), maxReopenPause)
	r.attempts[account] = attempt{now.Add(pause), pause}
	for other, t := range r.attempts {
		if now.Sub(t.next) > 2*maxReopenPause { // it is long open
			delete(r.attempts, other)
		}
	}
}
