package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"lieudit/eventstore/sqldb"
)

// Rewrap wraps every key of the vault at an address with another master key, in one transaction, and returns how many
// keys it wrapped. old is the present master key; nil: the keys are in clear. Keys in clear beside wrapped ones are fine.
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
	err = db.RunInTx(ctx, func(tx *sqldb.Tx) error {
		n, err = rewrapKeys(ctx, db, tx, before, after)
		return err
	})
	if err == nil {
		err = db.TruncateWAL(ctx) // removes the old keys from the files of the database
	}
	if err = errors.Join(err, v.Close()); err != nil {
		return 0, fmt.Errorf("vault: %w", err)
	}
	return n, nil
}

// rewrapKeys locks the row of the binding first: an instance that creates a key meanwhile waits in lockBinding, and then
// fails, because the proof of the master key has changed.
func rewrapKeys(ctx context.Context, db *sqldb.DB, tx *sqldb.Tx, before, after wrapper) (int, error) {
	if _, err := tx.Exec(ctx, "update binding set master = ?, version = version + 1 where id = 1", after.proof()); err != nil {
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
			key, err := before.open(r.Subject, r.Key)
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
