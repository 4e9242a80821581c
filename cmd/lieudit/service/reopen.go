package service

import (
	"context"
	"errors"
	"time"

	"lieudit/eventstore"
)

const (
	reopenEvery  = 5 * time.Second // how often unreadable accounts are tried
	reopenAtOnce = 100             // of them
	maxReopen    = 10 * time.Minute
)

// reopener has the rows of unreadable accounts written again once their keys are back. It tries a hundred accounts at a
// time, each for one question to the vault and one short read of the log; one that stops again although its key seems right is
// tried less and less often.
type reopener struct {
	accounts func(ctx context.Context, after string, limit int) ([]string, error)
	opens    func(ctx context.Context, account string) error
	refold   func(ctx context.Context, accounts ...string) error

	changed chan struct{} // another vault is there
	after   string
	tried   map[string]trial
}

// trial is when an account may be refolded again.
type trial struct {
	next  time.Time
	pause time.Duration
}

func (s *service) reopener() *reopener {
	return &reopener{
		accounts: s.projector.UnreadableAccounts, refold: s.projector.Refold,
		opens: func(ctx context.Context, account string) error {
			_, err := s.keys.Key(ctx, account, true)
			if errors.Is(err, eventstore.ErrDestroyed) { // then its fields are empty
				return nil
			}
			return err
		},
		changed: s.reopen, tried: map[string]trial{},
	}
}

// run tries for as long as ctx goes on. What fails is tried again with the next round.
func (r *reopener) run(ctx context.Context) error {
	for {
		r.try(ctx, time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
			clear(r.tried)
			r.after = ""
		case <-time.After(reopenEvery):
		}
	}
}

func (r *reopener) try(ctx context.Context, now time.Time) error {
	all, err := r.accounts(ctx, r.after, reopenAtOnce)
	if err != nil {
		return err
	}
	if r.after = ""; len(all) == reopenAtOnce {
		r.after = all[len(all)-1]
	}
	var due []string
	for _, account := range all {
		if last := r.tried[account]; now.Before(last.next) || r.opens(ctx, account) != nil {
			continue
		}
		due = append(due, account)
		r.note(account, now)
	}
	if len(due) == 0 {
		return nil
	}
	return r.refold(ctx, due...)
}

func (r *reopener) note(account string, now time.Time) {
	pause := min(max(2*r.tried[account].pause, 2*reopenEvery), maxReopen)
	r.tried[account] = trial{now.Add(pause), pause}
	for other, t := range r.tried {
		if now.Sub(t.next) > 2*maxReopen { // it is long open
			delete(r.tried, other)
		}
	}
}
