package instance

import (
	"context"
	"errors"
	"strings"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/vault"
)

// firstVaultCheckTimeout is how long a start waits for the comparison of the vault with the log. With millions of
// accounts the first comparison takes longer: it continues in the background, and the instance is not ready before its end.
const firstVaultCheckTimeout = 3 * time.Second

// bindVault binds the vault to the core log. The vault keeps the data keys that encrypt personal fields. It is apart from the read
// models because it cannot be made again from the log.
func (i *Instance) bindVault() {
	i.vault = vault.Bind(i.Vault, i.Core, i.Log)
	i.vault.AcceptLostKeys, i.vaultChanged = i.AcceptLostKeys, make(chan struct{}, 1)
	i.vault.OnValid = func() { // wakes the accountReopener: keys that were missing may be back
		select {
		case i.vaultChanged <- struct{}{}:
		default: // a value is waiting already
		}
	}
}

// checkVault refuses a vault that belongs to another log, or lacks keys. One that cannot be reached is not an error.
func (i *Instance) checkVault(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, firstVaultCheckTimeout)
	defer cancel()
	err := i.vault.Check(ctx)
	if _, isWrong := errors.AsType[*vault.WrongError](err); isWrong {
		return err
	}
	if err != nil {
		i.Log.Warn("starting without the vault of data keys", "reason", err)
	}
	return nil
}

// cursorKey returns the key that encrypts an account's cursors, which may hold texts of its sites. It is the account's data
// key, so that an erased account's cursors cannot be read any more. A missing key is created.
func (i *Instance) cursorKey(ctx context.Context, account string) ([]byte, error) {
	return i.vault.Key(ctx, account, true)
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
func (i *Instance) newReopener() *accountReopener {
	return &accountReopener{
		unreadableAccounts: i.projector.UnreadableAccounts, refold: i.projector.Refold,
		checkKey: func(ctx context.Context, account string) error {
			if strings.HasPrefix(account, "/") { // the stream of a token, whose account is unknown here: only a refold shows whether it opens
				return nil
			}
			_, err := i.vault.Key(ctx, account, true)
			if errors.Is(err, eventstore.ErrDestroyed) { // an erased account is readable: its fields are empty
				return nil
			}
			return err
		},
		vaultChanged: i.vaultChanged, attempts: map[string]attempt{},
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
