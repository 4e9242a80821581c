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

// firstVaultCheckTimeout is how long a start waits for the comparison of the vault with the log. With millions of
// accounts the first comparison takes longer: it goes on in the background, and the instance is not ready before its end.
const firstVaultCheckTimeout = 3 * time.Second

// openVault opens the vault, which keeps the data keys that encrypt personal fields. It is separate from the read models
// because it cannot be made again from the log. A vault that belongs to another log, or lacks keys, is an error, which
// refuses the start; one that cannot be reached is not.
func (s *service) openVault(ctx context.Context) error {
	v, err := vault.New(s.vaultLocation(), s.VaultKey, s.Now)
	if err != nil {
		return err
	}
	s.vault = vault.Bind(v, s.logs.core, s.Log)
	s.onClose(s.vault.Close)
	s.vault.AcceptLostKeys, s.vaultChanged = s.AcceptLostKeys, make(chan struct{}, 1)
	s.vault.OnValid = func() { // wakes the accountReopener: keys that were missing may be back
		select {
		case s.vaultChanged <- struct{}{}:
		default: // a value is waiting already
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

// vaultLocation is where the vault is: a file of the data folder, or Postgres where the read models are there.
func (c Config) vaultLocation() string {
	if c.Postgres != "" {
		return c.Postgres
	}
	return filepath.Join(c.Data, vaultFile)
}

// RewrapVault encrypts all data keys with a new master key and returns how many. c.VaultKey is the present master key, nil
// where the data keys are in clear. No instance may run meanwhile; an embedded one is noticed by the lock of its folder
// (*dirlock.HeldError). All keys are changed, or none.
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

// cursorKey returns the key that encrypts an account's cursors, which may hold texts of its sites. It is the account's data
// key, so that an erased account's cursors cannot be read any more. A missing key is created.
func (s *service) cursorKey(ctx context.Context, account string) ([]byte, error) {
	return s.vault.Key(ctx, account, true)
}

const (
	reopenInterval  = 5 * time.Second  // how often a batch of unreadable accounts is tried
	reopenBatchSize = 100              // accounts
	maxReopenPause  = 10 * time.Minute // the longest pause between two refolds of one account
)

// accountReopener has the rows of unreadable accounts written again once their keys are back. An account is unreadable when
// a read model has stopped it because a personal field could not be decrypted. Each round tries up to reopenBatchSize
// accounts, at the cost of one query of the vault and one short read of the log each. An account that stops again although
// its key seems right is tried less and less often. The pauses are kept in a map; a library's backoff would need a timer
// for each account.
type accountReopener struct {
	unreadableAccounts func(ctx context.Context, after string, limit int) ([]string, error) // in the order of ids
	checkKey           func(ctx context.Context, account string) error                      // nil: a refold may succeed
	refold             func(ctx context.Context, accounts ...string) error                  // requests it and does not wait

	vaultChanged chan struct{} // receives a value when another vault is valid: all accounts are due again
	after        string        // the last account of the round before; "": begin with the first account
	attempts     map[string]attempt
}

// attempt describes the last refold of an account: when the next one is due, and the pause between the two.
type attempt struct {
	next  time.Time
	pause time.Duration
}

// newReopener connects a reopener with the projector, which lists the accounts, and the vault, which has their keys.
func (s *service) newReopener() *accountReopener {
	return &accountReopener{
		unreadableAccounts: s.projector.UnreadableAccounts, refold: s.projector.Refold,
		checkKey: func(ctx context.Context, account string) error {
			_, err := s.vault.Key(ctx, account, true)
			if errors.Is(err, eventstore.ErrDestroyed) { // an erased account is readable: its fields are empty
				return nil
			}
			return err
		},
		vaultChanged: s.vaultChanged, attempts: map[string]attempt{},
	}
}

// reopenAccounts does a round every reopenInterval until ctx ends. An error of a round is dropped: the accounts stay stopped, which
// readiness reports, and a later round tries them again. A valid vault makes all accounts due at once.
func (r *accountReopener) reopenAccounts(ctx context.Context) error {
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

// reopenDueAccounts does one round: it requests a refold of the accounts whose pause is over and whose key can be read. The
// rounds go through all unreadable accounts in turn, and then begin with the first again.
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

// scheduleRetry doubles an account's pause, from twice reopenInterval up to maxReopenPause. It forgets the accounts that were
// due long ago and not tried: they are readable again.
func (r *accountReopener) scheduleRetry(account string, now time.Time) {
	pause := min(max(2*r.attempts[account].pause, 2*reopenInterval), maxReopenPause)
	r.attempts[account] = attempt{now.Add(pause), pause}
	for other, t := range r.attempts {
		if now.Sub(t.next) > 2*maxReopenPause {
			delete(r.attempts, other)
		}
	}
}
