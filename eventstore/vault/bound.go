package vault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
)

// Bound is a vault as the one keeper of a log's keys. Between a log and its database of keys it holds apart what looks
// alike to either of them: a database that cannot be reached (calls fail, later ones may not), one that is not the
// log's or is no longer whole (*WrongError, until another is there), a key that is missing or does not open what the log holds
// (*eventstore.UnreadableError), and an erasure, which is one only if the log says so (eventstore.ErrDestroyed).
// No key is made for a subject of which the log holds a sealed field, and none is handed out to seal with that does not
// open it.
//
//	Check ──> Vault.inspect ──> tryKeys (unbound) ──> follow (from where the database was compared up to)
//	Key ────> Vault.Key ──> isErased, firstSealed (only where a key is missing, or is used to seal for the first time)
type Bound struct {
	// AcceptLost, before the first Check, takes a database that lost keys as it is: their subjects are unreadable.
	AcceptLost bool
	// Changed, if set before the first Check, is told when a database was found to be whole that was not known to be.
	Changed func()

	vault    *Vault
	log      eventstore.Store
	logger   *slog.Logger
	instance string

	turn chan struct{} // holds one when nobody checks

	mu      sync.RWMutex
	err     error // why the last check did not find the vault whole
	sound   bool  // a check ever did
	proven  map[string][keyLen]byte
	erased  map[string]bool
	missing map[string]bool // subjects without a key, where AcceptLost took them
}

// WrongError says why a vault must not be used with a log, and what to do about it.
type WrongError struct {
	Why, Do string
	lost    bool // keys that are gone, not another's
}

func (e *WrongError) Error() string { return "the vault of data keys " + e.Why + ". " + e.Do }

const maxProven = 50_000 // subjects whose key is known to be the right one

// Bind is the vault as the keeper of a log's keys. Nothing is asked of either before Check or Run.
func Bind(v *Vault, log eventstore.Store, logger *slog.Logger) *Bound {
	b := &Bound{vault: v, log: log, logger: logger, instance: uuid.NewString(), turn: make(chan struct{}, 1),
		proven: map[string][keyLen]byte{}, erased: map[string]bool{}, err: errors.New("the vault was not checked yet")}
	b.turn <- struct{}{}
	return b
}

// Key is one of eventstore.Vault.
func (b *Bound) Key(ctx context.Context, subject string, create bool) ([]byte, error) {
	key, err := b.ask(ctx, func() ([]byte, error) { return b.vault.Key(ctx, subject, false) })
	var wrapped *wrappedError
	switch {
	case err == nil && create:
		return b.prove(ctx, subject, key)
	case err == nil:
		return key, nil
	case errors.Is(err, eventstore.ErrNoKey) && create:
		return b.make(ctx, subject)
	case errors.Is(err, eventstore.ErrNoKey), errors.Is(err, eventstore.ErrDestroyed), errors.As(err, &wrapped):
		return nil, b.explain(ctx, subject, err)
	}
	return nil, err
}

// Destroy is one of eventstore.Vault.
func (b *Bound) Destroy(ctx context.Context, subject string) error {
	_, err := b.ask(ctx, func() ([]byte, error) { return nil, b.vault.Destroy(ctx, subject) })
	return err
}

// ask asks a vault that is known to be the right one, and checks it again where it turns out to be another.
func (b *Bound) ask(ctx context.Context, question func() ([]byte, error)) ([]byte, error) {
	if err := b.admit(); err != nil {
		return nil, err
	}
	key, err := question()
	if errors.Is(err, errMoved) {
		if err := b.Check(ctx); err != nil {
			return nil, err
		}
		key, err = question()
	}
	return key, err
}

// admit is nil when the database was found whole and nothing but outages have come since.
func (b *Bound) admit() error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var wrong *WrongError
	if !b.sound || b.vault.bound.Load() == nil || errors.As(b.err, &wrong) {
		return b.err
	}
	return nil
}

// make makes a key for a subject, unless the log holds something that was sealed with one.
func (b *Bound) make(ctx context.Context, subject string) ([]byte, error) {
	f, err := firstSealed(ctx, b.log, subject)
	if err != nil {
		return nil, err
	}
	if f != nil {
		return nil, b.explain(ctx, subject, eventstore.ErrNoKey)
	}
	key, err := b.ask(ctx, func() ([]byte, error) { return b.vault.Key(ctx, subject, true) })
	if err == nil {
		b.trust(subject, key)
	}
	return key, err
}

// prove makes sure, once for each key, that what is sealed with it can be read beside what the log holds already.
func (b *Bound) prove(ctx context.Context, subject string, key []byte) ([]byte, error) {
	b.mu.RLock()
	known, ok := b.proven[subject]
	b.mu.RUnlock()
	if ok && known == [keyLen]byte(key) {
		return key, nil
	}
	f, err := firstSealed(ctx, b.log, subject)
	if err != nil {
		return nil, err
	}
	if f != nil && !eventstore.Opens(key, f.stream, f.text) {
		return nil, b.explain(ctx, subject, errors.New("its data key is another"))
	}
	b.trust(subject, key)
	return key, nil
}

func (b *Bound) trust(subject string, key []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.proven) >= maxProven {
		clear(b.proven)
	}
	b.proven[subject] = [keyLen]byte(key)
}

// explain is why a subject has no key that opens: it was erased, if the log says so, else it is unreadable.
func (b *Bound) explain(ctx context.Context, subject string, why error) error {
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
		b.vault.cache.drop(subject) // the right one may be back at any time
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
	lookEvery    = 2 * time.Second // how often it is looked whether the database is still the one that was checked
	compareEvery = time.Minute     // how often it is compared with what was added to the log
)

// Run looks after the vault until ctx ends. It ends early, with a *WrongError, only when the first verdict is that the vault is wrong:
// then the service has not begun to rely on it.
func (b *Bound) Run(ctx context.Context) error {
	compared := time.Now()
	for {
		full := time.Since(compared) >= compareEvery
		err := b.look(ctx, full)
		if full && err == nil {
			compared = time.Now()
		}
		var wrong *WrongError
		if errors.As(err, &wrong) && !b.everSound() {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
	}
}

func (b *Bound) everSound() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.sound
}

// Close frees everything. No call may be running, nor come later.
func (b *Bound) Close() error {
	b.vault.release(b.instance)
	return b.vault.Close()
}

// Ready is nil unless the vault was never found whole since the start, or is wrong now.
func (b *Bound) Ready(context.Context) error { return b.admit() }

// Reachable is nil while the database of the keys answers; else keys in use serve for their minute. It names subjects
// whose keys are lost, too.
func (b *Bound) Reachable(context.Context) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.err == nil && len(b.missing) > 0 {
		return fmt.Errorf("the data keys of %s are lost: what was sealed with them is unreadable", named(b.missing))
	}
	return b.err
}
