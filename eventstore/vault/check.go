package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"lieudit/schemas/table"
)

// Check compares the vault with the log. It is nil when its keys are the log's, and all there; a *WrongError when they
// are not, or the master key is not theirs; another error when one of the two cannot be asked. A new vault is bound to
// the log here, and one from before there were bindings as soon as it has opened something of it.
func (b *Bound) Check(ctx context.Context) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	defer b.end()
	return b.note(ctx, b.check(ctx))
}

const (
	maxLook  = 5 * time.Second  // after which a database that says nothing counts as away
	maxCheck = 10 * time.Minute // for a first comparison with a log of many millions of accounts
)

// look is Check that does little while the database is the one that was checked.
func (b *Bound) look(ctx context.Context, full bool) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	defer b.end()
	same, err := b.unchanged(ctx)
	if err != nil && !errors.Is(err, errMoved) && !table.IsMissing(err) {
		return b.note(ctx, fmt.Errorf("vault: %w", err))
	}
	checking, cancel := context.WithTimeout(ctx, maxCheck)
	defer cancel()
	if err == nil && same {
		if full {
			err = b.catchUp(checking)
		}
		return b.note(ctx, err)
	}
	return b.note(ctx, b.check(checking))
}

// catchUp compares the database with what was added to the log.
func (b *Bound) catchUp(ctx context.Context) error {
	now, err := b.vault.glance(ctx)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return b.complete(ctx, now.binding)
}

func (b *Bound) begin(ctx context.Context) error {
	select {
	case <-b.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Bound) end() { b.turn <- struct{}{} }

// unchanged says whether nothing has happened to the database since it was checked. The lease is renewed with it.
func (b *Bound) unchanged(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, maxLook)
	defer cancel()
	expected, seen := b.vault.bound.Load(), b.vault.seen.Load()
	var wrong *WrongError
	if expected == nil || errors.As(b.verdict(), &wrong) {
		return false, nil
	}
	if err := b.vault.renew(ctx, b.instance); err != nil {
		return false, err
	}
	now, err := b.vault.glance(ctx)
	return now.Log == expected.Log && now.Version >= seen && bytes.Equal(now.Master, expected.Master) && (now.rows > 0 || now.Keys == 0), err
}

func (b *Bound) verdict() error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.err
}

// note remembers a verdict and tells of it once.
func (b *Bound) note(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil { // who asked has gone: that says nothing
		return err
	}
	b.mu.Lock()
	before, first, changed := b.err, !b.sound, err == nil && b.err != nil
	b.err, b.sound = err, b.sound || err == nil
	if changed {
		clear(b.proven)
	}
	b.mu.Unlock()
	var wrong *WrongError
	if errors.As(err, &wrong) {
		b.vault.cache.clear()
	}
	switch {
	case wrong != nil && (before == nil || before.Error() != err.Error()):
		b.logger.Error("the vault is wrong", "reason", err)
	case err != nil && before == nil:
		b.logger.Error("the vault cannot be checked: keys in use serve for a minute", "reason", err)
	case changed && !first:
		b.logger.Info("the vault is whole again")
	}
	if changed && b.Changed != nil {
		b.Changed()
	}
	return err
}

func (b *Bound) check(ctx context.Context) error {
	if err := b.vault.refresh(); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	log, err := b.log.Identity(ctx)
	if err != nil {
		return fmt.Errorf("the vault cannot be checked without the log: %w", err)
	}
	if err := b.present(ctx); err != nil {
		return err
	}
	err = b.vault.renew(ctx, b.instance)
	var now contents
	if err == nil {
		now, err = b.vault.inspect(ctx)
	}
	if table.IsMissing(err) {
		return &WrongError{"at " + b.vault.place() + " was emptied: its tables are gone", putBack, true}
	}
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if now.Version < b.vault.seen.Load() { // an older copy
		b.vault.forget()
	}
	if err := b.openable(now); err != nil {
		return err
	}
	if now.Log == "" {
		if now, err = b.bind(ctx, now, log); err != nil {
			return err
		}
	}
	return b.compare(ctx, now, log)
}

// present refuses a database that would have to be made although the log holds what was sealed with its keys.
func (b *Bound) present(ctx context.Context) error {
	if there, err := b.vault.exists(); there || err != nil {
		return err
	}
	sealed, err := b.holdsSealed(ctx)
	if err == nil && sealed {
		err = b.lost(&WrongError{"is not at " + b.vault.place() + ", but the log holds fields that were sealed with its keys",
			"Put the newest copy of it back there; nothing was written. Instances that share a log share a vault, in Postgres (--postgres)" + orAccept, true})
	}
	return err
}

// openable refuses a master key that is not the one that keys are wrapped with.
func (b *Bound) openable(now contents) error {
	w, isWrapped := b.vault.wrapper, len(now.Master) > 0 || now.wrapped != nil
	if w.aead == nil && isWrapped {
		return &WrongError{"at " + b.vault.place() + " needs its master key: its keys are wrapped with one",
			"Give it in LIEUDIT_VAULT_KEY or with --vault-key-file", false}
	}
	ok := w.proves(now.Master)
	if ok && now.wrapped != nil {
		_, err := w.open(now.wrapped.Subject, now.wrapped.Key)
		ok = err == nil
	}
	if !ok {
		return &WrongError{"at " + b.vault.place() + " does not open with this master key",
			"Give the one its keys are wrapped with, in LIEUDIT_VAULT_KEY or with --vault-key-file; `lieudit vault rewrap` changes it", false}
	}
	return nil
}

// bind makes an unbound database the log's, if its keys open what the log holds, or there is neither.
func (b *Bound) bind(ctx context.Context, now contents, log uuid.UUID) (contents, error) {
	found, err := b.tryKeys(ctx)
	if err != nil {
		return now, fmt.Errorf("vault: %w", err)
	}
	switch at := b.vault.place(); {
	case found.opened:
	case found.closed != "":
		err = &WrongError{"at " + at + " is another log's: its key of " + found.closed + " does not open what this log holds", putBack, false}
	case len(found.missing) > 0 && now.rows > 0:
		err = &WrongError{"at " + at + " is another log's: it opens nothing that this log holds", putBack, false}
	case len(found.missing) > 0:
		err = b.lost(&WrongError{"at " + at + " is empty, but the log holds fields that were sealed with its keys", putBack + orAccept, true})
	case !found.sealed && now.rows > 0:
		err = &WrongError{"at " + at + " holds keys, but this log nothing that was sealed: it is another log's",
			"Put this log's vault there, or, where the log is new, move the vault away and keep it with the log it belongs to", false}
	}
	if err != nil {
		return now, err
	}
	if err := b.vault.bind(ctx, log); err != nil {
		return now, fmt.Errorf("vault: %w", err)
	}
	if now.wrapped != nil {
		if err := b.vault.proveMaster(ctx); err != nil {
			return now, fmt.Errorf("vault: %w", err)
		}
	}
	b.logger.Info("the vault is bound to the log", "log", log)
	now, err = b.vault.inspect(ctx)
	if err != nil {
		err = fmt.Errorf("vault: %w", err)
	}
	return now, err
}

// compare refuses a bound database that is another log's, or lost keys.
func (b *Bound) compare(ctx context.Context, now contents, log uuid.UUID) error {
	at := b.vault.place()
	if now.Log != log.String() {
		return &WrongError{"at " + at + " belongs to the log " + now.Log + ", and this log is " + log.String(), putBack, false}
	}
	if now.rows < now.Keys {
		err := b.lost(&WrongError{fmt.Sprintf("at %s was emptied: it holds %d keys of %d", at, now.rows, now.Keys), putBack + orAccept, true})
		if err == nil {
			err = b.vault.recount(ctx, now.rows)
		}
		if err != nil {
			return err
		}
	}
	b.vault.expect(now.binding)
	return b.complete(ctx, now.binding)
}

// complete refuses a database that lacks keys of what was added to the log since they were compared.
func (b *Bound) complete(ctx context.Context, now binding) error {
	missing, err := b.follow(ctx, now)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if len(missing) == 0 {
		return nil
	}
	why := fmt.Sprintf("at %s lacks the keys of %s: it is older than the log", b.vault.place(), named(missing))
	if err := b.lost(&WrongError{why, putBack + orAccept, true}); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missing = missing
	return nil
}

const (
	putBack  = "Put the newest copy of this log's vault there"
	orAccept = ". Only where no copy is left: --accept-lost-keys goes on without, and the accounts concerned can then be read no more, only closed and erased"
)

// lost is the error about keys that are lost, unless they were given up.
func (b *Bound) lost(e *WrongError) error {
	if !b.AcceptLost {
		return e
	}
	b.logger.Warn("keys are lost, and given up", "reason", "the vault "+e.Why)
	return nil
}

// named are some subjects of many.
func named(subjects map[string]bool) string {
	const shown = 5
	all := slices.Sorted(maps.Keys(subjects))
	if len(all) > shown {
		return fmt.Sprintf("%d accounts (%s, …)", len(all), strings.Join(all[:shown], ", "))
	}
	return strings.Join(all, ", ")
}
