// Package vault stores the data keys that encrypt personal fields, one key for each subject (an account). The log keeps the
// encrypted fields permanently; the vault is a separate database, so destroying a key erases the fields. A key that one
// instance destroys is refused by every instance within a minute, so no key is cached for longer.
//
//	codec ─> Bound.Key ─> Vault.Key ─> keyCache ─> lookUpRow ─> data_keys (Postgres or a SQLite file)
//	           │             └── create: insertKey      └── binding: which log, how many keys, which version
//	           └── ReadStream: is the key missing because the subject was erased?
//
//	Bound.Run ─> probe ─> runCheck: requireMasterKey, bindDatabase, compareBinding, compareKeys ─> recordResult
//
// Vault is the database alone. Bound adds the log: it refuses a database that belongs to another log, or that lost keys. The
// service uses Bound; `lieudit vault rewrap` uses Rewrap.
//
// The terms of this package:
//
//   - A data key encrypts the personal fields of one subject. To seal a field is to encrypt it with the data key.
//   - The master key encrypts the data keys in the database, if there is one. To wrap a key is to encrypt it with the
//     master key.
//   - To destroy a key is to delete it permanently. To erase a subject is to append an event that records the erasure, and
//     to destroy its key.
//   - The binding is a row next to the keys. It records which log they belong to.
//   - A check compares the database with the log. A probe tests whether the database is still the one that was checked,
//     and checks it again only when it is not.
package vault

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// Vault implements eventstore.Vault on Postgres or in a SQLite file. It does not know the log; Bound does. It is
// safe for concurrent use. The database may be unavailable at the start and at any time later: cached keys are
// served meanwhile.
type Vault struct {
	Simulated sqldb.Simulated // see sqldb.Options; it may be set before first use
	// ScrubInterval is the least time between two scrubs of the files of a Postgres database; an hour unless set before first use.
	ScrubInterval time.Duration

	isBound bool // it belongs to a log (Bind): its database is used only once it was checked
	address string
	wrapper wrapper          // of the master key
	wall    func() time.Time // stamps rows; the ages of cache entries are elapsed time
	cache   keyCache
	replay  replayDetector

	openLock   *semaphore.Weighted // a mutex that a context interrupts: held while the database is opened
	db         atomic.Pointer[database]
	expected   atomic.Pointer[binding] // the binding that the database must have; nil before the first check
	maxVersion atomic.Int64            // the highest binding.Version that was read; a lower one is an older copy
}

// row is a subject's key. The row of a destroyed key stays, without the key, so that the subject never gets another one.
type row struct {
	Subject   string
	Key       []byte
	Created   table.Instant
	Destroyed table.Instant
}

// keyTable is the table of the keys. The index on created serves prefetchAfter. A key that was destroyed must not stay in the
// database's files: it is personal as what it opens.
var keyTable = table.Table[row]{
	Def: table.Def{Name: "data_keys", KeyColumns: 1, Indexes: []string{"created"}, PersonalColumns: []string{"key"}, Columns: []table.Column{
		{Name: "subject", Type: table.Text}, {Name: "key", Type: table.Bytes},
		{Name: "created", Type: table.Timestamp}, {Name: "destroyed", Type: table.Timestamp},
	}},
	Fields: func(r *row) []any { return []any{&r.Subject, &r.Key, &r.Created, &r.Destroyed} },
}

// New returns the vault at an address: postgres://… or the path of a SQLite file, which the first use creates. New
// itself opens nothing. With a master key (see ParseMasterKey) new keys are stored wrapped, that is encrypted;
// without one (nil) they are stored in clear. wall is the wall clock.
func New(address string, master []byte, wall func() time.Time) (*Vault, error) {
	w, err := newWrapper(master)
	if err != nil {
		return nil, err
	}
	return &Vault{address: address, wrapper: w, wall: wall, cache: keyCache{clock: time.Now}, openLock: semaphore.NewWeighted(1)}, nil
}

// Key returns the subject's data key, as eventstore.Vault says: eventstore.ErrNoKey when there is none and create
// is not set, eventstore.ErrDestroyed when it was destroyed. The caller must not change its bytes.
func (v *Vault) Key(ctx context.Context, subject string, create bool) ([]byte, error) {
	if key, known := v.cache.get(subject); known {
		return keyOrDestroyed(key)
	}
	queriedAt := v.cache.clock() // before the query: what it finds is at least as new
	r, err := v.findOrCreateRow(ctx, subject, create)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	if r == nil {
		return nil, eventstore.ErrNoKey
	}
	var key []byte
	if r.Destroyed == 0 {
		if key, err = v.wrapper.unwrapKey(subject, r.Key); err != nil {
			return nil, fmt.Errorf("vault: %w", err)
		}
	}
	if !create && v.replay.isReplay(*r) {
		v.prefetchAfter(ctx, *r)
	}
	return keyOrDestroyed(v.cache.put(subject, key, queriedAt))
}

// keyOrDestroyed returns a key, or the error for one that was destroyed (nil).
func keyOrDestroyed(key []byte) ([]byte, error) {
	if key == nil {
		return nil, eventstore.ErrDestroyed
	}
	return key, nil
}

// readUncheckedKey is Key for the check of a database that is not known to be the right one. It caches nothing.
func (v *Vault) readUncheckedKey(ctx context.Context, subject string) ([]byte, error) {
	db, err := v.openDatabase(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := sqldb.LoadByKeys(ctx, db, keyTable, []string{subject})
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, eventstore.ErrNoKey
	case rows[0].Destroyed != 0:
		return nil, eventstore.ErrDestroyed
	}
	return v.wrapper.unwrapKey(subject, rows[0].Key)
}

// findOrCreateRow reads the row of a subject, and inserts it if it is missing and create is set. It returns nil if there is
// none.
func (v *Vault) findOrCreateRow(ctx context.Context, subject string, create bool) (*row, error) {
	db, err := v.openDatabase(ctx)
	if err != nil {
		return nil, err
	}
	found, err := v.lookUpRow(ctx, db, subject)
	if err == nil && found == nil && create {
		if err = v.insertKey(ctx, db, subject); err == nil {
			found, err = v.lookUpRow(ctx, db, subject)
		}
	}
	return found, err
}

// insertKey stores a new random key. If another instance inserted one first, that key stays: the caller reads the row
// again to learn which key it is.
func (v *Vault) insertKey(ctx context.Context, db *sqldb.DB, subject string) error {
	key := make([]byte, keyLen)
	rand.Read(key) // never fails: the runtime ends the program first
	err := db.RunInTx(ctx, func(tx *sqldb.Tx) error {
		if err := v.lockBinding(ctx, tx, true); err != nil {
			return err
		}
		n, err := tx.Exec(ctx, "insert into {data_keys} (subject, key, created, destroyed) values (?, ?, ?, 0) on conflict do nothing",
			subject, v.wrapper.seal(subject, key), int64(table.InstantOf(v.wall())))
		if err != nil {
			return err
		}
		return v.addToKeyCount(ctx, tx, n)
	})
	if err != nil {
		return err
	}
	_, err = v.openDatabase(ctx) // fails if the SQLite file was replaced meanwhile: the new file does not have the key
	return err
}

// DestroyKey deletes a subject's key. This instance refuses it at once, the others within a minute. A subject that had no
// key can never get one. Backups of the database keep the key.
func (v *Vault) DestroyKey(ctx context.Context, subject string) error {
	return v.destroyKeys(ctx, subject)
}

// ForgetKeys empties the cache except for keys known to be destroyed. Queries in progress no longer fill it.
func (v *Vault) ForgetKeys() { v.cache.forgetKeys() }

// destroyKeys removes the keys from the cache before it writes, and records their destruction in the cache
// afterwards. When the write fails, and nobody knows whether it was made, the next Key reads the database.
func (v *Vault) destroyKeys(ctx context.Context, subjects ...string) error {
	for _, subject := range subjects {
		v.cache.forget(subject)
	}
	db, err := v.openDatabase(ctx)
	if err == nil {
		err = v.overwriteKeys(ctx, db, subjects)
	}
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	for _, subject := range subjects {
		v.cache.put(subject, nil, v.cache.clock())
	}
	return nil
}

// overwriteKeys destroys the keys in the database. A subject without a row gets one that is destroyed. TruncateWAL then
// removes old keys from the write-ahead log of SQLite, if there is one; on Postgres scrub removes them from the files later.
func (v *Vault) overwriteKeys(ctx context.Context, db *sqldb.DB, subjects []string) error {
	now := int64(table.InstantOf(v.wall()))
	err := db.RunInTx(ctx, func(tx *sqldb.Tx) error {
		if err := v.lockBinding(ctx, tx, false); err != nil {
			return err
		}
		overwritten := int64(0)
		for _, subject := range subjects {
			n, err := tx.Exec(ctx, "insert into {data_keys} (subject, key, created, destroyed) values (?, ?, ?, ?) on conflict do nothing", subject, []byte{}, now, now)
			if err == nil && n == 0 {
				n, err = tx.Exec(ctx, "update {data_keys} set key = ?, destroyed = ? where subject = ? and destroyed = 0", []byte{}, now, subject)
				overwritten += n
				n = 0
			}
			if err == nil {
				err = v.addToKeyCount(ctx, tx, n)
			}
			if err != nil {
				return err
			}
		}
		if overwritten == 0 {
			return nil
		}
		return tx.RequireScrub(ctx)
	})
	if err != nil {
		return err
	}
	return db.TruncateWAL(ctx)
}

// Close closes the database. No other call may run at the same time or come later.
func (v *Vault) Close() error {
	if d := v.db.Load(); d != nil {
		return d.Close()
	}
	return nil
}
