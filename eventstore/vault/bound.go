package vault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"lieudit/eventstore"
)

// Bound is a vault that belongs to one log. It implements eventstore.Vault and is safe for concurrent use. A missing key has
// several possible causes, and Bound uses the log to distinguish them:
//
//   - The database cannot be reached: the call fails with an ordinary error, and a later one may succeed.
//   - The database is wrong: it belongs to another log, or it lost keys. Calls fail with a *WrongError until a check
//     finds the right database.
//   - One key is missing, or does not decrypt what the log holds: *eventstore.UnreadableError.
//   - The subject was erased: eventstore.ErrDestroyed, only if the log holds the erasure.
//
// Two promises follow for writing ("sealed" means encrypted with a data key): no key is created for a subject that
// already has a sealed field on the log, and no key is returned for sealing that does not open that field.
//
//	Check ─> Vault.readState ─> bindDatabase: testKeys (only where unbound) ─> compareBinding ─> compareKeys
//	Key ───> Vault.Key ─> verifyKey: firstSealed      (a key is used to seal for the first time)
//	               ├────> createKey: firstSealed      (a key is missing and wanted)
//	               └────> explainMissingKey: isErased (a key is missing)
type Bound struct {
	// AcceptLostKeys makes a check accept a database that lost keys. Fields of the subjects concerned are
	// unreadable. It is set before the first Check.
	AcceptLostKeys bool
	// OnValid is called when the first check succeeds, and each time one succeeds after one that failed. It is set
	// before the first Check; nil: nothing is called.
	OnValid func()

	vault    *Vault
	log      eventstore.Store
	logger   *slog.Logger
	instance string // holder of the lease

	checkLock *semaphore.Weighted // a mutex that a context interrupts: held during a check or probe

	mu        sync.RWMutex
	lastErr   error                   // of the last check or probe
	scrubErr  error                   // of the last scrub
	everValid bool                    // a check succeeded once
	verified  map[string][keyLen]byte // by subject: keys that verifyKey or createKey found right
	erased    map[string]bool         // subjects whose erasure was found on the log
	missing   map[string]bool         // subjects whose lost keys AcceptLostKeys accepted
}

// WrongError is why a vault must not be used with a log (Reason, which completes "the vault of data keys …"), and what the
// operator can do about it (Remedy). Both are shown to the operator.
type WrongError struct {
	Reason, Remedy string
}

func (e *WrongError) Error() string { return "the vault of data keys " + e.Reason + ". " + e.Remedy }

// maxVerified is how many entries Bound.verified may have. It bounds the memory.
const maxVerified = 50_000

// Bind returns the vault of a log. It reads neither the database nor the log: Check and Run do.
func Bind(v *Vault, log eventstore.Store, logger *slog.Logger) *Bound {
	v.isBound = true
	return &Bound{vault: v, log: log, logger: logger, instance: uuid.NewString(), checkLock: semaphore.NewWeighted(1),
		verified: map[string][keyLen]byte{}, erased: map[string]bool{}, lastErr: errors.New("the vault was not checked yet")}
}

// Key implements eventstore.Vault. create means that the caller is going to seal with the key. Only then is the key compared
// with the log: opening with a wrong key fails visibly, but sealing with one would make fields that nobody can open later.
func (b *Bound) Key(ctx context.Context, subject string, create bool) ([]byte, error) {
	key, err := b.callVault(ctx, func() ([]byte, error) { return b.vault.Key(ctx, subject, false) })
	var wrapped *wrappedError
	switch {
	case err == nil && create:
		return b.verifyKey(ctx, subject, key)
	case err == nil:
		return key, nil
	case errors.Is(err, eventstore.ErrNoKey) && create:
		return b.createKey(ctx, subject)
	case errors.Is(err, eventstore.ErrNoKey), errors.Is(err, eventstore.ErrDestroyed), errors.As(err, &wrapped):
		return nil, b.explainMissingKey(ctx, subject, err)
	}
	return nil, err
}

// DestroyKey implements eventstore.Vault.
func (b *Bound) DestroyKey(ctx context.Context, subject string) error {
	_, err := b.callVault(ctx, func() ([]byte, error) { return nil, b.vault.DestroyKey(ctx, subject) })
	return err
}

// ForgetKeys implements eventstore.Vault.
func (b *Bound) ForgetKeys() { b.vault.ForgetKeys() }

// callVault runs a call on the vault if a check has succeeded, and fails with the error of the last check otherwise. If
// the database has changed since the check, it checks again and repeats the call once.
func (b *Bound) callVault(ctx context.Context, call func() ([]byte, error)) ([]byte, error) {
	if err := b.checkReady(); err != nil {
		return nil, err
	}
	checked := b.vault.expected.Load()
	key, err := call()
	if errors.Is(err, errDatabaseChanged) {
		if err := b.checkUnlessDone(ctx, checked); err != nil {
			return nil, err
		}
		key, err = call()
	}
	return key, err
}

// checkReady returns nil when a check succeeded once and none has found the vault wrong since. An outage does not count:
// cached keys are served meanwhile.
func (b *Bound) checkReady() error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var wrong *WrongError
	if !b.everValid || b.vault.expected.Load() == nil || errors.As(b.lastErr, &wrong) {
		return b.lastErr
	}
	return nil
}

// createKey creates a key for a subject, unless the log holds a field of it: that was sealed with a key that is missing.
func (b *Bound) createKey(ctx context.Context, subject string) ([]byte, error) {
	f, err := firstSealed(ctx, b.log, subject)
	if err != nil {
		return nil, err
	}
	if f != nil {
		return nil, b.explainMissingKey(ctx, subject, eventstore.ErrNoKey)
	}
	key, err := b.callVault(ctx, func() ([]byte, error) { return b.vault.Key(ctx, subject, true) })
	if err == nil {
		b.rememberVerified(subject, key)
	}
	return key, err
}

// verifyKey returns the key if it opens the subject's first sealed field on the log. It reads the log once for each key.
func (b *Bound) verifyKey(ctx context.Context, subject string, key []byte) ([]byte, error) {
	b.mu.RLock()
	known, ok := b.verified[subject]
	b.mu.RUnlock()
	if ok && known == [keyLen]byte(key) {
		return key, nil
	}
	f, err := firstSealed(ctx, b.log, subject)
	if err != nil {
		return nil, err
	}
	if f != nil && !eventstore.CanUnseal(key, f.stream, f.text) {
		return nil, b.explainMissingKey(ctx, subject, errors.New("its data key is another"))
	}
	b.rememberVerified(subject, key)
	return key, nil
}

// rememberVerified stores that a key was found right. It forgets all others when there are too many: each then
// costs one more read of the log.
func (b *Bound) rememberVerified(subject string, key []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.verified) >= maxVerified {
		clear(b.verified)
	}
	b.verified[subject] = [keyLen]byte(key)
}

// explainMissingKey returns the error for a key that is missing or does not open: ErrDestroyed if the log holds the
// erasure of the subject, otherwise an UnreadableError with the cause why.
func (b *Bound) explainMissingKey(ctx context.Context, subject string, why error) error {
	b.mu.RLock()
	erased := b.erased[subject]
	b.mu.RUnlock()
	if erased {
		return eventstore.ErrDestroyed
	}
	erased, err := isErased(ctx, b.log, subject)
	if err != nil {
		return err
	}
	if !erased {
		b.vault.cache.remove(subject) // an operator may restore the right key at any time
		if errors.Is(why, eventstore.ErrDestroyed) {
			why = errors.New("its data key was destroyed, but the log holds no erasure")
		}
		return &eventstore.UnreadableError{Subject: subject, Err: why}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erased[subject] = true
	return eventstore.ErrDestroyed
}

const (
	probeInterval   = 2 * time.Second // between two probes whether the database is still the one that was checked
	compareInterval = time.Minute     // between two comparisons with the new events of the log
)

// Run probes the vault until ctx ends, and checks it again when it has changed. It returns early, with a *WrongError, only
// if the vault is wrong before any check has succeeded: then nothing has used it yet, and the service need not start.
func (b *Bound) Run(ctx context.Context) error {
	compared := time.Now() // the first probe makes a check, which compares too
	for {
		full := time.Since(compared) >= compareInterval
		err := b.probe(ctx, full)
		if full && err == nil {
			compared = time.Now()
			b.scrub(ctx)
		}
		var wrong *WrongError
		if errors.As(err, &wrong) && !b.wasEverValid() {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(probeInterval):
		}
	}
}

// scrub removes destroyed keys from the database's files, under the lease. If that fails, Reachable reports it until a later
// scrub succeeds.
func (b *Bound) scrub(ctx context.Context) {
	defer b.keepLease(ctx)()
	err := b.vault.scrub(ctx)
	if ctx.Err() != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scrubErr = err
}

// wasEverValid reports whether any check succeeded.
func (b *Bound) wasEverValid() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.everValid
}

// Close releases the lease and closes the vault. No other call may run at the same time or come later.
func (b *Bound) Close() error {
	b.vault.releaseLease(b.instance)
	return b.vault.Close()
}

// Ready returns an error if no check has succeeded since the start, or if the vault is wrong now. An outage of the
// database is not such an error: see Reachable.
func (b *Bound) Ready(context.Context) error { return b.checkReady() }

// Reachable returns the error of the last check or probe. While the database is unreachable, cached keys are served
// for up to a minute. It also reports the subjects whose lost keys AcceptLostKeys accepted.
func (b *Bound) Reachable(context.Context) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.lastErr == nil && len(b.missing) > 0 {
		return fmt.Errorf("the data keys of %s are lost: what was sealed with them is unreadable", listSubjects(b.missing))
	}
	if b.lastErr == nil && b.scrubErr != nil {
		return fmt.Errorf("keys of erased accounts may still be in the database's files, which are scrubbed again later: %w", b.scrubErr)
	}
	return b.lastErr
}
