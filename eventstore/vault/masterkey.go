package vault

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"time"

	"lieudit/eventstore/sqldb"
)

// keyLen is the length in bytes of data keys and master keys: AES-256.
const keyLen = 32

// ParseMasterKey reads a master key as configuration holds it: 32 bytes in standard base64, "" for none.
func ParseMasterKey(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != keyLen {
		return nil, errors.New("the vault's master key is not 32 bytes in base64")
	}
	return key, nil
}

// wrapper encrypts keys with the master key. Without one it returns them unchanged. A stored key of keyLen bytes is in
// clear; a wrapped one is longer.
type wrapper struct{ aead cipher.AEAD }

// newWrapper returns a wrapper for a master key; nil: keys are stored in clear.
func newWrapper(master []byte) (wrapper, error) {
	if master == nil {
		return wrapper{}, nil
	}
	if len(master) != keyLen {
		return wrapper{}, fmt.Errorf("the vault's master key has %d bytes, not %d", len(master), keyLen)
	}
	block, err := aes.NewCipher(master)
	if err != nil {
		return wrapper{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return wrapper{aead}, err
}

// seal returns a key as it is stored. The subject is authenticated with it, so that the keys of two rows cannot be
// exchanged.
func (w wrapper) seal(subject string, key []byte) []byte {
	if w.aead == nil {
		return key
	}
	return w.aead.Seal(nil, nil, key, []byte(subject))
}

// unwrapKey is the inverse of seal. It fails with a *wrappedError.
func (w wrapper) unwrapKey(subject string, stored []byte) ([]byte, error) {
	if len(stored) == keyLen {
		return stored, nil
	}
	if w.aead == nil {
		return nil, &wrappedError{subject, "needs the master key it was stored with"}
	}
	key, err := w.aead.Open(nil, nil, stored, []byte(subject))
	if err != nil || len(key) != keyLen {
		return nil, &wrappedError{subject, "does not open with this master key"}
	}
	return key, nil
}

// wrappedError: a data key is stored, but cannot be decrypted with this master key.
type wrappedError struct{ subject, why string }

func (e *wrappedError) Error() string { return "the data key of " + e.subject + " " + e.why }

// proofSubject is the subject that a proof is encrypted for. No account can have this name, because of the zero byte.
const proofSubject = "\x00master key"

// proof returns a known text encrypted with the master key, which later shows whether a master key is the same one. It is
// empty without a master key.
func (w wrapper) proof() []byte {
	if w.aead == nil {
		return []byte{}
	}
	return w.seal(proofSubject, make([]byte, keyLen))
}

// opensProof reports whether a proof was made with this master key. An empty proof fits every master key.
func (w wrapper) opensProof(proof []byte) bool {
	if len(proof) == 0 {
		return true
	}
	_, err := w.unwrapKey(proofSubject, proof)
	return err == nil
}

// Rewrap wraps every key of the vault at an address with another master key, in one transaction, and returns how many
// keys it wrapped. old is the present master key; nil: the keys are in clear. Keys in clear next to wrapped ones are fine.
// Destroyed keys stay destroyed. No instance may use the vault meanwhile: on Postgres Rewrap then fails with ErrInUse; for
// a SQLite file the caller must hold the lock of its folder.
func Rewrap(ctx context.Context, address string, old, master []byte) (int, error) {
	before, err := newWrapper(old)
	if err != nil {
		return 0, err
	}
	after, err := newWrapper(master)
	if err != nil {
		return 0, err
	}
	if after.aead == nil || bytes.Equal(old, master) {
		return 0, errors.New("vault: the new master key is missing, or is the old one")
	}
	v, err := New(address, old, time.Now)
	if err != nil {
		return 0, err
	}
	if exists, err := v.databaseExists(); !exists {
		return 0, fmt.Errorf("vault: there is none at %s: %w", v.redactedAddress(), errors.Join(os.ErrNotExist, err))
	}
	db, err := v.openDatabase(ctx)
	if err != nil {
		return 0, fmt.Errorf("vault: %w", err)
	}
	n := 0
	if err = shortenLeases(ctx, db); err == nil {
		err = db.RunInTx(ctx, func(tx *sqldb.Tx) error {
			if n, err = rewrapKeys(ctx, db, tx, before, after); err != nil {
				return err
			}
			return tx.RequireScrub(ctx) // the next instance that runs makes it
		})
	}
	if err == nil {
		err = db.TruncateWAL(ctx) // removes the old keys from the files of the database
	}
	if err = errors.Join(err, v.Close()); err != nil {
		return 0, fmt.Errorf("vault: %w", err)
	}
	return n, nil
}

// rewrapKeys replaces every stored key by the same key wrapped by after, in pages of prefetchRows, and returns how many.
// It locks the row of the binding first: an instance that creates a key meanwhile waits in lockBinding, and then fails,
// because the proof of the master key has changed.
func rewrapKeys(ctx context.Context, db *sqldb.DB, tx *sqldb.Tx, before, after wrapper) (int, error) {
	if _, err := tx.Exec(ctx, "update {binding} set master = ?, version = version + 1 where id = 1", after.proof()); err != nil {
		return 0, err
	}
	if err := checkUnused(ctx, db, tx); err != nil {
		return 0, err
	}
	n := 0
	for last := ""; ; {
		rows, err := sqldb.Select(ctx, tx, keyTable, "where subject > ? order by subject limit ?", last, prefetchRows)
		if err != nil || len(rows) == 0 {
			return n, err
		}
		last = rows[len(rows)-1].Subject
		changed := rows[:0]
		for _, r := range rows {
			if r.Destroyed != 0 {
				continue
			}
			key, err := before.unwrapKey(r.Subject, r.Key)
			if err != nil {
				return 0, fmt.Errorf("nothing was changed: %w", err)
			}
			r.Key = after.seal(r.Subject, key)
			changed = append(changed, r)
		}
		if err := sqldb.Upsert(ctx, tx, keyTable, changed); err != nil {
			return 0, err
		}
		n += len(changed)
	}
}
