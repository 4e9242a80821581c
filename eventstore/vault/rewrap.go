package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"lieudit/schemas/table"
)

// Rewrap wraps every key of the vault at an address with another master key, in one transaction, and says how many there
// are. old is the one they are wrapped with, nil where they are in clear; both may stand side by side. Destroyed keys stay destroyed.
// No instance may use the vault: one that does on Postgres is ErrInUse; whose file a vault is has to be seen to by the caller.
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
	if there, err := v.exists(); !there {
		return 0, fmt.Errorf("vault: there is none at %s: %w", v.place(), errors.Join(os.ErrNotExist, err))
	}
	db, err := v.reach(ctx)
	if err != nil {
		return 0, fmt.Errorf("vault: %w", err)
	}
	n := 0
	err = db.Tx(ctx, func(tx *table.Tx) error {
		n, err = rewrapIn(ctx, db, tx, before, after)
		return err
	})
	if err == nil {
		err = db.Scrub(ctx) // the keys in clear are in no file any more
	}
	if err = errors.Join(err, v.Close()); err != nil {
		return 0, fmt.Errorf("vault: %w", err)
	}
	return n, nil
}

// rewrapIn takes the row of the binding first: an instance that makes a key meanwhile waits, and is then refused.
func rewrapIn(ctx context.Context, db *table.DB, tx *table.Tx, before, after wrapper) (int, error) {
	if _, err := tx.Exec(ctx, "update binding set master = ?, version = version + 1 where id = 1", after.proof()); err != nil {
		return 0, err
	}
	if err := unused(ctx, db, tx); err != nil {
		return 0, err
	}
	n := 0
	for last := ""; ; {
		rows, err := table.Select(ctx, tx, keys, "where subject > ? order by subject limit ?", last, ahead)
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
		if err := table.Upsert(ctx, tx, keys, changed); err != nil {
			return 0, err
		}
		n += len(changed)
	}
}
