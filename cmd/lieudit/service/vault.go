package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/dirlock"
	"lieudit/eventstore/vault"
)

// firstVaultCheckTimeout is how long a start waits for the verdict on the vault. A first comparison with a log of millions of accounts takes longer:
// it goes on behind, and the instance is not ready before.
const firstVaultCheckTimeout = 3 * time.Second

// openVault opens the vault, which is apart from the read models because it cannot be made again from the log. One that
// is not the log's is refused; one that cannot be reached may be there later.
func (s *service) openVault(ctx context.Context) error {
	v, err := vault.New(s.vaultLocation(), s.VaultKey, s.Now)
	if err != nil {
		return err
	}
	s.vault = vault.Bind(v, s.logs.core, s.Log)
	s.onClose(s.vault.Close)
	s.vault.AcceptLostKeys, s.vaultChanged = s.AcceptLostKeys, make(chan struct{}, 1)
	s.vault.OnValid = func() {
		select {
		case s.vaultChanged <- struct{}{}:
		default: // it is told already
		}
	}
	ctx, cancel := context.WithTimeout(ctx, firstVaultCheckTimeout)
	defer cancel()
	err = s.vault.Check(ctx)
	var wrongVault *vault.WrongError
	if errors.As(err, &wrongVault) {
		return err
	}
	if err != nil {
		s.Log.Warn("starting without the vault of data keys", "reason", err)
	}
	return nil
}

// vaultLocation is where the vault is: beside everything embedded, or in Postgres with the read models.
func (c Config) vaultLocation() string {
	if c.Postgres != "" {
		return c.Postgres
	}
	return filepath.Join(c.Data, "vault.db")
}

// RewrapVault wraps all data keys with a new master key, while no instance runs, and says how many. VaultKey is the master key
// they are wrapped with now, nil where they are in clear.
func RewrapVault(ctx context.Context, c Config, master []byte) (keys int, err error) {
	if c.Postgres == "" {
		folder, err := dirlock.Acquire(c.Data, c.Now())
		if err != nil {
			return 0, fmt.Errorf("data folder: %w", err)
		}
		defer folder.Close()
	}
	return vault.Rewrap(ctx, c.vaultLocation(), c.VaultKey, master)
}

// cursorKey is what the cursors of an account are sealed with: they are of no use any more when it is erased.
func (s *service) cursorKey(ctx context.Context, account string) ([]byte, error) {
	return s.vault.Key(ctx, account, true)
}

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
