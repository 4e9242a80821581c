package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore/sqldb"
)

// Check compares the vault with the log. It returns nil when the vault holds all keys of this log; a *WrongError when it
// does not, or when the master key is another one; another error when the vault or the log cannot be read. Check binds an
// empty vault to an empty log, and a vault that has keys but no binding once one of its keys opens a field of the log.
func (b *Bound) Check(ctx context.Context) error {
	if err := b.checkLock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer b.checkLock.Release(1)
	return b.recordResult(ctx, b.runCheck(ctx))
}

// checkUnlessDone is Check, unless another caller's has succeeded since the database had the binding before.
func (b *Bound) checkUnlessDone(ctx context.Context, before *binding) error {
	if err := b.checkLock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer b.checkLock.Release(1)
	if now := b.vault.expected.Load(); now != nil && now != before && b.currentError() == nil {
		return nil
	}
	return b.recordResult(ctx, b.runCheck(ctx))
}

const (
	probeTimeout = 5 * time.Second  // timeout of a probe: a database that takes longer counts as unreachable
	checkTimeout = 10 * time.Minute // timeout of a check: the first one may compare many millions of accounts
)

// probe checks the vault only if the database has changed since the last check. When it has not and full is set, probe
// compares it with the new events of the log. An unreachable database is an error, and no reason for a check.
func (b *Bound) probe(ctx context.Context, full bool) error {
	if err := b.checkLock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer b.checkLock.Release(1)
	same, err := b.isUnchanged(ctx)
	if err != nil && !errors.Is(err, errDatabaseChanged) && !sqldb.IsMissingTable(err) && !sqldb.IsDamage(err) {
		return b.recordResult(ctx, fmt.Errorf("vault: %w", err))
	}
	// Replaced and damaged databases and missing tables are for the check to explain.
	checking, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err == nil && same {
		if full {
			err = b.compareUnderLease(checking)
		}
		return b.recordResult(ctx, err)
	}
	return b.recordResult(ctx, b.runCheck(checking))
}

// compareUnderLease is compareNewEvents that keeps the lease.
func (b *Bound) compareUnderLease(ctx context.Context) error {
	defer b.keepLease(ctx)()
	return b.compareNewEvents(ctx)
}

// compareNewEvents compares the keys with the events that were added to the log since the last comparison.
func (b *Bound) compareNewEvents(ctx context.Context) error {
	current, err := b.vault.readBinding(ctx)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return b.requireKeys(ctx, current.binding)
}

// isUnchanged reports whether the database is the one that the last check found right: bound to the same log, with the
// same proof of the master key, a version that is not lower, and keys if there were any. It also renews the lease.
func (b *Bound) isUnchanged(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	expected, minVersion := b.vault.expected.Load(), b.vault.maxVersion.Load()
	var wrong *WrongError
	if expected == nil || errors.As(b.currentError(), &wrong) {
		return false, nil
	}
	if err := b.vault.renewLease(ctx, b.instance); err != nil {
		return false, err
	}
	current, err := b.vault.readBinding(ctx)
	return current.Log == expected.Log && current.Version >= minVersion && bytes.Equal(current.Master, expected.Master) && (current.rows > 0 || current.Keys == 0), err
}

// currentError is the error of the last check or probe.
func (b *Bound) currentError() error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.lastErr
}

// recordResult stores the result of a check or probe, logs it if it differs from the previous one, and returns err. When the
// vault becomes valid it forgets which keys were verified, and calls OnValid. When it is wrong it empties the cache, whose
// keys may be another log's.
func (b *Bound) recordResult(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil { // the caller cancelled: the error says nothing about the vault
		return err
	}
	b.mu.Lock()
	before, first, changed := b.lastErr, !b.everValid, err == nil && b.lastErr != nil
	b.lastErr, b.everValid = err, b.everValid || err == nil
	if changed {
		clear(b.verified)
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
	if changed && b.OnValid != nil {
		b.OnValid()
	}
	return err
}

// runCheck is Check without its lock and its record. A damaged file is a *WrongError: waiting does not repair it.
func (b *Bound) runCheck(ctx context.Context) error {
	defer b.keepLease(ctx)()
	err := b.runCheckSteps(ctx)
	if sqldb.IsDamage(err) {
		return &WrongError{"at " + b.vault.redactedAddress() + " is damaged (" + err.Error() + ")", damageHint}
	}
	return err
}

// keepLease renews the lease during a check that takes long, until the function that it returns is called. A renewal that fails is tried again.
func (b *Bound) keepLease(ctx context.Context) (end func()) {
	if !b.vault.isPostgres() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var renewals sync.WaitGroup
	renewals.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(leaseDuration / 3):
				_ = b.vault.renewLease(ctx, b.instance)
			}
		}
	})
	return func() {
		cancel()
		renewals.Wait()
	}
}

// runCheckSteps goes from cheap to expensive steps. Each returns a *WrongError if it refuses the vault.
func (b *Bound) runCheckSteps(ctx context.Context) error {
	if err := b.vault.closeIfReplaced(); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	log, err := b.log.Identity(ctx)
	if err != nil {
		return fmt.Errorf("the vault cannot be checked without the log: %w", err)
	}
	if err := b.requireDatabase(ctx); err != nil {
		return err
	}
	err = b.vault.renewLease(ctx, b.instance)
	var current databaseState
	if err == nil {
		current, err = b.vault.readState(ctx)
	}
	if sqldb.IsMissingTable(err) {
		return &WrongError{"at " + b.vault.redactedAddress() + " was emptied: its tables are gone", restoreHint}
	}
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if current.Version < b.vault.maxVersion.Load() { // an older copy was restored
		b.vault.forgetDatabase()
	}
	if err := b.requireMasterKey(current); err != nil {
		return err
	}
	if current.Log == "" {
		if current, err = b.bindDatabase(ctx, current, log); err != nil {
			return err
		}
	}
	return b.compareBinding(ctx, current, log)
}

// requireDatabase refuses a missing SQLite file if the log holds sealed fields: a new file would have none of their keys.
func (b *Bound) requireDatabase(ctx context.Context) error {
	if exists, err := b.vault.databaseExists(); exists || err != nil {
		return err
	}
	sealed, err := b.hasSealedField(ctx)
	if err == nil && sealed {
		err = b.refuseLostKeys(&WrongError{"is not at " + b.vault.redactedAddress() + ", but the log holds fields that were sealed with its keys",
			"Put the newest copy of it back there; nothing was written. Instances that share a log share a vault, in Postgres (--postgres)" + acceptHint})
	}
	return err
}

// requireMasterKey refuses a master key that does not open the proof in the binding or a wrapped key.
func (b *Bound) requireMasterKey(current databaseState) error {
	w, isWrapped := b.vault.wrapper, len(current.Master) > 0 || current.wrappedRow != nil
	if w.aead == nil && isWrapped {
		return &WrongError{"at " + b.vault.redactedAddress() + " needs its master key: its keys are wrapped with one",
			"Give it in LIEUDIT_VAULT_KEY or with --vault-key-file"}
	}
	ok := w.opensProof(current.Master)
	if ok && current.wrappedRow != nil {
		_, err := w.unwrapKey(current.wrappedRow.Subject, current.wrappedRow.Key)
		ok = err == nil
	}
	if !ok {
		return &WrongError{"at " + b.vault.redactedAddress() + " does not open with this master key",
			"Give the one its keys are wrapped with, in LIEUDIT_VAULT_KEY or with --vault-key-file; `lieudit vault rewrap` changes it"}
	}
	return nil
}

// bindDatabase binds a database to the log if one of its keys opens a field of the log, or if there is neither a key nor a
// sealed field.
func (b *Bound) bindDatabase(ctx context.Context, current databaseState, log uuid.UUID) (databaseState, error) {
	found, err := b.testKeys(ctx)
	if err != nil {
		return current, fmt.Errorf("vault: %w", err)
	}
	switch at := b.vault.redactedAddress(); {
	case found.opened:
	case found.mismatched != "":
		err = &WrongError{"at " + at + " is another log's: its key of " + found.mismatched + " does not open what this log holds", restoreHint}
	case len(found.missing) > 0 && current.rows > 0:
		err = &WrongError{"at " + at + " is another log's: it opens nothing that this log holds", restoreHint}
	case len(found.missing) > 0:
		err = b.refuseLostKeys(&WrongError{"at " + at + " is empty, but the log holds fields that were sealed with its keys", restoreHint + acceptHint})
	case !found.sealed && current.rows > 0:
		err = &WrongError{"at " + at + " holds keys, but this log nothing that was sealed: it is another log's",
			"Put this log's vault there, or, where the log is new, move the vault away and keep it with the log it belongs to"}
	}
	if err != nil {
		return current, err
	}
	if err := b.vault.insertBinding(ctx, log); err != nil {
		return current, fmt.Errorf("vault: %w", err)
	}
	if current.wrappedRow != nil {
		if err := b.vault.storeMasterProof(ctx); err != nil {
			return current, fmt.Errorf("vault: %w", err)
		}
	}
	b.logger.Info("the vault is bound to the log", "log", log)
	current, err = b.vault.readState(ctx)
	if err != nil {
		err = fmt.Errorf("vault: %w", err)
	}
	return current, err
}

// compareBinding refuses a database that is bound to another log or has fewer keys than its binding counts. Then it
// compares the keys with the log.
func (b *Bound) compareBinding(ctx context.Context, current databaseState, log uuid.UUID) error {
	at := b.vault.redactedAddress()
	if current.Log != log.String() {
		return &WrongError{"at " + at + " belongs to the log " + current.Log + ", and this log is " + log.String(), restoreHint}
	}
	if current.rows < current.Keys {
		err := b.refuseLostKeys(&WrongError{fmt.Sprintf("at %s was emptied: it holds %d keys of %d", at, current.rows, current.Keys), restoreHint + acceptHint})
		if err == nil {
			err = b.vault.storeKeyCount(ctx, current.rows)
		}
		if err != nil {
			return err
		}
	}
	b.vault.setExpectedBinding(current.binding)
	err := b.requireKeys(ctx, current.binding)
	if err != nil { // not compared to the end: no call may use the database before it is, and no probe take it for the one that was checked
		b.vault.expected.Store(nil)
	}
	return err
}

// requireKeys refuses a database that lacks the key of a subject that the log opened since the last comparison.
func (b *Bound) requireKeys(ctx context.Context, current binding) error {
	missing, err := b.compareKeys(ctx, current)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if len(missing) == 0 {
		return nil
	}
	why := fmt.Sprintf("at %s lacks the keys of %s: it is older than the log", b.vault.redactedAddress(), listSubjects(missing))
	if err := b.refuseLostKeys(&WrongError{why, restoreHint + acceptHint}); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missing = missing
	return nil
}

// These hints end the remedies of a WrongError.
const (
	restoreHint = "Put the newest copy of this log's vault there"
	damageHint  = restoreHint + ". Only where no copy is left: move the damaged file away, and --accept-lost-keys goes on without it; the accounts can then be read no more, only closed and erased"
	acceptHint  = ". Only where no copy is left: --accept-lost-keys goes on without, and the accounts concerned can then be read no more, only closed and erased"
)

// refuseLostKeys returns the error e about lost keys, or nil if AcceptLostKeys accepts the loss.
func (b *Bound) refuseLostKeys(e *WrongError) error {
	if !b.AcceptLostKeys {
		return e
	}
	b.logger.Warn("keys are lost, and given up", "reason", "the vault "+e.Reason)
	return nil
}

// listSubjects is a text with the subjects' names: all of a few, the first of many.
func listSubjects(subjects map[string]bool) string {
	const shown = 5
	all := slices.Sorted(maps.Keys(subjects))
	if len(all) > shown {
		return fmt.Sprintf("%d accounts (%s, …)", len(all), strings.Join(all[:shown], ", "))
	}
	return strings.Join(all, ", ")
}
