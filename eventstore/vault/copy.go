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

// copyRows is how many rows Copy reads at a time.
const copyRows = 5000

// ErrHasKeys means that a vault holds keys already, so that another must not be copied into its place.
var ErrHasKeys = errors.New("there is a vault with keys already")

// errRewrapped means that another master key was installed, or another vault was put in place, while the vault was copied.
var errRewrapped = errors.New("the vault was changed as a whole meanwhile: copy it again")

// Copied is what Copy has copied: how many rows, those of destroyed keys included, and the UUID of the log that they belong to, "" when
// no instance has bound them to one yet.
type Copied struct {
	Rows int
	Log  string
}

// Copy copies the keys at one address with their binding to another, where there must be no keys yet (ErrHasKeys). Keys stay wrapped
// as they are: no master key is needed. The copy is made whole or not at all.
//
// Instances may use the vault meanwhile. It is read in pages and not in one transaction, so no instance waits for a copy. The
// binding is read before the rows. So the copy holds every key that was created before the call, and a key that is destroyed
// meanwhile may be destroyed in the copy: who copies a log before its vault has every key of the copied log.
func Copy(ctx context.Context, from, to string) (c Copied, err error) {
	source, err := openExisting(ctx, from)
	if err != nil {
		return Copied{}, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := New(to, nil, time.Now)
	if err != nil {
		return Copied{}, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	db, err := target.openDatabase(ctx)
	if err == nil {
		err = shortenLeases(ctx, db)
	}
	if err != nil {
		return Copied{}, fmt.Errorf("vault: %w", err)
	}
	err = db.RunInTx(ctx, func(tx *sqldb.Tx) error {
		if err := clearUnused(ctx, db, tx); err != nil {
			return err
		}
		c, err = copyInto(ctx, source, tx)
		return err
	})
	if err != nil {
		return Copied{}, fmt.Errorf("copying the vault from %s: %w", source.redactedAddress(), err)
	}
	return c, nil
}

// openExisting opens a vault that is there: a missing file is an error that wraps os.ErrNotExist, and is not created.
func openExisting(ctx context.Context, address string) (*Vault, error) {
	v, err := New(address, nil, time.Now)
	if err != nil {
		return nil, err
	}
	if exists, err := v.databaseExists(); !exists {
		return nil, fmt.Errorf("vault: there is none at %s: %w", v.redactedAddress(), errors.Join(os.ErrNotExist, err))
	}
	if _, err := v.openDatabase(ctx); err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return v, nil
}

// clearUnused removes the binding of a vault without keys, which a service made at its first start. It refuses a vault with keys, and
// one that an instance uses.
func clearUnused(ctx context.Context, db *sqldb.DB, tx *sqldb.Tx) error {
	if err := checkUnused(ctx, db, tx); err != nil {
		return err
	}
	var keys int
	if err := tx.QueryRow(ctx, "select count(*) from (select 1 from {data_keys} limit 1) as one").Scan(&keys); err != nil {
		return err
	}
	if keys > 0 {
		return ErrHasKeys
	}
	_, err := tx.Exec(ctx, "delete from {binding}")
	return err
}

// copyInto copies the binding and the rows of a vault into the tables of a transaction, and returns what they are.
func copyInto(ctx context.Context, source *Vault, tx *sqldb.Tx) (c Copied, err error) {
	before, err := source.readBinding(ctx)
	if err != nil {
		return Copied{}, err
	}
	db, err := source.openDatabase(ctx)
	if err != nil {
		return Copied{}, err
	}
	for last := ""; ; {
		rows, err := sqldb.Select(ctx, db, keyTable, "where subject > ? order by subject limit ?", last, copyRows)
		if err == nil {
			for i := range rows {
				rows[i].Key = append([]byte{}, rows[i].Key...) // SQLite gives nil for the empty key of a destroyed one
			}
			err = sqldb.Upsert(ctx, tx, keyTable, rows)
		}
		if err != nil {
			return Copied{}, err
		}
		if c.Rows += len(rows); len(rows) < copyRows {
			break
		}
		last = rows[len(rows)-1].Subject
	}
	after, err := source.readBinding(ctx)
	if err == nil && (after.Log != before.Log || !bytes.Equal(after.Master, before.Master)) {
		err = errRewrapped
	}
	if err != nil || before.Log == "" {
		return c, err
	}
	c.Log = before.Log
	before.Master = append([]byte{}, before.Master...)
	return c, sqldb.Upsert(ctx, tx, bindingTable, []binding{before.binding})
}

// DestroyedSubjects returns the subjects whose keys were destroyed in the vault at an address.
func DestroyedSubjects(ctx context.Context, address string) (subjects []string, err error) {
	v, err := openExisting(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	db, err := v.openDatabase(ctx)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	rows, err := sqldb.Select(ctx, db, keyTable, "where destroyed <> 0 order by subject")
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	for _, r := range rows {
		subjects = append(subjects, r.Subject)
	}
	return subjects, nil
}
