// Package vault keeps the data keys of personal fields in a database of its own making, outside the log, where
// they can be destroyed. Several instances share one and agree on every key; what one destroys, all
// refuse within a minute, so no key is remembered for longer than that.
package vault

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/table"
)

// Vault implements eventstore.Vault on Postgres or in a SQLite file. The database may be away when it is opened,
// and come and go later: keys used a moment ago are there all the same.
type Vault struct {
	address string
	wrapper wrapper
	clock   func() time.Time
	cache   cache
	reader  follower

	turn chan struct{} // holds one when nobody reaches for the database
	db   atomic.Pointer[table.DB]
}

// row is a subject's key. A destroyed one has no key left, and keeps the subject from ever getting another.
type row struct {
	Subject   string
	Key       []byte
	Created   table.Instant
	Destroyed table.Instant
}

var keys = table.Table[row]{
	Def: table.Def{Name: "data_keys", Key: 1, Indexes: []string{"created"}, Columns: []table.Column{
		{Name: "subject", Type: table.Text}, {Name: "key", Type: table.Bytes},
		{Name: "created", Type: table.Moment}, {Name: "destroyed", Type: table.Moment},
	}},
	Fields: func(r *row) []any { return []any{&r.Subject, &r.Key, &r.Created, &r.Destroyed} },
}

// New is the vault at an address: postgres://… or the path of a SQLite file, made when missing. With a
// master key (see ParseMaster) the keys it makes are of no use without it; nil stores them as they are.
func New(address string, master []byte, clock func() time.Time) (*Vault, error) {
	w, err := newWrapper(master)
	if err != nil {
		return nil, err
	}
	v := &Vault{address: address, wrapper: w, clock: clock, cache: cache{clock: clock}, turn: make(chan struct{}, 1)}
	v.turn <- struct{}{}
	return v, nil
}

// Key is the subject's data key, which must not be changed; see eventstore.Vault.
func (v *Vault) Key(ctx context.Context, subject string, create bool) ([]byte, error) {
	if key, known := v.cache.find(subject); known {
		return usable(key)
	}
	asked := v.clock()
	r, err := v.row(ctx, subject, create)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	if r == nil {
		return nil, eventstore.ErrNoKey
	}
	var key []byte
	if r.Destroyed == 0 {
		if key, err = v.wrapper.open(subject, r.Key); err != nil {
			return nil, fmt.Errorf("vault: %w", err)
		}
	}
	if !create && v.reader.follows(*r) {
		v.readAhead(ctx, *r)
	}
	return usable(v.cache.put(subject, key, asked))
}

func usable(key []byte) ([]byte, error) {
	if key == nil {
		return nil, eventstore.ErrNoKey
	}
	return key, nil
}

// row is what the database holds for a subject, nil for nothing.
func (v *Vault) row(ctx context.Context, subject string, create bool) (*row, error) {
	db, err := v.reach(ctx)
	if err != nil {
		return nil, err
	}
	found, err := table.Select(ctx, db, keys, "where subject = ?", subject)
	if err == nil && len(found) == 0 && create {
		if err = v.insert(ctx, db, subject); err == nil {
			found, err = table.Select(ctx, db, keys, "where subject = ?", subject)
		}
	}
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// insert makes a key, unless another instance was faster: then that one's is the key.
func (v *Vault) insert(ctx context.Context, db *table.DB, subject string) error {
	key := make([]byte, keyLen)
	rand.Read(key) // never fails: the runtime ends the program first
	_, err := db.Exec(ctx, "insert into data_keys (subject, key, created, destroyed) values (?, ?, ?, 0) on conflict do nothing",
		subject, v.wrapper.seal(subject, key), int64(table.At(v.clock())))
	return err
}

// Destroy ends a subject's key, here at once and on the other instances within a minute. A subject that has no
// key will never have one. Backups of the database are beyond its reach.
func (v *Vault) Destroy(ctx context.Context, subject string) error {
	v.cache.forget(subject)
	db, err := v.reach(ctx)
	if err == nil {
		err = v.overwrite(ctx, db, subject)
	}
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	v.cache.put(subject, nil, v.clock())
	return nil
}

func (v *Vault) overwrite(ctx context.Context, db *table.DB, subject string) error {
	now := int64(table.At(v.clock()))
	_, err := db.Exec(ctx, "insert into data_keys (subject, key, created, destroyed) values (?, ?, ?, ?)"+
		" on conflict (subject) do update set key = excluded.key, destroyed = excluded.destroyed where data_keys.destroyed = 0",
		subject, []byte{}, now, now)
	if err != nil {
		return err
	}
	return db.Scrub(ctx)
}

func (v *Vault) remote() bool { return strings.HasPrefix(v.address, "postgres") }

// reach is the database, opened by whoever needs it first.
func (v *Vault) reach(ctx context.Context) (*table.DB, error) {
	if db := v.db.Load(); db != nil {
		return db, nil
	}
	select {
	case <-v.turn:
		defer func() { v.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if db := v.db.Load(); db != nil { // somebody was faster
		return db, nil
	}
	db, err := v.open(ctx)
	if err == nil {
		v.db.Store(db)
	}
	return db, err
}

func (v *Vault) open(ctx context.Context) (*table.DB, error) {
	if err := v.prepare(); err != nil {
		return nil, err
	}
	db, err := table.Open(ctx, v.address, table.Options{Name: "data keys", Schema: "vault", Full: true})
	if err != nil {
		return nil, err
	}
	if err := db.Create(ctx, keys.Def); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// prepare makes a file that nobody else can read.
func (v *Vault) prepare() error {
	if v.remote() {
		return nil
	}
	f, err := os.OpenFile(v.address, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Close frees everything. No call may be running, nor come later.
func (v *Vault) Close() error {
	if db := v.db.Load(); db != nil {
		return db.Close()
	}
	return nil
}
